package braid.schedule;

import static braid.internal.selftest.AttentionOracle.canDivide;
import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/// Blocks of attention, compared with plain loops over queries and keys.
class AttentionBlocksTest {
  private static final int RANKS = 3;

  private record Case(Attend attend, AttendGradient gradient) {}

  private static Region region(String name, long rows, long columns) {
    var shapes = List.of(new Buffer.Shape(rows, columns));
    return new Buffer(name, DType.FP32, shapes, false, false).on(0);
  }

  private static Case drawn(SplittableRandom random) {
    var layouts = List.of(TokenLayout.values());
    var plain = AttentionSpec.of(60, 1, 2).layout(layouts.get(random.nextInt(layouts.size())));
    var causal = random.nextInt(4) == 0 ? plain : plain.causal();
    var drawn =
        (random.nextInt(3) == 0 ? causal.window(1 + random.nextInt(12)) : causal)
            .packed(new int[] {0, 17, 30, 30, 52}, new int[] {0, 20, 33, 35, 60});
    var separate =
        random.nextInt(3) > 0
            ? drawn
            : drawn.packedKeys(new int[] {0, 20, 60, 63, 90}, new int[] {0, 20, 65, 68, 99});
    var spec = canDivide(separate, RANKS) ? separate : separate.layout(TokenLayout.ZIGZAG);
    var queries = Tokens.of(spec, RANKS, random.nextInt(RANKS));
    var keys = Tokens.ofKeys(spec, RANKS, random.nextInt(RANKS));
    long rows = queries.endRow();
    long keyRows = keys.endRow();
    var attend =
        new Attend(
            Lane.of("attend", Lane.Role.COMPUTE),
            0,
            spec,
            region("query", rows, 2),
            queries,
            region("key", keyRows, 2),
            region("value", keyRows, 2),
            keys,
            new Partial(region("output", rows, 2), region("lse", rows, 1)),
            random.nextBoolean());
    var gradient =
        new AttendGradient(
            attend,
            region("output gradient", rows, 2),
            new Gradients(
                region("query gradient", rows, 2),
                region("key gradient", keyRows, 2),
                region("value gradient", keyRows, 2)),
            random.nextBoolean(),
            random.nextBoolean());
    return new Case(attend, gradient);
  }

  private static boolean sees(AttentionSpec spec, long query, long key) {
    return key >= spec.firstSeen(query) && key <= spec.lastSeen(query) && !spec.isPadding(key);
  }

  /// Counts how often each pair is computed, and checks the positions of rows.
  private static void count(Attend whole, Attend block, int[][] times) {
    assertThat(Tokens.pairs(block.spec(), block.queries(), block.keys())).isPresent();
    for (var run : block.queries().runs()) {
      for (long row = run.row(); row < run.endRow(); row++) {
        long at = block.query().row() + row;
        assertThat(block.queries().at(row)).isEqualTo(whole.queries().at(at));
        for (long key = 0; key < block.key().rows(); key++) {
          long keyAt = block.key().row() + key;
          assertThat(block.keys().at(key)).isEqualTo(whole.keys().at(keyAt));
          times[(int) at][(int) keyAt]++;
        }
      }
    }
  }

  private static void checkPairs(Attend whole, int[][] times) {
    for (int row = 0; row < times.length; row++) {
      for (int key = 0; key < times[row].length; key++) {
        if (sees(whole.spec(), whole.queries().at(row), whole.keys().at(key))) {
          assertThat(times[row][key]).as("row %d, key %d of %s", row, key, whole).isEqualTo(1);
        } else {
          assertThat(times[row][key]).isLessThan(2);
        }
      }
    }
  }

  @Test
  void blocksComputeEachPairOnce() {
    var random = new SplittableRandom(11);
    int finished = 0;
    int merged = 0;
    for (int draw = 0; draw < 2000; draw++) {
      var drawn = drawn(random).attend();
      boolean finishes = random.nextBoolean();
      var whole = finishes ? drawn.finishing(drawn.query()) : drawn;
      var times = new int[(int) whole.query().rows()][(int) whole.key().rows()];
      var begun = new int[times.length];
      var blocks = new ArrayList<Attend>();
      boolean isMerged = false;
      for (var step : AttentionBlocks.of(whole)) {
        if (step instanceof Attend block) {
          blocks.add(block);
        } else {
          assertThat(step)
              .isEqualTo(
                  new Step.Merge(
                      whole.lane(), whole.chunk(), List.of(whole.result()), whole.written()));
          isMerged = true;
          assertThat(blocks).allMatch(block -> block.finished().isEmpty());
        }
      }
      if (isMerged) {
        assertThat(finishes).isTrue();
        merged++;
      } else if (finishes) {
        finished++;
        assertThat(blocks).hasSize(1);
        assertThat(blocks.getFirst().finished()).isEqualTo(whole.finished());
        assertThat(blocks.getFirst().queries().haveAll(whole.query().rows())).isTrue();
      }
      for (var block : blocks) {
        count(whole, block, times);
        for (long row = 0; row < block.query().rows(); row++) {
          int index = (int) (block.query().row() + row);
          if (!block.continued()) {
            begun[index]++;
          } else if (block.queries().has(row)) {
            assertThat(begun[index]).isEqualTo(whole.continued() ? 0 : 1);
          }
        }
      }
      checkPairs(whole, times);
      assertThat(begun).containsOnly(whole.continued() ? 0 : 1);
    }
    assertThat(finished).isGreaterThan(500);
    assertThat(merged).isGreaterThan(50);
  }

  @Test
  void gradientsBeginOnceAndHaveEachPairOnce() {
    var random = new SplittableRandom(12);
    for (int draw = 0; draw < 2000; draw++) {
      var whole = drawn(random).gradient();
      var block = whole.block();
      var times = new int[(int) block.query().rows()][(int) block.key().rows()];
      var begun = new int[times.length];
      var begunKeys = new int[(int) block.key().rows()];
      var blocks = AttentionBlocks.of(whole);
      for (var each : blocks) {
        count(block, each.block(), times);
        begin(each.result().query(), each.continuesQuery(), whole.continuesQuery(), begun);
        begin(each.result().key(), each.continuesKeys(), whole.continuesKeys(), begunKeys);
      }
      checkPairs(block, times);
      assertThat(begun).containsOnly(whole.continuesQuery() ? 0 : 1);
      assertThat(begunKeys).containsOnly(whole.continuesKeys() ? 0 : 1);
    }
  }

  private static void begin(Region rows, boolean continued, boolean all, int[] begun) {
    for (long row = rows.row(); row < rows.row() + rows.rows(); row++) {
      if (!continued) {
        begun[(int) row]++;
      } else {
        assertThat(begun[(int) row]).isEqualTo(all ? 0 : 1);
      }
    }
  }

  @Test
  void manyShortPiecesAreFetchedAndAddedTogether() {
    var spec = AttentionSpec.of(120, 2, 4).causal().batch(20);
    for (int rank = 0; rank < RANKS; rank++) {
      var forward = Schedule.of(spec, ContextParallel.ring(), RANKS).steps(rank);
      assertThat(forward)
          .filteredOn(Step.Copy.class::isInstance)
          .hasSize(RANKS - 1)
          .allMatch(step -> ((Step.Copy) step).moves().size() == 2);
      // A sum of key and of value for each other rank.
      assertThat(Schedule.of(spec.backward(), ContextParallel.ring(), RANKS).steps(rank))
          .filteredOn(Step.Reduce.class::isInstance)
          .hasSize(2 * (RANKS - 1));
    }
    // The last positions of each sequence only: more lies between them than is seen.
    var window = Schedule.of(spec.window(5), ContextParallel.ring(), RANKS).steps(1);
    assertThat(window)
        .filteredOn(Step.Copy.class::isInstance)
        .allMatch(step -> ((Step.Copy) step).moves().size() >= 2 * 20);
  }

  @Test
  void aStripedRankAttendsToEachPeerInOneStep() {
    var plain = AttentionSpec.of(400, 2, 4);
    for (var masked :
        List.of(plain, plain.causal(), plain.causal().window(50), plain.window(RANKS))) {
      for (var spec : List.of(masked, masked.packed(0, 1, 150, 152, 400))) {
        var striped = spec.layout(TokenLayout.STRIPED);
        for (int rank = 0; rank < RANKS; rank++) {
          assertThat(Schedule.of(striped, ContextParallel.ring(), RANKS).steps(rank))
              .filteredOn(Attend.class::isInstance)
              .hasSize(RANKS);
          assertThat(Schedule.of(striped.backward(), ContextParallel.ring(), RANKS).steps(rank))
              .filteredOn(AttendGradient.class::isInstance)
              .hasSize(RANKS);
        }
      }
    }
  }

  @Test
  void aRankAttendsToEachPeerInOneStep() {
    var spec =
        AttentionSpec.of(96, 2, 4)
            .causal()
            .layout(TokenLayout.PER_SEQUENCE)
            .packed(0, 24, 48, 72, 96);
    var steps = new ArrayList<Integer>();
    for (int rank = 0; rank < RANKS; rank++) {
      steps.add(
          (int)
              Schedule.of(spec, ContextParallel.ring(), RANKS).steps(rank).stream()
                  .filter(Attend.class::isInstance)
                  .count());
    }
    assertThat(steps).allMatch(count -> count <= RANKS + 3);
  }
}
