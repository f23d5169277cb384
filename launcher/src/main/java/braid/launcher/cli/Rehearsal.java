package braid.launcher.cli;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.hosts.RankAgent;
import braid.launcher.hosts.RankPlace;
import braid.launcher.ranks.RankJvm;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Training run of the JVM's class cache: the build runs it once to record the classes that a
/// session needs. It does a bit of everything that a short notebook does. The last cell ends the
/// rank from within, because a killed rank records nothing. A second session has a rank that joins
/// over TLS.
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

  private static final List<String> JOINED_CELLS = List.of("int joined = 1;", "joined + 1");
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private Rehearsal() {}

  public static void main(String[] args) throws IOException {
    var home = Files.createTempDirectory("braid-rehearsal");
    var _ = Braid.commandLine().execute("run", "--help");
    var options = new SessionOptions(1, BackendKind.HOST, Optional.empty(), home);
    rehearse(options, CELLS);
    RankJvm.endRecording();
    try (var ranks = new JoinedRanks(joined(home.resolve("braid.join")))) {
      Thread.ofPlatform().daemon().start(() -> join(home.resolve("braid.join")));
      rehearse(options.starter(ranks), JOINED_CELLS);
    } catch (BraidException e) {
      // The caches serve ranks of this host without it.
      System.out.println("no rank could join: " + e.getMessage());
    }
    WholeFolder.delete(home);
    System.exit(0);
  }

  private static void rehearse(SessionOptions options, List<String> cells) {
    try (var session = Session.start(options)) {
      for (int i = 0; i < cells.size(); i++) {
        var outcome = session.run(new Cell("cell " + (i + 1), cells.get(i)), new CellOutput() {});
        var _ = session.assistant().complete("System.out.pri", 14);
        System.out.println(cells.get(i) + " -> " + outcome);
      }
    }
  }

  private static JoinedRanks.Settings joined(Path file) {
    return new JoinedRanks.Settings(
        "attach",
        1,
        InetAddress.getLoopbackAddress(),
        0,
        Optional.empty(),
        Optional.of(file),
        PATIENCE,
        Installation.version(),
        Map.of(),
        Optional.empty(),
        List.of());
  }

  private static void join(Path file) {
    var place = RankPlace.of(Map.of("BRAID_RANK", "0"));
    var agent =
        new RankAgent(
            () -> JoinKey.read(file),
            place,
            Installation.version(),
            System.getenv(),
            System.out::println);
    try {
      agent.run(PATIENCE);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
