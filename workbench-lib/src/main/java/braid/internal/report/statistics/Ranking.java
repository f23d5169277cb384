package braid.internal.report.statistics;

import braid.model.Estimate;
import braid.model.Spread;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/// The best of several configurations, how certain that is, and whether any beats the unfused
/// reference at all. Times are compared within a round by [PairedSamples].
///
/// One configuration is called better than another only if the interval of their difference
/// excludes zero, the difference exceeds the noise floor, and the medians of their times agree. The
/// intervals of all pairs, including the reference, hold together with 95% confidence. So at most
/// one study in twenty prefers one of several equal configurations, however many there are.
///
/// @param noiseFloor noise floor as a share, for example 0.006
/// @param saved share of the unfused time that each configuration saves
/// @param best index of the fastest configuration that beats unfused, or `UNFUSED`
/// @param ties configurations that cannot be distinguished from the best, fastest first
/// @param precision precision of the times
public record Ranking(
    double noiseFloor, List<Estimate> saved, int best, List<Integer> ties, Precision precision) {
  public static final int UNFUSED = -1;
  public static final double CONFIDENCE = 0.95;

  /// Factor between the median absolute deviation and the standard deviation of a normal
  /// distribution.
  private static final double DEVIATIONS_PER_MAD = 1.4826;

  /// Standard errors of a Hodges–Lehmann estimate per deviation of the mean, if values are normal.
  private static final double ERRORS_OF_CENTRE = 1.0233;

  /// Ranks configurations.
  ///
  /// @param unfused time of the reference in each round
  /// @param unfusedAgain second time of the reference in each round; used for the noise floor only,
  ///   because a mean of two times varies less than one
  /// @param times times of each configuration in each round
  public static Ranking of(double[] unfused, double[] unfusedAgain, List<double[]> times) {
    double noiseFloor = noiseFloor(unfused, unfusedAgain);
    var limits = new Limits(noiseFloor, ofEach(times.size()));
    var saved = excess(unfused, times);
    ToDoubleFunction<double[]> median = t -> Spread.quantile(t, 0.5);
    double reference =
        Spread.quantile(
            IntStream.range(0, 2 * unfused.length)
                .mapToDouble(i -> i % 2 == 0 ? unfused[i / 2] : unfusedAgain[i / 2])
                .toArray(),
            0.5);
    var medians = times.stream().mapToDouble(median).toArray();
    var byTime =
        IntStream.range(0, times.size())
            .boxed()
            .sorted((a, b) -> Double.compare(medians[a], medians[b]))
            .toList();
    int best =
        byTime.stream()
            .filter(c -> limits.slower(unfused, reference, times.get(c), medians[c]))
            .findFirst()
            .orElse(UNFUSED);
    var bestTimes = best == UNFUSED ? unfused : times.get(best);
    double bestMedian = best == UNFUSED ? reference : medians[best];
    var ties = new ArrayList<Integer>();
    for (int c : byTime) {
      if (c != best && !limits.slower(times.get(c), medians[c], bestTimes, bestMedian)) {
        ties.add(c);
      }
    }
    return new Ranking(
        noiseFloor,
        saved.stream().map(Ranking::negated).toList(),
        best,
        List.copyOf(ties),
        Precision.of(unfused, times, saved));
  }

  /// Returns this ranking without a best configuration or ties: of times that are no evidence.
  public Ranking unjudged() {
    return new Ranking(noiseFloor, saved, UNFUSED, List.of(), precision);
  }

  /// Returns the precision of the times, without ranking.
  static Precision precision(double[] unfused, List<double[]> times) {
    return Precision.of(unfused, times, excess(unfused, times));
  }

  private static List<Estimate> excess(double[] unfused, List<double[]> times) {
    double confidence = ofEach(times.size());
    return times.stream().map(t -> PairedSamples.excess(unfused, t, confidence)).toList();
  }

  /// Returns the confidence of each pair's interval with which those of all pairs hold together.
  private static double ofEach(int configurations) {
    return 1 - (1 - CONFIDENCE) / pairs(configurations);
  }

  /// Returns the number of compared pairs, including the reference.
  private static int pairs(int configurations) {
    return configurations * (configurations + 1) / 2;
  }

  /// Returns the confidence with which the intervals of all pairs hold together.
  public double confidence() {
    double missed = 1 - saved.getFirst().confidence();
    return Math.max(0, 1 - pairs(saved.size()) * missed);
  }

  /// Returns the fewest rounds from which one of that number of configurations can be called better
  /// than another.
  public static int leastRounds(int configurations) {
    int rounds = 1;
    while (PairedSamples.mostConfidence(rounds) < ofEach(configurations)) {
      rounds++;
    }
    return rounds;
  }

  /// Returns the difference of two measurements of the same work, as an interval's farther end. Its
  /// width follows from the median absolute deviation, so single disturbed rounds have little
  /// effect.
  private static double noiseFloor(double[] first, double[] again) {
    var logs = new double[first.length];
    for (int round = 0; round < logs.length; round++) {
      logs[round] = Math.log(again[round]) - Math.log(first[round]);
    }
    var differences = TwoSamples.condensed(logs);
    double centre = PairedSamples.centre(differences, CONFIDENCE).value();
    var deviations = Arrays.stream(differences).map(d -> Math.abs(d - centre)).toArray();
    double error =
        ERRORS_OF_CENTRE
            * DEVIATIONS_PER_MAD
            * Spread.quantile(deviations, 0.5)
            / Math.sqrt(differences.length);
    return Math.expm1(Math.abs(centre) + errorsOf95Percent(differences.length) * error);
  }

  /// Returns true if every configuration is known to be the best, or not to be.
  public boolean isDecided() {
    return ties.isEmpty();
  }

  /// Approximates Student's quantile from 6 values on.
  private static double errorsOf95Percent(int values) {
    return 1.96 + 2.4 / Math.max(1, values - 1);
  }

  /// Conditions for calling one of two configurations slower, the same for all pairs, the reference
  /// included.
  private record Limits(double noiseFloor, double confidence) {
    boolean slower(double[] times, double median, double[] than, double medianThan) {
      var excess = PairedSamples.excess(than, times, confidence);
      return median > medianThan
          && excess.confidence() >= confidence
          && excess.low() > 0
          && excess.value() > noiseFloor;
    }
  }

  private static Estimate negated(Estimate e) {
    return new Estimate(-e.value(), -e.high(), -e.low(), e.confidence());
  }
}
