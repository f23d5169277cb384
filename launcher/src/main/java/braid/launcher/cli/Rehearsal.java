package braid.launcher.cli;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Optional;

/// Training run of the JVM's class cache: the build runs it once to record the classes that a
/// session needs. It does a bit of everything that a short notebook does. The last cell ends the
/// rank from within, because a killed rank records nothing.
public final class Rehearsal {
  private static final List<String> CELLS =
      List.of(
          "int rehearsed = 1;",
          "rehearsed + 1",
          "System.out.println(rehearsed);",
          "int twice(int n) { return 2 * n; }",
          "record Pair(int a, int b) {}",
          "new Pair(twice(1), 2)",
          "for (int i = 0; i < 3; i++) { System.err.println(i); }",
          "var wrong = nothingOfThisName;",
          "throw new IllegalStateException(\"rehearsed\");",
          "%ranks",
          "var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(64, 64, 64)).overlap(Overlap.pipelined(2)).build();",
          "pipe.verify();",
          "pipe.profile(2)",
          "Tuner.on(world).gemm(GemmSpec.allGatherGemm(64, 64, 64)).splits(1, 2).budget(Duration.ofSeconds(1)).run()",
          "%%front\nprofiles.latest().stages()",
          "%who",
          "System.exit(0);");

  private Rehearsal() {}

  public static void main(String[] args) throws IOException {
    var home = Files.createTempDirectory("braid-rehearsal");
    var _ = Braid.commandLine().execute("run", "--help");
    var options = new SessionOptions(1, BackendKind.HOST, Optional.empty(), home);
    try (var session = Session.start(options)) {
      for (int i = 0; i < CELLS.size(); i++) {
        var outcome = session.run(new Cell("cell " + (i + 1), CELLS.get(i)), new CellOutput() {});
        var _ = session.assistant().complete("System.out.pri", 14);
        System.out.println(CELLS.get(i) + " -> " + outcome);
      }
    }
    WholeFolder.delete(home);
    System.exit(0);
  }
}
