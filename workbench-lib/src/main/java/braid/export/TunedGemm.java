package braid.export;

import braid.evidence.Decision;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.Collection;
import java.util.Locale;

/// A measured choice: the tuning of a problem, and its time beside the unfused reference.
///
/// @param ranks ranks that measured it
/// @param medianNanos median time of the tuning
/// @param referenceNanos median time of the unfused reference; equal to the other if that is chosen
public record TunedGemm(
    GemmSpec problem,
    Overlap tuning,
    int ranks,
    double medianNanos,
    double referenceNanos,
    MeasuredOn machine) {
  public TunedGemm {
    if (ranks < 2) {
      throw new BraidException(
          "a decision needs 2 ranks or more but was measured on %d; run it on the ranks of the layer"
              .formatted(ranks));
    }
    checkTime("median", medianNanos);
    checkTime("reference", referenceNanos);
    tuning.check(problem, ranks);
  }

  /// Returns the decision of a study.
  public static TunedGemm of(GemmSpec problem, Decision decision) {
    if (!decision.problem().equals(problem.toString())) {
      throw new BraidException(
          "the decision must be on %s but is on %s; give its problem"
              .formatted(problem, decision.problem()));
    }
    var study = decision.study().cast(Overlap.class);
    var tuning = Decision.taken(study);
    return new TunedGemm(
        problem,
        tuning,
        study.ranks(),
        study.medianNanos(tuning),
        study.unfusedMedianNanos(),
        MeasuredOn.of(decision));
  }

  private static void checkTime(String name, double nanos) {
    if (!(nanos > 0) || Double.isInfinite(nanos)) {
      throw new BraidException(
          "the %s of a decision must be more than 0 ns and finite but was %s; give the median of its times"
              .formatted(name, nanos));
    }
  }

  /// Returns the machine of decisions that go into one file.
  static MeasuredOn machine(Collection<TunedGemm> decisions) {
    if (decisions.isEmpty()) {
      throw new BraidException("an export needs 1 decision or more but has none; tune a problem");
    }
    var first = decisions.iterator().next();
    for (var each : decisions) {
      if (!each.machine.equals(first.machine) || each.ranks != first.ranks) {
        throw new BraidException(
            "decisions of one file must have one machine and one number of ranks but have `%s` with %d and `%s` with %d; export them apart"
                .formatted(first.machine.device(), first.ranks, each.machine.device(), each.ranks));
      }
    }
    return first.machine;
  }

  /// Returns problem, tuning and times in one line.
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s: %s, %.1f us, unfused %.1f us",
        problem,
        tuning,
        medianNanos / 1e3,
        referenceNanos / 1e3);
  }
}
