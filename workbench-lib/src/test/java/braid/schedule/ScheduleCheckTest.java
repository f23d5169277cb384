package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Overlap;
import braid.model.TokenLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Every planned schedule passes the check.
final class ScheduleCheckTest {
  static Stream<ScheduleCases.Way> ways() {
    return ScheduleCases.ways().stream();
  }

  @ParameterizedTest
  @MethodSource("ways")
  void plannedSchedulesHaveNoMistake(ScheduleCases.Way way) {
    var found = new ArrayList<String>();
    for (int ranks : ScheduleCases.ranks()) {
      for (var each : Sweep.oneOf(6, way.cases(ranks))) {
        each.schedule().findings().forEach(line -> found.add(each + ": " + line));
      }
    }
    assertThat(found.stream().limit(20)).as("%d findings", found.size()).isEmpty();
  }

  /// By all methods that divide tokens into stripes, packed and with windows too, forward and
  /// backward.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 8, 13, 16})
  void stripesOfManyRanksHaveNoMistake(int ranks) {
    var spec = AttentionSpec.of(7 * ranks - 1, 4, 8).kvHeads(2).layout(TokenLayout.STRIPED);
    int end = spec.sequence();
    var shorter = spec.first(3 * ranks);
    for (var masked :
        List.of(
            spec.causal(),
            spec.packed(0, 1, end / 2, end).causal(),
            shorter.packed(0, ranks, 3 * ranks).causal().window(ranks + 1),
            shorter.keys(4 * ranks + 1).window(ranks / 2 + 1))) {
      for (var how :
          List.of(
              ContextParallel.ring().splits(2),
              ContextParallel.ring().splits(3).neighborToNeighbor(),
              ContextParallel.allGatherKv())) {
        assertThat(Schedule.of(masked, how, ranks).findings()).as("%s", how).isEmpty();
        assertThat(Schedule.of(masked.backward(), how, ranks).findings()).as("%s", how).isEmpty();
      }
    }
  }

  /// Some chunks of a ring have only rows between the sequences that a rank sees.
  @Test
  void manySequencesInManyChunksHaveNoMistake() {
    var spec =
        AttentionSpec.of(114, 4, 8)
            .kvHeads(2)
            .causal()
            .packed(IntStream.rangeClosed(0, 12).map(i -> i * 114 / 12).toArray())
            .layout(TokenLayout.PER_SEQUENCE);
    var ring = ContextParallel.ring().splits(30);
    assertThat(Schedule.of(spec, ring, 5).findings()).isEmpty();
    assertThat(Schedule.of(spec.backward(), ring, 5).findings()).isEmpty();
  }

  @Test
  void aCheckThatFindsNothingSaysHowMuchItChecked() {
    var spec = AttentionSpec.of(32, 2, 4);
    var right = Schedule.of(spec, ContextParallel.ring(), 4).findings();
    assertThat(right).isEmpty();
    assertThat(right).hasToString("nothing found in 4 ranks × 2 iterations");
    var alone = Schedule.of(spec, ContextParallel.ring(), 1);
    assertThat(alone.findings()).hasToString("nothing found in 1 rank × 2 iterations");
    var steps = Schedule.of(spec, ContextParallel.ring(), 4).steps(1);
    var wrong =
        Schedule.of(spec, ContextParallel.ring(), 4).with(1, steps.subList(1, steps.size()));
    assertThat(wrong.findings()).isNotEmpty();
    assertThat(wrong.findings()).hasToString(String.join("\n", wrong.findings()));
  }

  /// Both the forward and the backward pass; signals go between neighbors too.
  @Test
  void aRingExchangeUsesOnlyLinksBetweenNeighbors() {
    int copies = 0;
    for (var layout : List.of(TokenLayout.CONTIGUOUS, TokenLayout.ZIGZAG)) {
      for (int ranks = 1; ranks <= 6; ranks++) {
        var spec = AttentionSpec.of(23 * ranks - 1, 2, 4).layout(layout);
        for (var masked : List.of(spec, spec.causal(), spec.causal().window(30))) {
          var how = ContextParallel.ring().splits(2).neighborToNeighbor();
          for (var schedule :
              List.of(
                  Schedule.of(masked, how, ranks), Schedule.of(masked.backward(), how, ranks))) {
            for (int rank = 0; rank < ranks; rank++) {
              for (var step : schedule.steps(rank)) {
                copies += step instanceof Step.Copy ? 1 : 0;
                var others = peers(step, rank);
                assertThat(List.of((rank + 1) % ranks, (rank + ranks - 1) % ranks))
                    .as("%s of rank %d, %s", step.text(), rank, schedule)
                    .containsAll(others);
              }
            }
          }
        }
      }
    }
    assertThat(copies).isPositive();
  }

  /// Up to 9 hosts of 8 ranks, also a number that is no power of two.
  @Test
  void doublingBringsEachRowToAHostOnce() {
    for (int hosts = 1; hosts <= 9; hosts++) {
      int ranks = 8 * hosts;
      var spec = GemmSpec.allGatherGemm(3 * ranks + 5, ranks, 2);
      var schedule = Schedule.of(spec, Overlap.doubling(2), ranks);
      var arrived = new long[hosts];
      for (int rank = 0; rank < ranks; rank++) {
        int rounds = 0;
        for (var step : schedule.steps(rank)) {
          if (step instanceof Step.Copy copy) {
            rounds += copy.chunk() % 2;
            for (var move : copy.moves()) {
              arrived[rank / 8] += move.from().rank() / 8 == rank / 8 ? 0 : move.from().rows();
            }
          }
        }
        assertThat(1 << rounds).isLessThan(2 * ranks);
      }
      for (int host = 0; host < hosts; host++) {
        long own = 0;
        for (int rank = 8 * host; rank < 8 * host + 8; rank++) {
          own += Slice.of(spec.m(), ranks, rank).length();
        }
        assertThat(arrived[host]).as("host %d of %d", host, hosts).isEqualTo(spec.m() - own);
      }
    }
  }

  /// Rows of the input cross to each other group once, and so do partial sums; sums of an
  /// all-reduce cross once more.
  @ParameterizedTest
  @CsvSource({"4, 2", "6, 3", "8, 2", "16, 8", "64, 8", "128, 8"})
  void twoLevelsCrossBetweenGroupsOnce(int ranks, int size) {
    int rows = 3 * ranks + 5;
    for (var pattern : Pattern.values()) {
      var spec = ScheduleCases.spec(pattern, rows, ranks, ranks, rows);
      var schedule = Schedule.of(spec, Overlap.twoLevel(size, 2), ranks);
      assertThat(schedule.findings()).as("%s", spec).isEmpty();
      long crossed = 0;
      for (int rank = 0; rank < ranks; rank++) {
        for (var step : schedule.steps(rank)) {
          if (step instanceof Step.Copy copy) {
            for (var move : copy.moves()) {
              boolean inside = move.from().rank() / size == move.to().rank() / size;
              crossed += inside ? 0 : move.from().rows();
            }
          }
        }
      }
      long once = rows * (ranks / size - 1L);
      assertThat(crossed)
          .as("%s", spec)
          .isEqualTo(pattern == Pattern.GEMM_ALL_REDUCE ? 2 * once : once);
    }
  }

  /// Returns the other ranks that a step communicates with.
  private static Set<Integer> peers(Step step, int rank) {
    var peers = new HashSet<Integer>();
    step.accesses(rank).forEach(access -> peers.add(access.region().rank()));
    if (step instanceof Step.Signal signal) {
      peers.add(signal.to());
    } else if (step instanceof Step.Wait wait) {
      peers.add(wait.from());
    }
    peers.remove(rank);
    return peers;
  }
}
