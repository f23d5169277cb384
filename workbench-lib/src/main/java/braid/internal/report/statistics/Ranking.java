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
/// One thing is called better than another only where the interval of their difference excludes
/// zero, the difference exceeds the noise floor, and the medians of their times agree. The
/// intervals of all pairs, the reference among them, hold together with 95% confidence. So at most
/// one study in twenty prefers one of several equal configurations, however many there are.
///
/// @param noiseFloor a share, for example 0.006
/// @param saved for each configuration the share of the unfused time that it saves
/// @param best the index of the fastest configuration that beats unfused, or `UNFUSED`
/// @param ties the others that cannot be told from the best, fastest first
/// @param precision how exactly the times are known
public record Ranking(
    double noiseFloor, List<Estimate> saved, int best, List<Integer> ties, Precision precision) {
  public static final int UNFUSED = -1;
  public static final double CONFIDENCE = 0.95;

  /// Two measurements of the same thing have this factor between the median of their absolute
  /// deviations and a standard deviation, if they are normal.
  private static final double DEVIATIONS_PER_MAD = 1.4826;

  /// Standard errors of a Hodges–Lehmann estimate per deviation of the mean, if values are normal.
  private static final double ERRORS_OF_CENTRE = 1.0233;

  /// @param unfused the reference's time in each round
  /// @param unfusedAgain its second time in each round; it serves the noise floor alone, because a
  ///   mean of two times is no twin of one
  /// @param times for each configuration its time in each round
  public static Ranking of(double[] unfused, double[] unfusedAgain, List<double[]> times) {
    double noiseFloor = noiseFloor(unfused, unfusedAgain);
    double confidence = ofEach(times.size());
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
            .filter(c -> medians[c] < reference)
            .filter(c -> exceeds(negated(saved.get(c)), noiseFloor, confidence))
            .findFirst()
            .orElse(UNFUSED);
    var bestTimes = best == UNFUSED ? unfused : times.get(best);
    double bestMedian = best == UNFUSED ? reference : medians[best];
    var ties = new ArrayList<Integer>();
    for (int c : byTime) {
      boolean slower =
          medians[c] > bestMedian
              && exceeds(
                  PairedSamples.excess(bestTimes, times.get(c), confidence),
                  noiseFloor,
                  confidence);
      if (c != best && !slower) {
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

  /// How exactly the times are known, without ranking them.
  static Precision precision(double[] unfused, List<double[]> times) {
    return Precision.of(unfused, times, excess(unfused, times));
  }

  private static List<Estimate> excess(double[] unfused, List<double[]> times) {
    double confidence = ofEach(times.size());
    return times.stream().map(t -> PairedSamples.excess(unfused, t, confidence)).toList();
  }

  /// The confidence of one pair's interval with which those of all pairs hold together.
  private static double ofEach(int configurations) {
    return 1 - (1 - CONFIDENCE) / pairs(configurations);
  }

  /// The reference is one of those that are compared.
  private static int pairs(int configurations) {
    return configurations * (configurations + 1) / 2;
  }

  /// The confidence with which the intervals of all pairs hold together.
  public double confidence() {
    double missed = 1 - saved.getFirst().confidence();
    return Math.max(0, 1 - pairs(saved.size()) * missed);
  }

  /// The fewest rounds from which one of so many configurations can be called better than another.
  public static int leastRounds(int configurations) {
    int rounds = 1;
    while (PairedSamples.mostConfidence(rounds) < ofEach(configurations)) {
      rounds++;
    }
    return rounds;
  }

  /// How far two measurements of the same thing lie apart, as an interval's farther end. Its width
  /// follows from the median absolute deviation, so single disturbed rounds hardly count.
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

  /// Close to Student's quantile from 6 values on.
  private static double errorsOf95Percent(int values) {
    return 1.96 + 2.4 / Math.max(1, values - 1);
  }

  private static boolean exceeds(Estimate share, double noiseFloor, double confidence) {
    return share.confidence() >= confidence && share.low() > 0 && share.value() > noiseFloor;
  }

  private static Estimate negated(Estimate e) {
    return new Estimate(-e.value(), -e.high(), -e.low(), e.confidence());
  }
}
