package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import braid.internal.selftest.AttentionCase;
import braid.internal.selftest.AttentionOracle;
import braid.internal.selftest.Sweep;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.TokenLayout;
import braid.schedule.simulation.Machine;
import braid.shapes.Lengths;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class BalanceTest {
  private static final int RANKS = 4;

  private static AttentionSpec spec(int seed) {
    var random = new Random(seed);
    var lengths = Lengths.logNormal(200 + random.nextInt(100), 10 + random.nextInt(40), 1.2, seed);
    var spec = lengths.attention(8, 16).kvHeads(4).dtype(DType.BF16);
    return switch (seed % 4) {
      case 0 -> spec;
      case 1 -> spec.causal();
      case 2 -> spec.causal().window(30);
      default -> spec.window(20);
    };
  }

  /// A ring computes all heads of the pairs of its queries, and receives each key of another rank
  /// that one of them sees, once.
  @Test
  void workAndBytesOfARingEqualPlainCounts() {
    for (int seed = 0; seed < 12; seed++) {
      var drawn = spec(seed);
      var spec = seed < 8 ? drawn : AttentionCase.withKeys(new Random(seed), drawn, true);
      var mask = AttentionOracle.mask(spec);
      for (var row : Balance.of(spec, RANKS).rows()) {
        if (!row.division().tuning().equals(ContextParallel.ring())) {
          continue;
        }
        var divided = spec.layout(row.division().layout());
        for (int rank = 0; rank < RANKS; rank++) {
          var mine = AttentionOracle.positions(divided, RANKS, rank);
          var keys = AttentionOracle.positions(divided, spec.packing().keys(), RANKS, rank);
          var own = new HashSet<>(Arrays.stream(keys).boxed().toList());
          var fetched = new HashSet<Integer>();
          long pairs = 0;
          for (int query : mine) {
            for (int key = 0; key < spec.keys(); key++) {
              if (mask.sees(query, key)) {
                pairs++;
                if (!own.contains(key)) {
                  fetched.add(key);
                }
              }
            }
          }
          assertThat(row.tokens().get(rank)).as("%s", row).isEqualTo(mine.length);
          assertThat(row.flops().get(rank))
              .as("%s of %s", row, spec)
              .isEqualTo(4.0 * pairs * 8 * 16);
          // Queries of one run may see keys with others between them.
          assertThat(row.receivedBytes().get(rank))
              .isGreaterThanOrEqualTo(2L * fetched.size() * 4 * 16 * 2);
        }
      }
    }
  }

  @Test
  void wholeSequencesReceiveNothing() {
    var rows = Balance.of(spec(1), RANKS).rows();
    var whole =
        rows.stream()
            .filter(row -> row.division().layout() == TokenLayout.WHOLE_SEQUENCES)
            .filter(row -> row.division().tuning().headRanks(RANKS) == 1)
            .toList();
    assertThat(whole).hasSize(2);
    assertThat(whole).allMatch(row -> row.receivedBytes().equals(List.of(0L, 0L, 0L, 0L)));
  }

  @Test
  void dividedHeadsAndDividedSequencesBalanceWork() {
    var spec = Lengths.of(128, 64, 256, 64).attention(8, 16).kvHeads(4).causal();
    for (var row : Balance.of(spec, RANKS).rows()) {
      var division = row.division();
      if (division.layout() == TokenLayout.PER_SEQUENCE
          || division.tuning().equals(ContextParallel.ulysses())) {
        assertThat(row.mostWork()).as("%s", division).isCloseTo(1, within(0.02));
      }
    }
    var contiguous = Balance.of(spec, RANKS).rows().getFirst();
    assertThat(contiguous.division().layout()).isEqualTo(TokenLayout.CONTIGUOUS);
    assertThat(contiguous.mostWork()).isGreaterThan(1.4);
  }

  @Test
  void layoutsThatAreNotCountedAreNamed() {
    var few = Balance.of(Lengths.of(90, 10).attention(8, 16), RANKS);
    assertThat(few.leftOut()).containsExactly("left out whole-sequences: rank 2 has no tokens");
    assertThat(few.display().text()).endsWith(few.leftOut().getFirst());
    var many = Lengths.logNormal(4000, 40, 0, 1).attention(8, 16).causal().window(9);
    assertThat(Balance.of(many, RANKS).leftOut())
        .contains(
            "left out per-sequence: with a window, each pair of runs is a step, and rank 0 has 101"
                + " runs of tokens; at most 64 are counted");
    assertThat(Balance.of(spec(2), RANKS).leftOut()).isEmpty();
  }

  @Test
  @Timeout(60)
  void aThousandShortSequencesAreCounted() {
    var spec = Lengths.logNormal(40_000, 32, 0.8, 7).attention(8, 16).causal();
    assertThat(spec.packing().sequences()).isGreaterThan(900);
    var many = Balance.of(spec, RANKS);
    assertThat(many.leftOut()).isEmpty();
    for (var row : many.rows()) {
      double all = row.flops().stream().mapToDouble(Double::doubleValue).sum();
      assertThat(all).as("%s", row.division()).isCloseTo(spec.flops(), withinPercentage(1e-6));
    }
  }

  @Test
  void predictedTimesSortTheRows() {
    var machine = Machine.h100x8();
    var balance =
        Balance.of(Lengths.of(8192, 4096, 512, 3584).attention(32, 128).kvHeads(8).causal(), RANKS)
            .on(machine);
    var nanos = balance.rows().stream().map(row -> row.nanos().orElseThrow()).toList();
    assertThat(nanos).isSorted();
    assertThat(balance.headline()).contains("predicted on " + machine.title());
    assertThat(balance.table().doubleColumn("predicted ms").get(0))
        .isEqualTo(nanos.getFirst() / 1e6);
    assertThat(balance.best()).isEqualTo(balance.rows().getFirst());
    assertThat(balance.display().data()).containsKeys("text/plain", "text/html");
    assertThatThrownBy(() -> Balance.of(spec(1), 1))
        .isInstanceOf(BraidException.class)
        .hasMessage("a balance needs 2 or more ranks but has 1; try Balance.of(spec, 4)");
  }

  /// The division that is advised, against every layout, method, split and stream.
  @Test
  void adviceIsTheBestOfAllInMostDistributions() {
    var seeds = IntStream.rangeClosed(1, 20).boxed().toList();
    var verdicts =
        Sweep.oneOf(4, seeds).stream()
            .map(seed -> DivisionAdvice.verdict(DivisionAdvice.Drawn.of(seed)))
            .toList();
    // 18 of 20.
    assertThat(verdicts)
        .filteredOn(DivisionAdvice.Verdict::isRight)
        .as("%s", verdicts)
        .hasSizeGreaterThanOrEqualTo((int) Math.ceil(0.9 * verdicts.size()));
  }
}
