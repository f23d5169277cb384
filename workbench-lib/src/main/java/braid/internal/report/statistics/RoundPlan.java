package braid.internal.report.statistics;

import java.time.Duration;
import java.util.Arrays;

/// How many rounds a study gets: an exact number, or as many as make its times precise, within a
/// budget of time.
///
/// The decision to go on looks at the width of intervals and never at which configuration leads, so
/// it does not favor a winner.
///
/// @param first rounds measured in any case
/// @param mostRounds never more than these
/// @param budget no round begins that would probably end after it; counts from the first round
public record RoundPlan(int first, int mostRounds, Duration budget) {
  /// Beyond the fewest from which a winner can be declared at all, so that one disturbed round does
  /// not forbid it.
  private static final int SPARE_ROUNDS = 2;

  /// Added at once, at least: the ranks meet before every decision.
  private static final int LEAST_STEP = 4;

  public static RoundPlan exactly(int rounds) {
    return new RoundPlan(rounds, rounds, Duration.ZERO);
  }

  public static RoundPlan within(
      Duration budget, int configurations, int leastRounds, int mostRounds) {
    int declaring = Ranking.leastRounds(configurations) + SPARE_ROUNDS;
    return new RoundPlan(Math.max(leastRounds, declaring), mostRounds, budget);
  }

  /// How many rounds to add; 0 to stop.
  ///
  /// @param nanos times so far: the reference, the reference again, every configuration
  /// @param elapsedNanos how long those rounds took
  public int more(long[][] nanos, long elapsedNanos) {
    int rounds = nanos[0].length;
    int left = mostRounds - rounds;
    if (left <= 0 || elapsedNanos >= budget.toNanos()) {
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
    return (int) Math.min(Math.min(step, left), affordable);
  }
}
