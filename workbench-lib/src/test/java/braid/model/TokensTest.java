package braid.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.Tokens.Run;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/// Runs of positions, and the pairs that see each other, compared with plain loops.
class TokensTest {
  private static final int POSITIONS = 40;
  private static final Tokens TWO = new Tokens(List.of(new Run(0, 4, 2), new Run(3, 9, 3)));

  @Test
  void rowsAndPositionsAreFoundFromEachOther() {
    assertThat(List.of(TWO.at(0), TWO.at(1), TWO.at(3), TWO.at(5)))
        .containsExactly(4L, 5L, 9L, 11L);
    assertThat(List.of(TWO.has(1), TWO.has(2), TWO.has(5), TWO.has(6)))
        .containsExactly(true, false, true, false);
    assertThat(List.of(TWO.rowsBefore(3), TWO.rowsBefore(5), TWO.rowsBefore(7), TWO.rowsBefore(20)))
        .containsExactly(0L, 1L, 2L, 6L);
    assertThat(TWO.haveAll(6)).isFalse();
    assertThat(Tokens.from(7, 3).haveAll(3)).isTrue();
    assertThat(TWO.rows(1, 4)).isEqualTo(new Tokens(List.of(new Run(0, 5, 1), new Run(2, 9, 1))));
    assertThatThrownBy(() -> TWO.at(2)).hasMessageContaining("row 2 has no position");
  }

  @Test
  void tokensOfAKindEndAtRowsWithoutTokens() {
    var spec = AttentionSpec.of(60, 1, 1).packed(new int[] {0, 20, 37}, new int[] {0, 23, 60});
    // Tokens of the first sequence, three rows without a token, then a token and padding.
    var tokens = new Tokens(List.of(new Tokens.Run(0, 6, 3, 1), new Tokens.Run(6, 39, 5, 1)));
    assertThat(tokens.endOfKind(spec, spec::isPadding, 0, 11)).isGreaterThanOrEqualTo(3);
    assertThat(tokens.endOfKind(spec, spec::isPadding, 6, 11)).isEqualTo(7);
    assertThat(tokens.endOfKind(spec, spec::isPadding, 7, 11)).isEqualTo(11);
  }

  @Test
  void runsThatFallAreRefused() {
    assertThatThrownBy(() -> new Tokens(List.of(new Run(0, 4, 2), new Run(2, 5, 1))))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("rows and positions must rise");
  }

  /// Returns every second or third position, or so.
  private static Tokens striped(SplittableRandom random, int step) {
    int first = random.nextInt(step);
    int length = 1 + random.nextInt((POSITIONS - first - 1) / step);
    return new Tokens(List.of(new Run(random.nextInt(3), first, length, step)));
  }

  private static Tokens drawn(SplittableRandom random) {
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
    return new Tokens(runs);
  }

  private static AttentionSpec spec(SplittableRandom random) {
    var plain = AttentionSpec.of(POSITIONS, 2, 4);
    var causal = random.nextInt(4) == 0 ? plain : plain.causal();
    var masked = random.nextInt(3) == 0 ? causal.window(1 + random.nextInt(9)) : causal;
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
        && (!spec.isCausal() || back >= 0)
        && (spec.window() == 0 || Math.abs(back) < spec.window());
  }

  /// Queries and keys of a sequence end at one position; both are divided among the ranks.
  @Test
  void separateKeysHavePositionsThatEndWithThoseOfTheQueries() {
    var spec = AttentionSpec.of(7, 1, 1).packed(0, 5, 7).packedKeys(0, 3, 9);
    assertThat(spec.positions()).isEqualTo(11);
    assertThat(Tokens.of(spec, 1, 0).runs()).containsExactly(new Run(0, 0, 5), new Run(5, 9, 2));
    assertThat(Tokens.ofKeys(spec, 1, 0).runs()).containsExactly(new Run(0, 2, 9));
    assertThat(Tokens.of(spec, 2, 1).runs()).containsExactly(new Run(0, 4, 1), new Run(1, 9, 2));
    assertThat(Tokens.ofKeys(spec, 2, 0).runs()).containsExactly(new Run(0, 2, 5));
    assertThat(Tokens.rowsOf(spec, spec.packing().queries(), 2, 1).runs())
        .containsExactly(new Run(0, 4, 3));
    assertThat(Tokens.rowsOf(spec, spec.packing().keys(), 2, 1).runs())
        .containsExactly(new Run(0, 5, 4));
    // A sequence of one side alone stays a sequence.
    var alone = AttentionSpec.of(5, 1, 1).packed(0, 0, 5).packedKeys(0, 4, 4);
    assertThat(alone.flops()).isZero();
    assertThat(alone.isUnseen(0)).isTrue();
    assertThat(alone.seesNothing(4)).isTrue();
  }

  @Test
  void keysAreSeenByTheQueriesOfPlainRules() {
    var random = new SplittableRandom(5);
    for (int draw = 0; draw < 200; draw++) {
      var spec = spec(random);
      for (int key = 0; key < POSITIONS; key++) {
        var seeing = new ArrayList<Long>();
        for (long query = 0; query < POSITIONS; query++) {
          if (sees(spec, query, key)) {
            seeing.add(query);
          }
        }
        if (seeing.isEmpty()) {
          assertThat(spec.firstSeeing(key)).isGreaterThan(spec.lastSeeing(key));
        } else {
          assertThat(spec.firstSeeing(key)).isEqualTo(seeing.getFirst());
          assertThat(spec.lastSeeing(key)).isEqualTo(seeing.getLast());
        }
      }
    }
  }

  @Test
  void seenKeysAreThoseOfPlainRules() {
    var random = new SplittableRandom(6);
    for (int draw = 0; draw < 5000; draw++) {
      var spec = spec(random);
      var queries = random.nextBoolean() ? drawn(random) : striped(random, 3);
      boolean exact =
          spec.packing().padding() == 0 && queries.runs().stream().allMatch(run -> run.step() == 1);
      for (var run : (random.nextBoolean() ? drawn(random) : striped(random, 3)).runs()) {
        var seen = queries.seen(spec, run);
        for (long i = 0; i < run.length(); i++) {
          long row = run.row() + i;
          long key = run.first() + i * run.step();
          boolean any =
              LongStream.range(queries.firstRow(), queries.endRow())
                  .anyMatch(query -> sees(spec, queries.at(query), key));
          long count =
              seen.stream().filter(part -> part.row() <= row && row < part.endRow()).count();
          // Keys between those that a run of queries sees are in its part too.
          assertThat(count).isBetween(any ? 1L : 0L, exact ? any ? 1L : 0L : 1L);
        }
      }
    }
  }

  @Test
  void pairsSeeAsTheirPositionsDo() {
    var random = new SplittableRandom(7);
    int joined = 0;
    int stripes = 0;
    for (int draw = 0; draw < 5000; draw++) {
      var spec = spec(random);
      int step = random.nextInt(4);
      var queries = step > 1 ? striped(random, step) : drawn(random);
      var keys =
          random.nextInt(3) == 0 ? queries : step > 1 ? striped(random, step) : drawn(random);
      var pairs = Tokens.pairs(spec, queries, keys);
      if (pairs.isEmpty()) {
        continue;
      }
      joined++;
      stripes += step > 1 ? 1 : 0;
      var seen = new boolean[(int) queries.endRow()][(int) keys.endRow()];
      for (var pair : pairs.get()) {
        for (int i = 0; i < pair.rows().length(); i++) {
          for (int j = 0; j < pair.keys().length(); j++) {
            seen[(int) pair.rows().row() + i][(int) pair.keys().row() + j] =
                sees(pair.spec(), pair.rows().first() + i, pair.keys().first() + j);
          }
        }
      }
      for (int i = (int) queries.firstRow(); i < seen.length; i++) {
        for (int j = (int) keys.firstRow(); j < seen[i].length; j++) {
          assertThat(seen[i][j])
              .as("%s: row %d of %s, key %d of %s", spec, i, queries, j, keys)
              .isEqualTo(sees(spec, queries.at(i), keys.at(j)));
        }
      }
    }
    assertThat(joined).isGreaterThan(500);
    assertThat(stripes).isGreaterThan(2000);
  }

  @Test
  void stripesAreOneBlock() {
    var spec = AttentionSpec.of(80, 2, 4).causal();
    var own = new Tokens(List.of(new Run(0, 1, 20, 4)));
    var before = new Tokens(List.of(new Run(0, 0, 20, 4)));
    assertThat(Tokens.pairs(spec, own, before).orElseThrow())
        .containsExactly(pair(spec.first(20), new Run(0, 0, 20), new Run(0, 0, 20)));
    // The first row sees no key, and no row sees the last key.
    assertThat(Tokens.pairs(spec, before, own).orElseThrow())
        .containsExactly(pair(spec.first(19), new Run(1, 0, 19), new Run(0, 0, 19)));
    assertThat(Tokens.pairs(spec.window(9), own, before).orElseThrow())
        .containsExactly(pair(spec.first(20).window(2), new Run(0, 0, 20), new Run(0, 0, 20)));
    assertThat(Tokens.pairs(spec.window(3), own, new Tokens(List.of(new Run(0, 2, 20, 4)))))
        .contains(List.of());
    // A row sees the key in the same row and the one after it.
    var both = AttentionSpec.of(80, 2, 4).window(4);
    assertThat(Tokens.pairs(both, own, before).orElseThrow())
        .containsExactly(pair(spec.first(21).window(2), new Run(0, 1, 20), new Run(0, 0, 20)));
    assertThat(Tokens.pairs(spec, own, Tokens.from(0, 40))).isEmpty();
  }

  @Test
  void partsOfZigzagAreOneBlock() {
    var spec = AttentionSpec.of(80, 2, 4).causal();
    // Chunks 1 and 6 of 8, of rank 1 of 4.
    var own = new Tokens(List.of(new Run(0, 10, 10), new Run(10, 60, 10)));
    var before = Tokens.from(0, 10);
    var after = new Tokens(List.of(new Run(0, 20, 10), new Run(10, 50, 10)));
    assertThat(Tokens.pairs(spec, own, own).orElseThrow())
        .containsExactly(pair(spec.first(20), new Run(0, 0, 20), new Run(0, 0, 20)));
    assertThat(Tokens.pairs(spec, own, before).orElseThrow())
        .containsExactly(pair(spec.first(29), new Run(0, 9, 20), new Run(0, 0, 10)));
    assertThat(Tokens.pairs(spec, own, after).orElseThrow())
        .containsExactly(pair(spec.first(29), new Run(10, 19, 10), new Run(0, 0, 20)));
  }

  private static Tokens.Pair pair(AttentionSpec spec, Run rows, Run keys) {
    return new Tokens.Pair(spec, rows, keys);
  }

  /// Keys of another rank's stripe that a rank fetches are those that one of its queries sees.
  @Test
  void seenKeysOfStripesAreThoseOfPlainRules() {
    var random = new SplittableRandom(8);
    for (int draw = 0; draw < 5000; draw++) {
      int ranks = 2 + random.nextInt(6);
      var plain = AttentionSpec.of(POSITIONS, 2, 4).layout(TokenLayout.STRIPED);
      var masked = (random.nextBoolean() ? plain.causal() : plain).window(1 + random.nextInt(12));
      var spec = random.nextBoolean() ? masked : masked.packed(0, 11, 20, 33, POSITIONS);
      var queries = Tokens.of(spec, ranks, random.nextInt(ranks));
      var keys = Tokens.of(spec, ranks, random.nextInt(ranks)).runs().getFirst();
      var fetched = queries.seen(spec, keys);
      boolean any = false;
      for (long row = 0; row < keys.length(); row++) {
        long place = row;
        long key = keys.first() + row * keys.step();
        boolean isFetched =
            fetched.stream().anyMatch(part -> part.row() <= place && place < part.endRow());
        boolean isSeen =
            LongStream.range(0, queries.count())
                .anyMatch(query -> sees(spec, queries.at(query), key));
        assertThat(isFetched).as("%s, key %d", spec, key).isEqualTo(isSeen);
        any |= isSeen;
      }
      assertThat(Tokens.sees(spec, queries.runs().getFirst(), keys)).isEqualTo(any);
    }
  }
}
