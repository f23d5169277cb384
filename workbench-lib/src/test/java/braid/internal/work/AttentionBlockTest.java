package braid.internal.work;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.DType;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Random;
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

  /// Compares the keys that each query sees in the blocks of its sequence, masked by causality and
  /// window alone, with those of the whole block.
  @Test
  void theBlocksOfSequencesDoTheSame() {
    var random = new Random(5);
    for (int i = 0; i < 3000; i++) {
      var spec = random(random);
      int from = random.nextInt(spec.sequence());
      int rows = 1 + random.nextInt(spec.sequence() - from);
      int first = random.nextInt(spec.sequence());
      int keys = random.nextInt(spec.sequence() - first + 1);
      var key = matrix(keys);
      var block =
          new AttentionBlock(
              spec,
              matrix(rows),
              from,
              key,
              key,
              first,
              new AttentionBlock.Part(matrix(rows), matrix(rows)),
              random.nextBoolean());
      var seen = new boolean[rows][keys];
      var begun = new int[rows];
      for (var one : block.bySequence()) {
        for (int row = 0; row < one.query().rows(); row++) {
          int index = (int) (one.queries().first() - from) + row;
          begun[index]++;
          for (int k = 0; k < one.key().rows(); k++) {
            long distance = one.queries().first() + row - one.keys().first() - k;
            boolean sees =
                (!spec.isCausal() || distance >= 0)
                    && (spec.window() == 0 || Math.abs(distance) < spec.window());
            seen[index][(int) (one.keys().first() - first) + k] |= sees;
          }
        }
      }
      for (int row = 0; row < rows; row++) {
        assertThat(begun[row]).isLessThanOrEqualTo(1);
        assertThat(block.continued() || begun[row] == 1).as("%s, row %d", block, row).isTrue();
        for (int k = 0; k < keys; k++) {
          boolean padding = block.skipPadding(k) != k;
          assertThat(seen[row][k])
              .as("%s, row %d, key %d", block, row, k)
              .isEqualTo(!padding && k >= block.firstSeen(row) && k < block.endSeen(row));
        }
      }
    }
  }
}
