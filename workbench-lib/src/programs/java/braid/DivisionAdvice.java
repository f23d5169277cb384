package braid;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Configuration.LayoutTuning;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import braid.shapes.Lengths;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/// Prints the division that [Balance] advises beside an exhaustive simulated run of every layout,
/// method, number of splits and number of streams, for random distributions of lengths. Not a test;
/// run it by hand:
///
/// `java -cp … braid.DivisionAdvice [distributions]`
final class DivisionAdvice {
  private static final String DEFAULT_DISTRIBUTIONS = "20";
  private static final int ITERATIONS = 3;

  /// Times that differ by less are equal.
  private static final double EQUAL = 1 + 1e-6;

  private DivisionAdvice() {}

  /// Lengths of a batch, and the number of ranks that divide it.
  record Drawn(Lengths lengths, boolean isCausal, int ranks) {
    static Drawn of(int seed) {
      var random = new SplittableRandom(seed);
      int total = 16_384 << random.nextInt(2);
      double median = 400 * Math.pow(15, random.nextDouble());
      double sigma = random.nextInt(4) / 2.0;
      boolean causal = random.nextInt(4) > 0;
      return new Drawn(
          Lengths.logNormal(total, median, sigma, seed), causal, random.nextInt(4) == 0 ? 8 : 4);
    }

    AttentionSpec spec() {
      var spec = lengths.attention(32, 128).kvHeads(8).dtype(DType.BF16);
      return isCausal ? spec.causal() : spec;
    }
  }

  private record Timed(LayoutTuning division, double nanos) {}

  /// @param advisedNanos shortest time of the advised layout and method
  /// @param best the fastest of all
  record Verdict(Drawn drawn, LayoutTuning advice, double advisedNanos, Timed best) {
    boolean isRight() {
      return advisedNanos <= best.nanos * EQUAL;
    }

    @Override
    public String toString() {
      return "%s, %s, %d ranks: %s; best %s, %.3f ms%s"
          .formatted(
              drawn.lengths,
              drawn.isCausal ? "causal" : "no mask",
              drawn.ranks,
              advice,
              best.division,
              best.nanos / 1e6,
              isRight()
                  ? ""
                  : "; the advice takes %.3f × as long".formatted(advisedNanos / best.nanos));
    }
  }

  static Verdict verdict(Drawn drawn) {
    var machine = Machine.h100x8();
    var balance = Balance.of(drawn.spec(), drawn.ranks);
    var advice = balance.on(machine).best().division();
    var all = new ArrayList<Timed>();
    for (var row : balance.rows()) {
      for (int splits : List.of(1, 2, 4)) {
        for (int streams : List.of(1, 2)) {
          var tuning = row.division().tuning().splits(splits).streams(streams);
          var spec = drawn.spec().layout(row.division().layout());
          if (isPossible(spec, tuning, drawn.ranks)) {
            all.add(
                new Timed(
                    new LayoutTuning(spec.layout(), tuning),
                    Schedule.of(spec, tuning, drawn.ranks)
                        .simulate(machine, ITERATIONS)
                        .summary()
                        .medianNanos()));
          }
        }
      }
    }
    all.sort(Comparator.comparingDouble(Timed::nanos));
    double advised =
        all.stream()
            .filter(each -> isSameMethod(each.division, advice))
            .mapToDouble(Timed::nanos)
            .findFirst()
            .orElseThrow();
    return new Verdict(drawn, advice, advised, all.getFirst());
  }

  private static boolean isSameMethod(LayoutTuning one, LayoutTuning other) {
    return one.layout() == other.layout()
        && one.tuning().method() == other.tuning().method()
        && one.tuning().ulyssesRanks() == other.tuning().ulyssesRanks();
  }

  private static boolean isPossible(AttentionSpec spec, ContextParallel tuning, int ranks) {
    try {
      tuning.check(spec, ranks);
      return tuning.splits() <= tuning.mostSplits(spec, ranks);
    } catch (BraidException _) {
      return false;
    }
  }

  public static void main(String[] given) {
    int count = Integer.parseInt(given.length > 0 ? given[0] : DEFAULT_DISTRIBUTIONS);
    var verdicts =
        IntStream.rangeClosed(1, count)
            .mapToObj(seed -> verdict(Drawn.of(seed)))
            .peek(System.out::println)
            .toList();
    System.out.printf(
        "%d of %d right%n", verdicts.stream().filter(Verdict::isRight).count(), count);
  }
}
