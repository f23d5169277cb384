package braid.launcher.ranks;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// How a rank's JVM is started: small and quick, because there are many of them and they mostly
/// wait for native code.
final class RankJvm {
  /// Set by the `braid` script: the ahead-of-time cache that ranks start from.
  private static final String CACHE_PROPERTY = "braid.rank.aot";

  /// Set by the `braid` script when it builds: where a rank writes that cache at its end.
  private static final String CACHE_OUTPUT_PROPERTY = "braid.rank.aot.output";

  /// Set by the `braid` script of a bundle: which fonts it brings.
  private static final String FONTS_PROPERTY = "sun.awt.fontconfig";

  private static final List<String> FLAGS =
      List.of(
          "-XX:+UseSerialGC",
          "-XX:-UsePerfData",
          // What fails again and again says each time where.
          "-XX:-OmitStackTraceInFastThrow",
          "-Djava.awt.headless=true",
          "-Dslf4j.internal.verbosity=ERROR",
          "--enable-native-access=ALL-UNNAMED");

  private RankJvm() {}

  static List<String> command(RankKind kind, int frontPort) {
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
      // A cache that does not fit (another JVM, other jars) is passed over without a word on the
      // rank's stdout.
      command.addAll(List.of("-XX:AOTCache=" + cache, "-Xlog:disable", "-Xlog:all=error:stderr"));
    }
    var output = System.getProperty(CACHE_OUTPUT_PROPERTY);
    if (output != null) {
      command.add("-XX:AOTCacheOutput=" + output);
    }
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add("braid.launcher.rank.RankMain");
    command.add(Integer.toString(frontPort));
    return command;
  }
}
