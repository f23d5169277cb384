package braid.launcher.bench.life;

import braid.launcher.bench.CapturedOutput;
import braid.launcher.cell.Cell;
import braid.launcher.session.Session;
import braid.model.BraidException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/// A long run of a session: cells of every kind in turn, each checked, and the session's resources
/// after the warm-up and at the end.
///
/// @param millis time of each cell after the warm-up
/// @param cpuMillis CPU time of the front for each of them, which other load does not change
public record LifeRun(
    int warmUp, List<Double> millis, List<Double> cpuMillis, Footprint warm, Footprint end) {
  private record CellTime(double millis, double cpuMillis) {}

  /// Cells in turn; a window of [#WINDOW] cells holds each kind equally often.
  private enum LifeCell {
    DECLARATION,
    EXPRESSION,
    PRINTING,
    METHOD,
    FAILURE;

    String source(int number) {
      return switch (this) {
        case DECLARATION -> "int a%d = %d;".formatted(number, number);
        case EXPRESSION -> "a%d + 1".formatted(number - 1);
        case PRINTING -> "System.out.println(\"cell %d\");".formatted(number);
        case METHOD -> "int twice(int n) { return 2 * n + %d; }\ntwice(1)".formatted(number);
        case FAILURE ->
            "if (a%d >= 0) throw new IllegalStateException(\"%d\");".formatted(number - 4, number);
      };
    }

    String expected(int number) {
      return switch (this) {
        case DECLARATION -> "";
        case EXPRESSION -> Integer.toString(number);
        case PRINTING -> "cell %d\n".formatted(number);
        case METHOD -> Integer.toString(number + 2);
        case FAILURE -> "IllegalStateException";
      };
    }
  }

  public static final int WINDOW = 50;

  /// @param progress receives the number of each cell
  public static LifeRun of(Session session, int warmUp, int cells, IntConsumer progress) {
    var millis = new ArrayList<Double>();
    var cpuMillis = new ArrayList<Double>();
    var warm = Footprint.now();
    for (int i = 0; i < warmUp + cells; i++) {
      progress.accept(i);
      if (i == warmUp) {
        warm = Footprint.now();
      }
      var took = run(session, i);
      if (i >= warmUp) {
        millis.add(took.millis);
        cpuMillis.add(took.cpuMillis);
      }
    }
    return new LifeRun(warmUp, List.copyOf(millis), List.copyOf(cpuMillis), warm, Footprint.now());
  }

  private static CellTime run(Session session, int number) {
    var kind = LifeCell.values()[number % LifeCell.values().length];
    var text = new CapturedOutput();
    var cell = new Cell("cell " + (number + 1), kind.source(number));
    var threads = ManagementFactory.getThreadMXBean();
    long cpuStart = threads.getCurrentThreadCpuTime();
    long start = System.nanoTime();
    var outcome = session.run(cell, text);
    double millis = (System.nanoTime() - start) / 1e6;
    double cpuMillis = (threads.getCurrentThreadCpuTime() - cpuStart) / 1e6;
    outcome.result().ifPresent(result -> text.stdout(result.text()));
    var failure = outcome.failure().map(f -> f.name()).orElse("");
    var actual = text.printed() + failure.substring(failure.lastIndexOf('.') + 1);
    if (!actual.equals(kind.expected(number))) {
      throw new BraidException(
          "%s must print \"%s\" but printed \"%s\""
              .formatted(cell.source(), kind.expected(number).strip(), actual));
    }
    return new CellTime(millis, cpuMillis);
  }

  /// Ratio of the last cells' time to the first ones'.
  static double growth(List<Double> cells) {
    return last(cells) / first(cells);
  }

  static double first(List<Double> cells) {
    return median(cells.subList(0, WINDOW));
  }

  static double last(List<Double> cells) {
    return median(cells.subList(cells.size() - WINDOW, cells.size()));
  }

  /// Ratio of the last cells' latency to the first ones'.
  public double growth() {
    return growth(millis);
  }

  private static double median(List<Double> values) {
    var sorted = values.stream().sorted().toList();
    int middle = sorted.size() / 2;
    return sorted.size() % 2 == 1
        ? sorted.get(middle)
        : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
  }
}
