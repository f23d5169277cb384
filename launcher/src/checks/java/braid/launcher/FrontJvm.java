package braid.launcher;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Command line of a front in a process of its own, for checks and tests.
public final class FrontJvm {
  private FrontJvm() {}

  /// Returns the start of the command line: this JDK with this process's classes and the options of
  /// the script.
  public static List<String> command() {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Djava.awt.headless=true",
                "-XX:+UseSerialGC",
                "-XX:-UsePerfData",
                "-XX:TieredStopAtLevel=1",
                "-Dslf4j.internal.verbosity=ERROR"));
    // Set by Maven: an archive of JDK classes, for the front and its ranks.
    var archive = System.getProperty("braid.rank.aot");
    if (archive != null) {
      command.addAll(
          List.of(
              "-XX:AOTCache=" + archive,
              "-Xlog:disable",
              "-Xlog:all=error:stderr",
              "-Dbraid.rank.aot=" + archive));
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    return command;
  }
}
