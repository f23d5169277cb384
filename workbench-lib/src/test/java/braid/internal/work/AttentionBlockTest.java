package braid.internal.work;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.AttentionOracle;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.TokenLayout;
import braid.model.Tokens;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class AttentionBlockTest {
  private static Matrix matrix(int rows) {
    return Matrix.of(Arena.ofAuto().allocate(4L * Math.max(rows, 1)), DType.FP32, rows, 1);
  }

  private static AttentionSpec random(Random random) {
    var cumulative = new ArrayList<Integer>();
    var padded = new ArrayList<Integer>();
    cumulative.add(0);
    padded.add(0);
    for (int i = 0; i < 1 + random.nextInt(5); i++) {
      int tokens = random.nextInt(6);
      cumulative.add(cumulative.getLast() + tokens);
      padded.add(padded.getLast() + tokens + random.nextInt(3) * random.nextInt(2));
    }
    if (cumulative.getLast() == 0) {
      cumulative.set(cumulative.size() - 1, 2);
      padded.set(padded.size() - 1, padded.getLast() + 2);
    }
    int positions = padded.getLast();
    var spec =
        AttentionSpec.of(positions, 1, 1)
            .packed(
                cumulative.stream().mapToInt(each -> each).toArray(),
                padded.stream().mapToInt(each -> each).toArray());
    var causal = random.nextBoolean() ? spec.causal() : spec;
    return random.nextBoolean() ? causal.window(random.nextInt(4)) : causal;
  }

  /// Packed queries with padding, and packed keys of other lengths with padding of their own.
  private static AttentionSpec withOtherKeys(Random random) {
    boolean isCausal = random.nextBoolean();
    int sequences = 1 + random.nextInt(4);
    var sides = new int[4][sequences + 1];
    for (int i = 1; i <= sequences; i++) {
      int rows = random.nextInt(6) + (i == 1 ? 1 : 0);
      int keys = (isCausal ? rows : i == 1 ? 1 : 0) + random.nextInt(6);
      sides[0][i] = sides[0][i - 1] + rows;
      sides[1][i] = sides[1][i - 1] + rows + random.nextInt(3);
      sides[2][i] = sides[2][i - 1] + keys;
      sides[3][i] = sides[3][i - 1] + keys + random.nextInt(3);
    }
    var spec =
        AttentionSpec.of(sides[1][sequences], 1, 1)
            .packed(sides[0], sides[1])
            .packedKeys(sides[2], sides[3]);
    var causal = isCausal ? spec.causal() : spec;
    return random.nextBoolean() ? causal.window(random.nextInt(5)) : causal;
  }

  @Test
  void theBlocksOfSequencesDoTheSame() {
    var random = new Random(5);
    for (int i = 0; i < 3000; i++) {
      compare(random(random), random);
    }
  }

  @Test
  void theBlocksOfSequencesWithOtherKeysDoTheSame() {
    var random = new Random(6);
    for (int i = 0; i < 3000; i++) {
      compare(withOtherKeys(random), random);
    }
  }

  /// Compares the keys that each query of some block sees in the blocks of its sequence, masked by
  /// their shift alone, with those that it shall see. Rows of some runs have no position.
  private static void compare(AttentionSpec spec, Random random) {
    int from = random.nextInt(spec.sequence());
    int rows = 1 + random.nextInt(spec.sequence() - from);
    int first = random.nextInt(spec.keys());
    int keys = random.nextInt(spec.keys() - first + 1);
    var key = matrix(keys);
    var queries = Tokens.of(spec, 1, 0).rows(from, from + rows);
    boolean areAll = random.nextBoolean();
    var some = queries.runs().stream().filter(_ -> areAll || random.nextBoolean()).toList();
    var block =
        new AttentionBlock(
            spec,
            matrix(rows),
            new Tokens(some),
            key,
            key,
            Tokens.ofKeys(spec, 1, 0).rows(first, first + keys),
            new AttentionBlock.Part(matrix(rows), matrix(rows)),
            random.nextBoolean(),
            Optional.empty());
    compare(
        block,
        IntStream.range(from, from + rows).toArray(),
        IntStream.range(first, first + keys).toArray());
  }

  /// Stripes of all small sizes, by all windows: of one sequence, of sequences of unequal lengths
  /// with padding, and with other keys than queries.
  @Test
  void theBlocksOfStripesDoTheSame() {
    for (int length = 1; length <= 13; length++) {
      var plain = AttentionSpec.of(length, 1, 1).layout(TokenLayout.STRIPED);
      int third = length / 3;
      for (var spec :
          List.of(
              plain,
              plain.packed(0, third, third, length),
              plain.packed(new int[] {0, third, 2 * third}, new int[] {0, length - third, length}),
              plain.keys(2 * length + 1),
              plain.packed(0, third, length).packedKeys(0, third + 3, length + 3))) {
        for (int window = 0; window <= length; window++) {
          stripes(spec.window(window));
          stripes(spec.window(window).causal());
        }
      }
    }
  }

  /// Compares the blocks of all pairs of ranks.
  private static void stripes(AttentionSpec spec) {
    for (int ranks = 1; ranks <= 5; ranks++) {
      for (int rank = 0; rank < ranks; rank++) {
        for (int owner = 0; owner < ranks; owner++) {
          var rows = AttentionOracle.positions(spec, ranks, rank);
          var keyRows = AttentionOracle.positions(spec, spec.packing().keys(), ranks, owner);
          var key = matrix(keyRows.length);
          var block =
              new AttentionBlock(
                  spec,
                  matrix(rows.length),
                  Tokens.of(spec, ranks, rank),
                  key,
                  key,
                  Tokens.ofKeys(spec, ranks, owner),
                  new AttentionBlock.Part(matrix(rows.length), matrix(rows.length)),
                  (rank + owner) % 2 == 0,
                  Optional.empty());
          compare(block, rows, keyRows);
        }
      }
    }
  }

  /// @param rows rows of the block's queries among those of all ranks
  /// @param keyRows rows of its keys
  private static void compare(AttentionBlock block, int[] rows, int[] keyRows) {
    var spec = block.spec();
    var seen = new boolean[rows.length][keyRows.length];
    var begun = new int[rows.length];
    for (var one : block.bySequence()) {
      for (int row = 0; row < one.query().rows(); row++) {
        int index = block.rowOf(one) + row;
        begun[index]++;
        for (int k = 0; k < one.key().rows(); k++) {
          long ahead = k - row - one.shift();
          int span = one.spec().span();
          boolean isWithin = span == 0 || ahead > -span;
          seen[index][block.keyOf(one) + k] |= !one.spec().isMasked() || (ahead <= 0 && isWithin);
        }
      }
    }
    var mask = AttentionOracle.mask(spec);
    long pairs = 0;
    for (int row = 0; row < rows.length; row++) {
      assertThat(begun[row]).isLessThanOrEqualTo(1);
      assertThat(block.continued() || begun[row] == 1).as("%s, row %d", block, row).isTrue();
      for (int k = 0; k < keyRows.length; k++) {
        boolean sees = block.queries().has(row) && mask.sees(rows[row], keyRows[k]);
        assertThat(seen[row][k]).as("%s, row %d, key %d", block, row, k).isEqualTo(sees);
        pairs += sees ? 1 : 0;
      }
    }
    assertThat(block.flops()).isEqualTo(4 * pairs);
  }
}
