package braid.launcher.ranks;

import braid.launcher.RankClassPath;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Command line of a rank's JVM: small and fast to start, because there are many, and they mostly
/// wait for native code.
public final class RankJvm {
  /// Set by the `braid` script, and for tests by Maven: ahead-of-time cache that ranks start from.
  private static final String CACHE_PROPERTY = "braid.rank.aot";

  /// Set by the `braid` script at build time: file to which a rank writes that cache at its end.
  private static final String CACHE_OUTPUT_PROPERTY = "braid.rank.aot.output";

  /// Set by the `braid` script of a bundle: its fonts.
  private static final String FONTS_PROPERTY = "sun.awt.fontconfig";

  private static final List<String> FLAGS =
      List.of(
          "-XX:+UseSerialGC",
          "-XX:-UsePerfData",
          // Keeps stack traces of repeated exceptions.
          "-XX:-OmitStackTraceInFastThrow",
          "-Djava.awt.headless=true",
          "-Dslf4j.internal.verbosity=ERROR",
          "--enable-native-access=ALL-UNNAMED");

  private RankJvm() {}

  /// Lets no later rank write the cache.
  public static void endRecording() {
    System.clearProperty(CACHE_OUTPUT_PROPERTY);
  }

  public static List<String> command(RankKind kind, int frontPort) {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(FLAGS);
    command.addAll(kind.flags());
    var fonts = System.getProperty(FONTS_PROPERTY);
    if (fonts != null) {
      command.add("-D" + FONTS_PROPERTY + "=" + fonts);
    }
    var cache = System.getProperty(CACHE_PROPERTY);
    if (cache != null) {
      // A cache of another JVM or other jars is ignored without output on stdout.
      command.addAll(List.of("-XX:AOTCache=" + cache, "-Xlog:disable", "-Xlog:all=error:stderr"));
    }
    var output = System.getProperty(CACHE_OUTPUT_PROPERTY);
    if (output != null) {
      command.add("-XX:AOTCacheOutput=" + output);
    }
    command.add("-cp");
    command.add(RankClassPath.text());
    command.add("braid.launcher.rank.RankMain");
    command.add(Integer.toString(frontPort));
    return command;
  }
}
