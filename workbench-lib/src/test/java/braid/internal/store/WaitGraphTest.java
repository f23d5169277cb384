package braid.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.rank.BlockedWait;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks whose reports and answers are delayed at random, compared with the whole state, which no
/// rank sees.
class WaitGraphTest {
  private static final int PROGRAMS = 800;

  /// Ranks that run programs of barriers, and a network that delays each message.
  private static final class World {
    private final Random random;
    private final WaitGraph graph = new WaitGraph();
    private final List<Rank> ranks = new ArrayList<>();
    private final List<Set<Integer>> barriers = new ArrayList<>();

    World(Random random) {
      this.random = random;
    }

    /// Draws barriers of random ranks, which every rank reaches in the same order.
    static World ordered(Random random, int size) {
      var world = new World(random);
      IntStream.range(0, size).forEach(rank -> world.ranks.add(world.new Rank(rank)));
      for (int barrier = 0; barrier < 12; barrier++) {
        var members = new TreeSet<>(Set.of(random.nextInt(size)));
        while (members.size() < 2 || random.nextBoolean()) {
          members.add(random.nextInt(size));
        }
        int number = world.barriers.size();
        world.barriers.add(members);
        members.forEach(rank -> world.ranks.get(rank).program.add(number));
      }
      return world;
    }

    /// Swaps two barriers of a rank, which makes most programs hang.
    static World swapped(Random random, int size) {
      var world = ordered(random, size);
      var program = world.ranks.get(random.nextInt(size)).program;
      if (program.size() > 1) {
        int index = random.nextInt(program.size() - 1);
        Collections.swap(program, index, index + 1);
      }
      return world;
    }

    private boolean isMissing(int barrier, int rank) {
      return !ranks.get(rank).arrived.contains(barrier);
    }

    /// Returns the ranks that can never go on.
    private Set<Integer> stuck() {
      var stuck = new TreeSet<Integer>();
      ranks.stream()
          .filter(rank -> rank.waits && !rank.isFulfilled())
          .forEach(r -> stuck.add(r.number));
      IntPredicate mayGoOn =
          rank ->
              barriers.get(ranks.get(rank).barrier()).stream()
                  .filter(other -> isMissing(ranks.get(rank).barrier(), other))
                  .allMatch(other -> !stuck.contains(other) && !ranks.get(other).isDone());
      while (stuck.removeIf(mayGoOn::test)) {
        // Until nothing changes.
      }
      return stuck;
    }

    /// Runs random events until every rank is done or knows its circle, or for so many events.
    void run(int events) {
      for (int i = 0; i < events; i++) {
        ranks.get(random.nextInt(ranks.size())).event();
      }
    }

    private final class Rank {
      private final int number;
      private final List<Integer> program = new ArrayList<>();
      private final Set<Integer> arrived = new TreeSet<>();
      private final Deque<BlockedWait> reports = new ArrayDeque<>();
      private final Deque<BlockedWait.Answer> answers = new ArrayDeque<>();
      private int step;
      private boolean waits;
      private long seen;
      private boolean alone;
      private String circle = "";

      Rank(int number) {
        this.number = number;
      }

      boolean isDone() {
        return step == program.size();
      }

      int barrier() {
        return program.get(step);
      }

      boolean isFulfilled() {
        return missing().isEmpty();
      }

      private List<Integer> missing() {
        return barriers.get(barrier()).stream().filter(rank -> isMissing(barrier(), rank)).toList();
      }

      void event() {
        switch (random.nextInt(4)) {
          case 0 -> deliver();
          case 1 -> answer();
          case 2 -> act();
          default -> {
            if (waits) {
              act();
            }
          }
        }
      }

      private void deliver() {
        var report = reports.poll();
        if (report != null) {
          var answer = graph.report(number, report, (_, wait) -> wait.missing());
          if (!answer.circle().isEmpty()) {
            assertThat(stuck()).as(answer.circle()).contains(number);
          }
          answers.add(answer);
        }
      }

      private void answer() {
        var answer = answers.poll();
        if (answer != null) {
          seen = Math.max(seen, answer.time());
          circle = answer.circle();
          alone = answer.suspected();
        }
      }

      /// Arrives at a barrier, leaves it, or reports in vain.
      private void act() {
        if (isDone() || !circle.isEmpty()) {
          return;
        }
        if (!waits) {
          waits = true;
          arrived.add(barrier());
        } else if (isFulfilled()) {
          waits = false;
          step++;
        } else if (reports.size() < 3) {
          reports.add(
              new BlockedWait(
                  1, 7, step, seen, alone, false, "at " + barrier(), "", "", missing()));
        }
      }
    }
  }

  @Test
  void ranksThatDoNotHangGetNoAlarm() {
    for (int seed = 0; seed < PROGRAMS; seed++) {
      var world = World.ordered(new Random(seed), 2 + seed % 4);
      world.run(3_000);
      assertThat(world.ranks).as("seed %d", seed).allMatch(rank -> rank.circle.isEmpty());
      assertThat(world.ranks).as("seed %d", seed).allMatch(World.Rank::isDone);
    }
  }

  @Test
  void everyHangHasACircleAndNothingElseDoes() {
    int hangs = 0;
    for (int seed = 0; seed < PROGRAMS; seed++) {
      var world = World.swapped(new Random(seed), 2 + seed % 4);
      world.run(6_000);
      var inCircle = world.ranks.stream().filter(rank -> !rank.circle.isEmpty()).toList();
      boolean isHung = world.ranks.stream().anyMatch(rank -> !rank.isDone());
      assertThat(inCircle.size() > 1).as("seed %d", seed).isEqualTo(isHung);
      hangs += isHung ? 1 : 0;
    }
    assertThat(hangs).isBetween(PROGRAMS / 4, PROGRAMS - 1);
  }

  private static BlockedWait wait(
      long number, long seen, boolean alone, String scope, Integer... missing) {
    return new BlockedWait(
        1, 7, number, seen, alone, false, "in a call", scope, "", List.of(missing));
  }

  private String circle(WaitGraph graph, int rank, BlockedWait wait) {
    return graph.report(rank, wait, (_, one) -> one.missing()).circle();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aRankWithOtherThreadsMayStillCome(boolean alone) {
    var graph = new WaitGraph();
    assertThat(circle(graph, 0, wait(1, 0, true, "", 1))).isEmpty();
    assertThat(circle(graph, 1, wait(1, 0, alone, "", 0))).isEmpty();
    assertThat(circle(graph, 0, wait(1, 2, true, "", 1))).isEmpty();
    assertThat(circle(graph, 1, wait(1, 3, alone, "", 0)).isEmpty()).isEqualTo(!alone);
    assertThat(circle(graph, 0, wait(1, 3, true, "", 1)).isEmpty()).isEqualTo(!alone);
  }

  @Test
  void otherThreadsDoNotHelpWithCollectivesThatTheWaitKeeps() {
    var graph = new WaitGraph();
    assertThat(circle(graph, 0, wait(1, 0, false, "a", 1))).isEmpty();
    assertThat(circle(graph, 1, wait(1, 0, false, "a", 0))).isEmpty();
    assertThat(circle(graph, 0, wait(1, 2, false, "a", 1))).isEmpty();
    assertThat(circle(graph, 1, wait(1, 3, false, "a", 0)))
        .isEqualTo(
            "ranks wait for each other: rank 0 waits for rank 1 in a call, rank 1 waits for rank 0"
                + " in a call; make these calls in the same order on every rank");
  }
}
