package braid.internal.report.statistics;

import braid.internal.report.statistics.RankedConfigurations.Standing;
import braid.internal.report.statistics.RankedConfigurations.Verdict;
import braid.model.Estimate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/// The best of several configurations, how certain that is, and whether any beats the unfused
/// reference at all. A difference is the quotient of the two medians minus 1, so it agrees with the
/// times beside it; its interval is that of [PairedSamples], which compares times within a round.
///
/// One configuration is called better than another only if the interval of their difference
/// excludes zero and the difference exceeds the noise floor. Two are called equal only if neither
/// is better and the whole interval lies within the margin; otherwise the pair is undecided. The
/// intervals of all pairs, including the reference, hold together with 95% confidence. So at most
/// one study in twenty prefers one of several equal configurations, however many there are. If the
/// rounds of several starts are pooled, an interval also contains what the starts say, each one
/// value: of few starts, the difference in each.
///
/// @param noiseFloor noise floor as a share, for example 0.006
/// @param margin share within which an interval must lie for two times to be called equal
/// @param excess share by which each configuration takes longer than the reference
/// @param verdicts verdict on each configuration against the reference
/// @param best index of the fastest configuration that beats unfused, or `UNFUSED`
/// @param standings standing of each configuration beside the best
/// @param byTime configurations, fastest first
/// @param excessOverBest difference of each configuration from the best
/// @param precision precision of the times
public record Ranking(
    double noiseFloor,
    double margin,
    List<Estimate> excess,
    List<Verdict> verdicts,
    int best,
    List<Standing> standings,
    List<Integer> byTime,
    List<Estimate> excessOverBest,
    Precision precision) {
  public static final int UNFUSED = -1;
  public static final double CONFIDENCE = 0.95;

  /// Least margin of equal times: a smaller difference seldom matters to a schedule, and few rounds
  /// cannot show it.
  public static final double LEAST_MARGIN = 0.03;

  /// Largest margin at which two times are called equal.
  public static final double MOST_MARGIN = 0.10;

  /// Factor between the median absolute deviation and the standard deviation of a normal
  /// distribution.
  private static final double DEVIATIONS_PER_MAD = 1.4826;

  /// Standard errors of a Hodges–Lehmann estimate per deviation of the mean, if values are normal.
  private static final double ERRORS_OF_CENTRE = 1.0233;

  /// Ranks configurations.
  ///
  /// @param unfused time of the reference in each round
  /// @param unfusedAgain second time of the reference in each round; used for the noise floor and
  ///   the median only, because a mean of two times varies less than one
  /// @param times times of each configuration in each round
  public static Ranking of(double[] unfused, double[] unfusedAgain, List<double[]> times) {
    return of(unfused, unfusedAgain, times, List.of());
  }

  /// Ranks configurations of several starts.
  ///
  /// @param starts rounds of each start; empty for one start
  public static Ranking of(
      double[] unfused, double[] unfusedAgain, List<double[]> times, List<Integer> starts) {
    var limits = new Limits(noiseFloor(unfused, unfusedAgain), ofEach(times.size()), starts);
    var both = Arrays.copyOf(unfused, 2 * unfused.length);
    System.arraycopy(unfusedAgain, 0, both, unfused.length, unfusedAgain.length);
    double reference = Spread.quantile(both, 0.5);
    var medians = times.stream().mapToDouble(t -> Spread.quantile(t, 0.5)).toArray();
    var excess = limits.differences(times, medians, unfused, reference);
    var verdicts = excess.stream().map(limits::verdict).toList();
    var byTime =
        IntStream.range(0, times.size())
            .boxed()
            .sorted(Comparator.comparingDouble(c -> medians[c]))
            .toList();
    int best =
        byTime.stream().filter(c -> verdicts.get(c) == Verdict.BETTER).findFirst().orElse(UNFUSED);
    var excessOverBest =
        best == UNFUSED
            ? excess
            : limits.differences(times, medians, times.get(best), medians[best]);
    var standings = new ArrayList<Standing>();
    for (int c = 0; c < times.size(); c++) {
      standings.add(c == best ? Standing.BEST : Standing.of(limits.verdict(excessOverBest.get(c))));
    }
    return new Ranking(
        limits.noiseFloor(),
        limits.margin(),
        excess,
        verdicts,
        best,
        List.copyOf(standings),
        byTime,
        excessOverBest,
        precision(unfused, times));
  }

  /// Returns this ranking without verdicts: of times that are no evidence.
  public Ranking unjudged() {
    int count = excess.size();
    return new Ranking(
        noiseFloor,
        margin,
        excess,
        Collections.nCopies(count, Verdict.UNJUDGED),
        UNFUSED,
        Collections.nCopies(count, Standing.BEHIND),
        byTime,
        excessOverBest,
        precision);
  }

  /// Returns the configurations with that standing, fastest first.
  public List<Integer> configurations(Standing standing) {
    return byTime.stream().filter(c -> standings.get(c) == standing).toList();
  }

  /// Returns the configurations with that verdict, fastest first.
  public List<Integer> configurations(Verdict verdict) {
    return byTime.stream().filter(c -> verdicts.get(c) == verdict).toList();
  }

  /// Returns the precision of the times, without ranking.
  static Precision precision(double[] unfused, List<double[]> times) {
    double confidence = ofEach(times.size());
    return Precision.of(
        unfused,
        times,
        times.stream().map(t -> PairedSamples.excess(unfused, t, confidence)).toList());
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
    double missed = 1 - excess.getFirst().confidence();
    return Math.max(0, 1 - pairs(excess.size()) * missed);
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

  /// Returns the approximate total number of rounds that decide whether the configuration is as
  /// fast as the best: intervals and the noise floor shrink with the square root of the number.
  /// Empty if not even the largest number would.
  public OptionalInt decidingRounds(int configuration, int most) {
    var difference = excessOverBest.get(configuration);
    int rounds = precision.rounds();
    double half = (difference.high() - difference.low()) / 2;
    double size = Math.abs(difference.value());
    return IntStream.rangeClosed(Math.max(rounds + 1, leastRounds(excess.size())), most)
        .filter(
            all -> {
              double narrower = Math.sqrt(rounds / (double) all);
              var then =
                  new Estimate(
                      size, size - half * narrower, size + half * narrower, ofEach(excess.size()));
              return new Limits(noiseFloor * narrower, then.confidence(), List.of()).verdict(then)
                  != Verdict.UNDECIDED;
            })
        .findFirst();
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
    return !standings.contains(Standing.UNDECIDED);
  }

  /// Approximates Student's quantile from 6 values on.
  private static double errorsOf95Percent(int values) {
    return 1.96 + 2.4 / Math.max(1, values - 1);
  }

  /// Conditions of a verdict, the same for all pairs, the reference included.
  private record Limits(double noiseFloor, double confidence, List<Integer> starts) {
    double margin() {
      return Math.max(LEAST_MARGIN, noiseFloor);
    }

    /// Returns the difference of each of the times from others, whose median is given.
    List<Estimate> differences(
        List<double[]> times, double[] medians, double[] baseline, double medianThan) {
      return IntStream.range(0, medians.length)
          .mapToObj(
              c ->
                  ofStarts(
                      PairedSamples.excess(baseline, times.get(c), confidence)
                          .withValue(medians[c] / medianThan - 1),
                      baseline,
                      times.get(c)))
          .toList();
    }

    /// Widens an interval to contain that of the starts, each of which is one value. Of few starts
    /// that is the whole range.
    private Estimate ofStarts(Estimate difference, double[] baseline, double[] times) {
      if (starts.size() < 2) {
        return difference;
      }
      var between =
          PairedSamples.excess(
              TwoSamples.ofStarts(baseline, starts),
              TwoSamples.ofStarts(times, starts),
              confidence);
      return new Estimate(
          difference.value(),
          Math.min(difference.low(), between.low()),
          Math.max(difference.high(), between.high()),
          difference.confidence());
    }

    /// Judges a difference, negative if the time is shorter.
    Verdict verdict(Estimate difference) {
      if (difference.confidence() < confidence) {
        return Verdict.UNDECIDED;
      }
      if (difference.low() > 0 && difference.value() > noiseFloor) {
        return Verdict.SLOWER;
      }
      // The inverse, so that two configurations are judged alike whichever comes first.
      if (difference.high() < 0 && 1 / (1 + difference.value()) - 1 > noiseFloor) {
        return Verdict.BETTER;
      }
      boolean within = -margin() <= difference.low() && difference.high() <= margin();
      return within && margin() <= MOST_MARGIN ? Verdict.EQUAL : Verdict.UNDECIDED;
    }
  }
}
