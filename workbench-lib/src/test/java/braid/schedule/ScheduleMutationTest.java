package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Method;
import braid.schedule.Step.After;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The check finds mistakes planted into planned schedules. Swapping two steps of a lane that may
/// run in either order is no mistake: [Interleaving] identifies these swaps, and the check must
/// accept them.
final class ScheduleMutationTest {
  private static final int MUTATIONS = 2_000;
  private static final int MOST_RANKS = 5;
  private static final double LEAST_FOUND = 0.99;

  private final Random random = new Random(Long.getLong("braid.seed", 13));
  private final Map<Mutation.Kind, Integer> planted = new EnumMap<>(Mutation.Kind.class);
  private final List<String> falseAlarms = new ArrayList<>();
  private final List<String> missed = new ArrayList<>();
  private final List<String> redundant = new ArrayList<>();
  private int serial;

  @Test
  void plantedMistakesAreFoundAndEquivalentSchedulesPass() {
    var cases = new ArrayList<ScheduleCases.Case>();
    for (var way : ScheduleCases.ways()) {
      for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        cases.addAll(way.cases(ranks));
      }
    }
    var kinds = Mutation.Kind.values();
    for (int count = 0; count < MUTATIONS; ) {
      var each = cases.get(random.nextInt(cases.size()));
      var schedule = each.schedule();
      var mutation = Mutation.of(schedule, kinds[random.nextInt(kinds.length)], random);
      if (mutation.isPresent() && isMistake(each, schedule, mutation.get())) {
        count++;
      }
    }
    assertThat(falseAlarms).isEmpty();
    assertThat(redundant).as("steps that planners could omit").isEmpty();
    assertThat(missed.size())
        .as("%s", missed)
        .isLessThanOrEqualTo((int) (MUTATIONS * (1 - LEAST_FOUND)));
    assertThat(missed).as("of %s", planted).isEmpty();
    assertThat(planted.keySet()).containsExactly(kinds);
    assertThat(serial)
        .as("waits of schedules that are serial on purpose")
        .isLessThan(MUTATIONS / 50);
  }

  private boolean isMistake(ScheduleCases.Case of, Schedule schedule, Mutation mutation) {
    var findings = mutation.schedule().findings();
    if (mutation.kind().swaps() || findings.isEmpty()) {
      boolean equivalent =
          mutation.keepsData()
              && new Interleaving(mutation.schedule())
                  .keeps(new Interleaving(schedule).conflicts());
      if (equivalent && mutation.kind().swaps()) {
        if (!findings.isEmpty()) {
          falseAlarms.add("%s: %s: %s".formatted(of, mutation, findings.getFirst()));
        }
        return false;
      }
      if (equivalent && isSerialOnPurpose(of, mutation)) {
        serial++;
        return false;
      }
      if (findings.isEmpty()) {
        (equivalent ? redundant : missed).add("%s: %s".formatted(of, mutation));
      }
    }
    planted.merge(mutation.kind(), 1, Integer::sum);
    return true;
  }

  /// Returns whether the mutation removes the wait of an unfused multiplication for the collective
  /// beside it, which it does not depend on.
  private static boolean isSerialOnPurpose(ScheduleCases.Case of, Mutation mutation) {
    return of instanceof ScheduleCases.GemmCase gemm
        && gemm.spec().pattern().beside()
        && gemm.how().method() == Method.UNFUSED
        && mutation.of() instanceof After;
  }
}
