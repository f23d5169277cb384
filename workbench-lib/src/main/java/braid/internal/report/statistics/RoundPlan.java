package braid.internal.report.statistics;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/// Number of rounds of a study: an exact number, or as many as make its times precise, or its
/// ranking decided, within a time budget.
///
/// The decision to continue depends on the width of confidence intervals, never on which
/// configuration leads, so it does not favor any configuration. A plan until the ranking is decided
/// looks at it, and a chance that is taken often enough comes up: so it looks only after each
/// doubling of the rounds, and stops at a ranking that two looks agree on.
///
/// @param first number of rounds that are always measured
/// @param mostRounds maximum number of rounds
/// @param budget time limit, counted from the first round; no round should end later
/// @param untilDecided time limit of further rounds until the ranking is decided; zero for none
public record RoundPlan(int first, int mostRounds, Duration budget, Duration untilDecided) {
  /// Rounds in addition to the fewest that can declare a winner, so that one disturbed round does
  /// not prevent a winner.
  private static final int SPARE_ROUNDS = 2;

  /// Fewest rounds to add at once, because the ranks must synchronize for every decision.
  private static final int LEAST_STEP = 4;

  /// Longest time of the first rounds, if twice the budget is shorter. Fewer rounds declare
  /// nothing, but nobody waits longer to read that.
  private static final Duration LONGEST_FIRST = Duration.ofMinutes(2);

  /// Fewest rounds of any study within a budget.
  private static final int FEWEST = 3;

  public static RoundPlan exactly(int rounds) {
    return new RoundPlan(rounds, rounds, Duration.ZERO, Duration.ZERO);
  }

  public static RoundPlan within(
      Duration budget, int configurations, int leastRounds, int mostRounds) {
    int declaring = Ranking.leastRounds(configurations) + SPARE_ROUNDS;
    return new RoundPlan(Math.max(leastRounds, declaring), mostRounds, budget, Duration.ZERO);
  }

  /// Returns the plan that continues beyond the budget until the ranking is decided.
  ///
  /// @param limit time limit, counted from the first round
  public RoundPlan untilDecided(Duration limit) {
    return new RoundPlan(first, mostRounds, budget, limit);
  }

  /// Returns the plan of each of several builds, which together do what this one does.
  public RoundPlan ofEach(int builds) {
    return new RoundPlan(
        Math.ceilDiv(first, builds),
        Math.ceilDiv(mostRounds, builds),
        budget.dividedBy(builds),
        untilDecided.dividedBy(builds));
  }

  /// Returns the number of rounds that are always measured.
  ///
  /// @param roundNanos duration of the first one
  /// @param builds number of builds that have such a plan each
  public int firstAfforded(long roundNanos, int builds) {
    if (budget.isZero()) {
      return first;
    }
    long limitNanos = Math.max(2 * budget.toNanos(), LONGEST_FIRST.toNanos() / builds);
    return Math.clamp(limitNanos / Math.max(1, roundNanos), Math.min(FEWEST, first), first);
  }

  /// Returns the number of rounds to add; 0 to stop.
  ///
  /// @param nanos times so far, one row each: the reference, the reference again, every
  ///   configuration
  /// @param elapsedNanos duration of those rounds
  public int more(long[][] nanos, long elapsedNanos) {
    int rounds = nanos[0].length;
    int remaining = mostRounds - rounds;
    if (remaining <= 0) {
      return 0;
    }
    var times =
        Arrays.stream(nanos).map(row -> Arrays.stream(row).asDoubleStream().toArray()).toList();
    var configurations = times.subList(2, times.size());
    double roundNanos = Math.max(1.0, elapsedNanos / (double) rounds);
    if (elapsedNanos < budget.toNanos()) {
      var precision = Ranking.precision(times.getFirst(), configurations);
      if (!precision.isEnough()) {
        long wanted = precision.roundsFor(Precision.GOAL) - rounds;
        long step = Math.max(LEAST_STEP, Math.min(wanted, rounds / 2));
        int more = affordable(Math.min(step, remaining), budget, elapsedNanos, roundNanos);
        if (more > 0) {
          return more;
        }
      }
    }
    return elapsedNanos < untilDecided.toNanos() && !decidedTwice(times)
        ? affordable(Math.min(rounds, remaining), untilDecided, elapsedNanos, roundNanos)
        : 0;
  }

  private static int affordable(long rounds, Duration limit, long elapsedNanos, double roundNanos) {
    return (int) Math.min(rounds, (long) ((limit.toNanos() - elapsedNanos) / roundNanos));
  }

  /// Returns true if all rounds and the first half of them lead to the same decided ranking.
  private static boolean decidedTwice(List<double[]> times) {
    var now = ranking(times);
    var before = ranking(times.stream().map(row -> Arrays.copyOf(row, row.length / 2)).toList());
    return now.isDecided() && before.best() == now.best();
  }

  private static Ranking ranking(List<double[]> times) {
    return Ranking.of(times.get(0), times.get(1), times.subList(2, times.size()));
  }
}
