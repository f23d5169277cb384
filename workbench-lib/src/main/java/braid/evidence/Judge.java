package braid.evidence;

import braid.evidence.Comparison.Row;
import braid.evidence.Comparison.Verdict;
import braid.internal.report.statistics.Spread;
import braid.internal.report.statistics.TwoSamples;
import braid.model.Estimate;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/// Judges the configurations of two studies whose machine may have changed between them.
///
/// Two numbers are known of each configuration: the change of its time, and its change *beside the
/// reference*, that of the quotient of its time and the reference's time in the same round. The
/// second one cancels what slows a whole run. Neither is enough alone. A busy machine changes all
/// times; and it changes quotients too, since it delays computation more than communication, and
/// configurations differ in both. So:
///
/// - If the reference moved, time alone says nothing: a configuration is the same if its change
///   beside the reference is, and different only if that change is more than twice the reference's
///   own. Anything else is `MACHINE_DIFFERED`.
/// - If the reference did not move, a configuration is different only if its time is, and its
///   change beside the reference agrees: it exceeds the farthest that the reference may have moved,
///   and its interval excludes zero, or lies beyond the threshold where the reference is not surely
///   the same.
/// - If both studies pool enough starts, a start counts as one value, so the intervals contain what
///   differs from start to start. Then a change needs an interval that excludes zero, and a value
///   beyond the threshold; otherwise its whole interval must lie beyond the threshold, which allows
///   for two starts that differ.
/// - If the noise is too large to call anything the same, nothing is called different either: the
///   times of a very busy machine have several modes, between which a median jumps.
final class Judge {
  /// Movements of the reference that a change beside it must exceed. In simulations of busy
  /// machines, configurations moved up to 1.5 times as much beside the reference as the reference
  /// itself.
  private static final double MOVEMENTS = 2;

  private final double[] firstReference;
  private final double[] secondReference;
  private final double threshold;
  private final double floor;
  private final double drift;
  private final double confidence;
  private final Starts starts;
  private final int values;
  private final double sure;
  private final Estimate reference;

  /// Rounds of each start of the two studies.
  record Starts(List<Integer> first, List<Integer> second) {
    /// Returns the number of starts of the study that has fewer.
    int fewest() {
      return Math.min(first.size(), second.size());
    }

    /// Returns true if intervals of that confidence can come from one value per start.
    boolean suffice(double confidence) {
      return fewest() >= TwoSamples.leastRounds(confidence);
    }
  }

  /// @param firstReference time of the reference per round
  /// @param threshold share within which a difference does not matter
  /// @param floor larger noise floor of the two studies, which shrinks with more rounds
  /// @param drift larger drift within one of the two studies, which does not
  /// @param confidence confidence of each interval
  /// @param starts starts whose rounds the two studies pool
  Judge(
      double[] firstReference,
      double[] secondReference,
      double threshold,
      double floor,
      double drift,
      double confidence,
      Starts starts) {
    this.firstReference = firstReference;
    this.secondReference = secondReference;
    this.threshold = threshold;
    this.floor = floor;
    this.drift = drift;
    this.confidence = confidence;
    this.starts = starts;
    boolean ofStarts = starts.suffice(confidence);
    values = ofStarts ? starts.fewest() : Math.min(firstReference.length, secondReference.length);
    sure = ofStarts ? 0 : threshold;
    reference = excess(firstReference, secondReference);
  }

  /// Returns the row of the reference.
  ///
  /// @param alone true if its change is a verdict of its own, not one on the machine
  Row reference(String name, boolean alone) {
    Rule rule =
        narrower -> {
          var then = narrowed(reference, narrower);
          return moved(then) && !alone ? Verdict.MACHINE_DIFFERED : verdict(then, margin(narrower));
        };
    var verdict = rule.verdict(1);
    return new Row(
        name,
        median(firstReference),
        median(secondReference),
        reference,
        Optional.empty(),
        verdict,
        more(verdict, rule));
  }

  /// Returns the row of a configuration.
  ///
  /// @param alone true if times are judged whatever the reference did
  Row configuration(String name, double[] first, double[] second, boolean alone) {
    var time = excess(first, second);
    var beside =
        excess(quotients(first, firstReference), quotients(second, secondReference))
            .withValue((1 + time.value()) / (1 + reference.value()) - 1);
    Rule rule =
        narrower ->
            alone
                ? verdict(narrowed(time, narrower), margin(narrower))
                : verdict(
                    narrowed(time, narrower),
                    narrowed(beside, narrower),
                    narrowed(reference, narrower),
                    narrower);
    var verdict = rule.verdict(1);
    return new Row(
        name,
        median(first),
        median(second),
        time,
        Optional.of(beside),
        verdict,
        more(verdict, rule));
  }

  private interface Rule {
    /// @param narrower factor of the intervals' widths
    Verdict verdict(double narrower);
  }

  private Verdict verdict(Estimate time, Estimate beside, Estimate reference, double narrower) {
    double ownMargin = Math.max(threshold, floor * narrower);
    var ofTime = verdict(time, margin(narrower));
    var ofQuotient = verdict(beside, ownMargin);
    boolean calm = ownMargin <= Math.max(threshold, Comparison.MOST_MARGIN_OF_SAME);
    if (moved(reference)) {
      boolean exceeds = Math.abs(beside.value()) > MOVEMENTS * Math.abs(reference.value());
      return ofQuotient == Verdict.SAME || (calm && isClaim(ofQuotient) && exceeds)
          ? ofQuotient
          : Verdict.MACHINE_DIFFERED;
    }
    boolean still = verdict(reference, margin(narrower)) == Verdict.SAME;
    double least = still ? 0 : threshold;
    double farthest = Math.max(Math.abs(reference.low()), Math.abs(reference.high()));
    boolean agree =
        calm
            && (ofTime == Verdict.SLOW ? beside.low() > least : beside.high() < -least)
            && Math.abs(beside.value()) > Math.max(ownMargin, farthest);
    return isClaim(ofTime) && !agree ? Verdict.UNDECIDED : ofTime;
  }

  /// Returns true if the reference surely changed by more than the threshold. A noise that is
  /// larger is no excuse: a busy machine is noisy too.
  private boolean moved(Estimate reference) {
    return reference.confidence() >= confidence
        && (reference.low() > threshold || reference.high() < -threshold);
  }

  private static boolean isClaim(Verdict verdict) {
    return verdict == Verdict.SLOW || verdict == Verdict.FAST;
  }

  private double margin(double narrower) {
    return Math.max(threshold, Math.max(floor * narrower, drift));
  }

  private Verdict verdict(Estimate difference, double margin) {
    if (difference.confidence() < confidence) {
      return Verdict.UNDECIDED;
    }
    if (difference.low() > sure && difference.value() > margin) {
      return Verdict.SLOW;
    }
    if (difference.high() < -sure && difference.value() < -margin) {
      return Verdict.FAST;
    }
    boolean within = difference.low() >= -margin && difference.high() <= margin;
    boolean meaningful = margin <= Math.max(threshold, Comparison.MOST_MARGIN_OF_SAME);
    return within && meaningful ? Verdict.SAME : Verdict.UNDECIDED;
  }

  /// Intervals and the noise floor shrink with the square root of the number of rounds, or starts;
  /// a drift remains.
  private OptionalInt more(Verdict verdict, Rule rule) {
    if (verdict != Verdict.UNDECIDED) {
      return OptionalInt.empty();
    }
    int least = Math.max(values + 1, TwoSamples.leastRounds(confidence));
    for (int all = least; all <= Study.MAX_REPEATS; all++) {
      if (rule.verdict(Math.sqrt(values / (double) all)) != Verdict.UNDECIDED) {
        return OptionalInt.of(all - values);
      }
    }
    return OptionalInt.empty();
  }

  /// Returns the estimate that more rounds would give, if the value stays.
  private Estimate narrowed(Estimate estimate, double narrower) {
    if (narrower == 1) {
      return estimate;
    }
    double half = narrower * (estimate.high() - estimate.low()) / 2;
    return new Estimate(
        estimate.value(), estimate.value() - half, estimate.value() + half, confidence);
  }

  /// Returns the change between two runs: that of the printed medians, in an interval that contains
  /// it.
  private Estimate excess(double[] first, double[] second) {
    boolean ofStarts = starts.suffice(confidence);
    return TwoSamples.excess(
            ofStarts ? TwoSamples.ofStarts(first, starts.first()) : TwoSamples.independent(first),
            ofStarts
                ? TwoSamples.ofStarts(second, starts.second())
                : TwoSamples.independent(second),
            confidence)
        .withValue(median(second) / median(first) - 1);
  }

  private static double[] quotients(double[] times, double[] reference) {
    var quotients = new double[times.length];
    Arrays.setAll(quotients, round -> times[round] / reference[round]);
    return quotients;
  }

  private static double median(double[] times) {
    return Spread.quantile(times, 0.5);
  }
}
