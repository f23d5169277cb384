package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.schedule.Step.After;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// Advice of the check that is followed word for word leads to a right schedule.
final class ScheduleAdviceTest {
  private static final int MISTAKES = 300;
  private static final int MOST_RANKS = 5;

  private final Random random = new Random(Long.getLong("braid.seed", 17));

  /// The mistakes leave out or misdirect one step that orders others.
  @Test
  void adviceAboutOneMistakeMakesAScheduleRight() {
    var wrong = new ArrayList<String>();
    int count = 0;
    int lines = 0;
    while (count < MISTAKES) {
      var cases = cases(1 + random.nextInt(MOST_RANKS));
      var schedule = cases.get(random.nextInt(cases.size())).schedule();
      var kinds =
          List.of(Mutation.Kind.REMOVED, Mutation.Kind.WRONG_RANK, Mutation.Kind.WRONG_INDEX);
      var mutation = Mutation.of(schedule, kinds.get(random.nextInt(kinds.size())), random);
      if (mutation.isPresent() && orders(mutation.get().of())) {
        var found = mutation.get().schedule().findings();
        if (!found.isEmpty()) {
          count++;
          lines += found.size();
          follow(mutation.get().schedule(), "%s: %s".formatted(schedule, mutation.get()), wrong);
        }
      }
    }
    assertThat(wrong).isEmpty();
    assertThat(lines).isLessThan(count + count / 10);
  }

  /// The mistakes leave out all steps of a kind on one lane.
  @Test
  void adviceAboutManyMistakesMakesAScheduleRight() {
    var wrong = new ArrayList<String>();
    for (int count = 0; count < MISTAKES / 6; ) {
      var cases = cases(2 + random.nextInt(MOST_RANKS - 1));
      var schedule = cases.get(random.nextInt(cases.size())).schedule();
      int rank = random.nextInt(schedule.ranks());
      var steps = schedule.steps(rank);
      var left = steps.get(random.nextInt(steps.size()));
      if (orders(left)) {
        count++;
        var mistaken =
            schedule.without(
                rank,
                step -> step.getClass() == left.getClass() && step.lane().equals(left.lane()));
        follow(mistaken, "%s without those like %s of %d".formatted(schedule, left, rank), wrong);
      }
    }
    assertThat(wrong).isEmpty();
  }

  private static boolean orders(Step step) {
    return step instanceof Wait || step instanceof Signal || step instanceof After;
  }

  private List<ScheduleCases.Case> cases(int ranks) {
    var ways = ScheduleCases.ways();
    var cases = ways.get(random.nextInt(ways.size())).cases(ranks);
    return cases.isEmpty() ? cases(ranks) : cases;
  }

  /// Follows the advice of the first line until there is none.
  private static void follow(Schedule mistaken, String name, List<String> wrong) {
    var followed = new ArrayList<String>();
    var schedule = mistaken;
    for (var found = schedule.findings(); !found.isEmpty(); found = schedule.findings()) {
      if (followed.contains(found.getFirst()) || followed.size() > 200) {
        wrong.add(name + ": " + followed + " leads to " + found);
        return;
      }
      followed.add(found.getFirst());
      try {
        schedule = Advice.follow(schedule, found.getFirst());
      } catch (AssertionError e) {
        wrong.add(name + ": " + followed + " is not understood: " + e.getMessage());
        return;
      }
    }
  }
}
