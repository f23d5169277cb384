package braid.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.Positions.Run;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/// Runs of positions, and the pairs that see each other, compared with plain loops.
class PositionsTest {
  private static final int POSITIONS = 40;
  private static final Positions TWO = new Positions(List.of(new Run(0, 4, 2), new Run(3, 9, 3)));

  @Test
  void rowsAndPositionsAreFoundFromEachOther() {
    assertThat(List.of(TWO.at(0), TWO.at(1), TWO.at(3), TWO.at(5)))
        .containsExactly(4L, 5L, 9L, 11L);
    assertThat(List.of(TWO.has(1), TWO.has(2), TWO.has(5), TWO.has(6)))
        .containsExactly(true, false, true, false);
    assertThat(List.of(TWO.rowsBefore(3), TWO.rowsBefore(5), TWO.rowsBefore(7), TWO.rowsBefore(20)))
        .containsExactly(0L, 1L, 2L, 6L);
    assertThat(TWO.haveAll(6)).isFalse();
    assertThat(Positions.from(7, 3).haveAll(3)).isTrue();
    assertThat(TWO.rows(1, 4))
        .isEqualTo(new Positions(List.of(new Run(0, 5, 1), new Run(2, 9, 1))));
    assertThatThrownBy(() -> TWO.at(2)).hasMessageContaining("row 2 has no position");
  }

  @Test
  void runsThatFallAreRefused() {
    assertThatThrownBy(() -> new Positions(List.of(new Run(0, 4, 2), new Run(2, 5, 1))))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("rows and positions must rise");
  }

  private static Positions drawn(SplittableRandom random) {
    var runs = new ArrayList<Run>();
    int row = 0;
    for (int position = random.nextInt(4);
        position < POSITIONS;
        position += 1 + random.nextInt(5)) {
      int length = Math.min(POSITIONS - position, 1 + random.nextInt(9));
      runs.add(new Run(row, position, length));
      row += length;
      position += length;
    }
    return new Positions(runs);
  }

  private static AttentionSpec spec(SplittableRandom random) {
    var plain = AttentionSpec.of(POSITIONS, 2, 4);
    var causal = random.nextInt(4) == 0 ? plain : plain.causal();
    var masked =
        causal.isCausal() && random.nextInt(3) == 0 ? causal.window(1 + random.nextInt(9)) : causal;
    return random.nextBoolean()
        ? masked
        : masked.packed(new int[] {0, 11, 20, 33}, new int[] {0, 13, 23, 40});
  }

  /// Returns whether plain rules let a query see a key.
  private static boolean sees(AttentionSpec spec, long query, long key) {
    var packing = spec.packing();
    int sequence = packing.at(query);
    long back = query - key;
    return sequence == packing.at(key)
        && query < packing.end(sequence)
        && key < packing.end(sequence)
        && (!spec.isCausal() || (back >= 0 && (spec.window() == 0 || back < spec.window())));
  }

  @Test
  void pairsSeeAsTheirPositionsDo() {
    var random = new SplittableRandom(7);
    int joined = 0;
    for (int draw = 0; draw < 5000; draw++) {
      var spec = spec(random);
      var queries = drawn(random);
      var keys = random.nextInt(3) == 0 ? queries : drawn(random);
      var pairs = Positions.pairs(spec, queries, keys);
      if (pairs.isEmpty()) {
        continue;
      }
      joined++;
      var seen = new boolean[(int) queries.endRow()][(int) keys.endRow()];
      for (var pair : pairs.get()) {
        for (int i = 0; i < pair.rows().length(); i++) {
          for (int j = 0; j < pair.keys().length(); j++) {
            seen[(int) pair.rows().row() + i][(int) pair.keys().row() + j] =
                sees(spec, pair.rows().first() + i, pair.keys().first() + j);
          }
        }
      }
      for (int i = 0; i < seen.length; i++) {
        for (int j = 0; j < seen[i].length; j++) {
          assertThat(seen[i][j])
              .as("%s: row %d of %s, key %d of %s", spec, i, queries, j, keys)
              .isEqualTo(sees(spec, queries.at(i), keys.at(j)));
        }
      }
    }
    assertThat(joined).isGreaterThan(500);
  }

  @Test
  void partsOfZigzagAreOneBlock() {
    var spec = AttentionSpec.of(80, 2, 4).causal();
    // Chunks 1 and 6 of 8, of rank 1 of 4.
    var own = new Positions(List.of(new Run(0, 10, 10), new Run(10, 60, 10)));
    var before = Positions.from(0, 10);
    var after = new Positions(List.of(new Run(0, 20, 10), new Run(10, 50, 10)));
    assertThat(Positions.pairs(spec, own, own).orElseThrow())
        .containsExactly(new Positions.Pair(new Run(0, 10, 20), new Run(0, 10, 20)));
    assertThat(Positions.pairs(spec, own, before).orElseThrow())
        .containsExactly(new Positions.Pair(new Run(0, 10, 20), new Run(0, 0, 10)));
    assertThat(Positions.pairs(spec, own, after).orElseThrow())
        .containsExactly(new Positions.Pair(new Run(10, 60, 10), new Run(0, 20, 20)));
  }
}
