package braid.launcher.bench;

import braid.internal.json.RecordJson;
import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// The front that `braid bench scale` times. Prints `ready`, then its [Result], and idles until
/// stdin is closed.
@Command(name = "scale-probe", hidden = true, description = "The front that bench scale times.")
final class ScaleProbe implements Callable<Integer> {
  private static final int WARM_UP = 10;

  /// @param millis of each cell
  /// @param residentMiB of the front after the cells
  record Result(List<Double> millis, double residentMiB, double threads) {
    static Result parse(String line) {
      return new RecordJson().read("results", RecordJson.parse("results", line), Result.class);
    }
  }

  @Parameters(paramLabel = "RANKS", description = "Number of ranks.")
  private int ranks;

  @Parameters(paramLabel = "CELLS", description = "Timed cells.")
  private int cells;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var key = JoinKey.parse(JoinKey.VARIABLE, Env.here().join().orElseThrow());
    var settings =
        new JoinedRanks.Settings(
            "attach",
            ranks,
            InetAddress.getLoopbackAddress(),
            key.port(),
            Optional.of(key),
            Optional.empty(),
            Duration.ofSeconds(60),
            Installation.version(),
            Map.of(),
            Optional.empty(),
            List.of());
    var home = Path.of("").toAbsolutePath();
    try (var joined = new JoinedRanks(settings);
        var session =
            Session.start(
                new SessionOptions(ranks, BackendKind.HOST, Optional.empty(), home)
                    .starter(joined))) {
      print("ready");
      var millis = new ArrayList<Double>();
      for (int round = 0; round < WARM_UP + cells; round++) {
        double elapsed = declare(session, round);
        if (round >= WARM_UP) {
          millis.add(elapsed);
        }
      }
      var self = Path.of("/proc/self/status");
      var result =
          new Result(
              millis, FrontProcess.mebibytes(self, "VmRSS:"), Thread.getAllStackTraces().size());
      print(new RecordJson().write(result, Result.class).toString());
      while (System.in.read() >= 0) {
        // idle
      }
    }
    return ExitCode.OK.code();
  }

  /// Runs a cell that every rank answers at once.
  private static double declare(Session session, int round) {
    long start = System.nanoTime();
    var outcome = session.run(new Cell("cell", "int a" + round + " = 1;"), new CellOutput() {});
    double millis = (System.nanoTime() - start) / 1e6;
    if (!outcome.succeeded()) {
      throw new BraidException("a cell failed: " + outcome);
    }
    return millis;
  }

  private void print(String line) {
    var out = spec.commandLine().getOut();
    out.println(line);
    out.flush();
  }
}
