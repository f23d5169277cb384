package braid.model;

import java.time.Duration;

/// Leaves the tuning to the workbench: a pipeline takes the tuning that was decided for its problem
/// on this machine. If there is none, or library versions have changed since, building the pipeline
/// measures and decides, and keeps the decision if it is certain. Where no overlap is faster, the
/// tuning is unfused.
///
/// @param budget time for measuring, if nothing is decided
public record Auto(Duration budget) {
  public static final Duration DEFAULT_BUDGET = Duration.ofSeconds(10);

  public Auto {
    if (budget.isNegative() || budget.compareTo(Duration.ofDays(1)) > 0) {
      throw new BraidException(
          "budget must be 0 s..86400 s but was %s; try auto(Duration.ofSeconds(%d))"
              .formatted(budget, DEFAULT_BUDGET.toSeconds()));
    }
  }

  @Override
  public String toString() {
    return "auto, budget %d s".formatted(budget.toSeconds());
  }
}
