package braid.internal.report.statistics;

import braid.Estimate;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Which of several configurations is best, how sure that is, and whether any beats the unfused
/// reference at all. Times are compared within a round, where they shared the machine's mood: the
/// quotient of two times of one round is taken, and the median of the quotients over all rounds.
///
/// Nothing is said to differ unless its interval excludes no difference *and* it differs by more
/// than the noise floor, which is what two measurements of the very same thing differed by.
///
/// @param noiseFloor a share, for example 0.006
/// @param saved for each configuration the share of the unfused time that it saves
/// @param best the index of the fastest configuration that beats unfused, or `UNFUSED`
/// @param ties the others that cannot be told from the best, fastest first
public record Ranking(double noiseFloor, List<Estimate> saved, int best, List<Integer> ties) {
  public static final int UNFUSED = -1;
  public static final double CONFIDENCE = 0.95;

  /// @param unfused the reference's time in each round
  /// @param unfusedAgain its second time in each round
  /// @param times for each configuration its time in each round
  public static Ranking of(double[] unfused, double[] unfusedAgain, List<double[]> times) {
    var same = OrderStatistics.median(excess(unfusedAgain, unfused), CONFIDENCE);
    double noiseFloor = Math.max(Math.abs(same.low()), Math.abs(same.high()));

    var reference = new double[unfused.length];
    for (int round = 0; round < reference.length; round++) {
      reference[round] = (unfused[round] + unfusedAgain[round]) / 2;
    }
    var saved =
        times.stream()
            .map(t -> negated(OrderStatistics.median(excess(t, reference), CONFIDENCE)))
            .toList();
    var byTime =
        IntStream.range(0, times.size())
            .boxed()
            .sorted(
                (a, b) ->
                    Double.compare(
                        OrderStatistics.quantile(times.get(a), 0.5),
                        OrderStatistics.quantile(times.get(b), 0.5)))
            .toList();
    int best =
        byTime.stream().filter(c -> exceeds(saved.get(c), noiseFloor)).findFirst().orElse(UNFUSED);
    var bestTimes = best == UNFUSED ? reference : times.get(best);
    var ties = new ArrayList<Integer>();
    for (int c : byTime) {
      var behind = OrderStatistics.median(excess(times.get(c), bestTimes), CONFIDENCE);
      if (c != best && !exceeds(behind, noiseFloor)) {
        ties.add(c);
      }
    }
    return new Ranking(noiseFloor, saved, best, List.copyOf(ties));
  }

  private static boolean exceeds(Estimate share, double noiseFloor) {
    return share.low() > 0 && share.value() > noiseFloor;
  }

  /// How much longer `times` took than `base`, as a share of `base`, round by round.
  private static double[] excess(double[] times, double[] base) {
    var shares = new double[times.length];
    for (int round = 0; round < times.length; round++) {
      shares[round] = times[round] / base[round] - 1;
    }
    return shares;
  }

  private static Estimate negated(Estimate e) {
    return new Estimate(-e.value(), -e.high(), -e.low(), e.confidence());
  }
}
