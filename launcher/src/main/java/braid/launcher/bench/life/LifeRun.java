package braid.launcher.bench.life;

import braid.launcher.bench.Captured;
import braid.launcher.cell.Cell;
import braid.launcher.session.Session;
import braid.model.BraidException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/// A session's long life: cells of every kind in turn, one after the other, each checked, and what
/// the session holds when it is warm and in the end.
///
/// @param millis what each cell after the warm-up took
/// @param cpuMillis what of that the front computed, which other programs on the machine do not
///   stretch
public record LifeRun(
    int warmUp, List<Double> millis, List<Double> cpuMillis, Footprint warm, Footprint end) {
  private record Took(double millis, double cpuMillis) {}

  /// In turn; a window of [#WINDOW] cells holds each as often.
  private enum Kind {
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

  /// @param progress is told the number of each cell
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

  private static Took run(Session session, int number) {
    var kind = Kind.values()[number % Kind.values().length];
    var text = new Captured();
    var cell = new Cell("cell " + (number + 1), kind.source(number));
    var threads = ManagementFactory.getThreadMXBean();
    long cpuStart = threads.getCurrentThreadCpuTime();
    long start = System.nanoTime();
    var outcome = session.run(cell, text);
    double millis = (System.nanoTime() - start) / 1e6;
    double cpuMillis = (threads.getCurrentThreadCpuTime() - cpuStart) / 1e6;
    outcome.result().ifPresent(result -> text.stdout(result.text()));
    var failure = outcome.failure().map(f -> f.name()).orElse("");
    var said = text.printed() + failure.substring(failure.lastIndexOf('.') + 1);
    if (!said.equals(kind.expected(number))) {
      throw new BraidException(
          "%s should say \"%s\" but said \"%s\""
              .formatted(cell.source(), kind.expected(number).strip(), said));
    }
    return new Took(millis, cpuMillis);
  }

  /// How much more the last take than the first.
  static double growth(List<Double> cells) {
    return last(cells) / first(cells);
  }

  static double first(List<Double> cells) {
    return median(cells.subList(0, WINDOW));
  }

  static double last(List<Double> cells) {
    return median(cells.subList(cells.size() - WINDOW, cells.size()));
  }

  /// The last cells' latency over the first's.
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
