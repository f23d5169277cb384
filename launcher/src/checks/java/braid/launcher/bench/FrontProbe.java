package braid.launcher.bench;

import braid.internal.json.RecordJson;
import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// The process that `braid bench front` times, with the output of `ipyparallel_front.py`: `ready`
/// when the ranks are ready, `first` when the result of the first cell has arrived, then the times
/// of cells. It idles until stdin is closed, so that its memory can be measured.
@Command(name = "front-probe", hidden = true, description = "The process that bench front times.")
final class FrontProbe implements Callable<Integer> {
  /// Milliseconds of each cell, by kind.
  record CellMillis(List<Double> declaration, List<Double> expression, List<Double> printing) {}

  @Parameters(paramLabel = "RANKS", description = "Number of ranks.")
  private int ranks;

  @Parameters(paramLabel = "WARM_UP", description = "Warm-up cells of each kind.")
  private int warmUp;

  @Parameters(paramLabel = "CELLS", description = "Timed cells of each kind.")
  private int cells;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var home = Path.of("").toAbsolutePath();
    try (var session =
        Session.start(new SessionOptions(ranks, BackendKind.HOST, Optional.empty(), home))) {
      print("ready");
      run(session, "1 + 1", "", "2");
      print("first");
      run(session, "int a = 1;", "", "");
      var millis = new CellMillis(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
      for (int round = 0; round < warmUp + cells; round++) {
        double declaration = run(session, "int b" + round + " = 17;", "", "");
        double expression = run(session, "a + 1", "", "2");
        double printing = run(session, "System.out.println(a);", "1\n", "");
        if (round >= warmUp) {
          millis.declaration.add(declaration);
          millis.expression.add(expression);
          millis.printing.add(printing);
        }
      }
      print(new RecordJson().write(millis, CellMillis.class).toString());
      while (System.in.read() >= 0) {
        // idle
      }
    }
    return ExitCode.OK.code();
  }

  private static double run(Session session, String source, String printed, String result) {
    var text = new StringBuilder();
    var output =
        new CellOutput() {
          @Override
          public void stdout(String more) {
            text.append(more);
          }
        };
    long start = System.nanoTime();
    var outcome = session.run(new Cell("cell", source), output);
    long elapsedNanos = System.nanoTime() - start;
    var found = outcome.result().map(bundle -> bundle.text()).orElse("");
    if (!outcome.succeeded() || !text.toString().equals(printed) || !found.equals(result)) {
      throw new BraidException(
          "%s printed \"%s\" and returned %s".formatted(source, text.toString().strip(), outcome));
    }
    return elapsedNanos / 1e6;
  }

  private void print(String line) {
    var out = spec.commandLine().getOut();
    out.println(line);
    out.flush();
  }
}
