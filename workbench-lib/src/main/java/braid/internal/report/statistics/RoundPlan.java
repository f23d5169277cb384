package braid.internal.report.statistics;

import java.time.Duration;
import java.util.Arrays;

/// Number of rounds of a study: an exact number, or as many as make its times precise within a time
/// budget.
///
/// The decision to continue depends on the width of confidence intervals, never on which
/// configuration leads, so it does not favor any configuration.
///
/// @param first number of rounds that are always measured
/// @param mostRounds maximum number of rounds
/// @param budget time limit, counted from the first round; no round should end later
public record RoundPlan(int first, int mostRounds, Duration budget) {
  /// Rounds in addition to the fewest that can declare a winner, so that one disturbed round does
  /// not prevent a winner.
  private static final int SPARE_ROUNDS = 2;

  /// Fewest rounds to add at once, because the ranks must synchronize for every decision.
  private static final int LEAST_STEP = 4;

  public static RoundPlan exactly(int rounds) {
    return new RoundPlan(rounds, rounds, Duration.ZERO);
  }

  public static RoundPlan within(
      Duration budget, int configurations, int leastRounds, int mostRounds) {
    int declaring = Ranking.leastRounds(configurations) + SPARE_ROUNDS;
    return new RoundPlan(Math.max(leastRounds, declaring), mostRounds, budget);
  }

  /// Returns the number of rounds to add; 0 to stop.
  ///
  /// @param nanos times so far, one row each: the reference, the reference again, every
  ///   configuration
  /// @param elapsedNanos duration of those rounds
  public int more(long[][] nanos, long elapsedNanos) {
    int rounds = nanos[0].length;
    int remaining = mostRounds - rounds;
    if (remaining <= 0 || elapsedNanos >= budget.toNanos()) {
      return 0;
    }
    var times =
        Arrays.stream(nanos).map(row -> Arrays.stream(row).asDoubleStream().toArray()).toList();
    var precision = Ranking.precision(times.getFirst(), times.subList(2, times.size()));
    if (precision.isEnough()) {
      return 0;
    }
    long wanted = precision.roundsFor(Precision.GOAL) - rounds;
    long step = Math.max(LEAST_STEP, Math.min(wanted, rounds / 2));
    double roundNanos = Math.max(1.0, elapsedNanos / (double) rounds);
    long affordable = (long) ((budget.toNanos() - elapsedNanos) / roundNanos);
    return (int) Math.min(Math.min(step, remaining), affordable);
  }
}
