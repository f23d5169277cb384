package braid.internal.cuda.device;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.cuda.device.Sequences.Seeing;
import braid.internal.selftest.AttentionOracle;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.Matrix;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.natives.cudnn.AttentionProblem;
import braid.natives.cudnn.AttentionProblem.Strides;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class AttenderTest {
  /// Tokens of each sequence if they are equal.
  private static final int EQUAL = 8;

  private static final int HEADS = 2;
  private static final int HEAD_SIZE = 8;

  private static AttentionBlock block(
      AttentionSpec spec, int rows, long queryPosition, int keys, long keyPosition) {
    return new AttentionBlock(
        spec,
        matrix(spec.dtype(), rows, HEADS * HEAD_SIZE),
        queryPosition,
        matrix(spec.dtype(), keys, HEADS * HEAD_SIZE),
        matrix(spec.dtype(), keys, HEADS * HEAD_SIZE),
        keyPosition,
        new AttentionBlock.Part(
            matrix(DType.FP32, rows, HEADS * HEAD_SIZE), matrix(DType.FP32, rows, HEADS)),
        true);
  }

  private static Matrix matrix(DType dtype, int rows, int columns) {
    MemorySegment memory = Arena.ofAuto().allocate(Math.max(1, (long) rows * columns * 4));
    return Matrix.of(memory, dtype, rows, columns);
  }

  private static AttentionSpec spec(boolean causal, int window) {
    var spec = AttentionSpec.of(64, HEADS, HEAD_SIZE).dtype(DType.BF16);
    return (causal ? spec.causal() : spec).window(window);
  }

  /// Compares what cuDNN is asked with what the block's rows see, key by key.
  @Test
  void cudnnIsAskedForTheKeysThatTheRowsSee() {
    var random = new Random(11);
    for (int i = 0; i < 3000; i++) {
      var spec = spec(random.nextInt(4) > 0, random.nextInt(2) * random.nextInt(12));
      int keys = 1 + random.nextInt(10);
      var block = block(spec, 1 + random.nextInt(10), random.nextInt(30), keys, random.nextInt(30));
      var seeing = Seeing.of(block);
      var problem = Sequences.problem(block, seeing);
      for (int row = 0; row < block.query().rows(); row++) {
        int inner = row - seeing.first();
        boolean asked = inner >= 0 && inner < seeing.count();
        for (int key = 0; key < keys; key++) {
          boolean expected = key >= block.firstSeen(row) && key < block.endSeen(row);
          assertThat(asked && sees(problem.orElseThrow(), inner, key))
              .as("%s, row %d, key %d, %s", block, row, key, problem)
              .isEqualTo(expected);
        }
        assertThat(asked).isEqualTo(block.firstSeen(row) < block.endSeen(row));
      }
    }
  }

  /// As [AttentionProblem] says.
  private static boolean sees(AttentionProblem problem, int row, int key) {
    int position = row + problem.shift();
    return !problem.causal()
        || (key <= position && (problem.window() == 0 || key > position - problem.window()));
  }

  @Test
  void masksThatHideNothingAreLeftOut() {
    var late = block(spec(true, 0), 8, 40, 8, 0);
    var all = block(spec(false, 0), 8, 0, 8, 0);
    assertThat(Sequences.problem(late, Seeing.of(late)))
        .isEqualTo(Sequences.problem(all, Seeing.of(all)));
    var diagonal = block(spec(true, 0), 8, 40, 8, 40);
    assertThat(Sequences.problem(diagonal, Seeing.of(diagonal)))
        .map(AttentionProblem::causal)
        .contains(true);
  }

  @Test
  void cudnnIsNotAskedForFp32() {
    var block = block(spec(true, 0).dtype(DType.FP32), 8, 0, 8, 0);
    assertThat(Sequences.problem(block, Seeing.of(block))).isEqualTo(Optional.empty());
  }

  /// cuDNN writes gradients in 16 bits where they are, and others without gaps.
  @Test
  void columnsOfAFusedTensorHaveItsStride() {
    int columns = HEADS * HEAD_SIZE;
    var spec = spec(true, 0);
    var block =
        new AttentionBlock(
            spec,
            part(DType.BF16, 0),
            0,
            part(DType.BF16, 1),
            part(DType.BF16, 2),
            0,
            new AttentionBlock.Part(matrix(DType.BF16, 10, columns), matrix(DType.FP32, 10, HEADS)),
            false);
    var problem = Sequences.problem(block, Seeing.of(block)).orElseThrow();
    long stride = 3L * columns;
    assertThat(problem.strides()).isEqualTo(new Strides(stride, stride, stride, 0, 0, 0, 0));
    var gradient =
        new AttentionGradientBlock(
            block,
            matrix(DType.BF16, 10, columns),
            part(DType.FP32, 0),
            part(DType.BF16, 1),
            part(DType.BF16, 2),
            false,
            false,
            false);
    assertThat(Sequences.withGradients(problem, gradient).strides())
        .isEqualTo(new Strides(stride, stride, stride, 0, 0, stride, stride));
  }

  /// Returns the query, key or value of 10 rows of a fused tensor.
  private static Matrix part(DType dtype, int number) {
    int columns = HEADS * HEAD_SIZE;
    var all = matrix(dtype, 10, 3 * columns);
    return new Matrix(
        all.segment().asSlice((long) number * columns * dtype.bytes()),
        dtype,
        10,
        columns,
        3 * columns,
        false);
  }

  /// Compares the calls of cuDNN, with their tables, with the definition of packed sequences, pair
  /// by pair.
  @Test
  void packedSequencesAreComputedOnce() {
    var random = new Random(7);
    int together = 0;
    int equal = 0;
    for (int i = 0; i < 2000; i++) {
      boolean areEqual = random.nextInt(4) == 0;
      var spec = areEqual ? equal(random) : packed(random);
      int rows = areEqual ? EQUAL * (1 + random.nextInt(8)) : 1 + random.nextInt(64);
      int keys = areEqual ? rows : 1 + random.nextInt(64);
      int query =
          areEqual ? EQUAL * random.nextInt((64 - rows) / EQUAL + 1) : random.nextInt(65 - rows);
      int first =
          random.nextInt(3) == 0 || areEqual
              ? Math.min(query, 64 - keys)
              : random.nextInt(65 - keys);
      var block = block(spec, rows, query, keys, first);
      var computed = new int[rows][keys];
      try (var arena = Arena.ofConfined()) {
        for (var each : Sequences.of(block)) {
          together += each.arePacked() ? 1 : 0;
          equal += each.areSeveral() && !each.arePacked() ? 1 : 0;
          if (each.problem().isPresent()) {
            count(each, block, arena, computed);
          }
        }
      }
      for (int row = 0; row < rows; row++) {
        for (int key = 0; key < keys; key++) {
          assertThat(computed[row][key])
              .as("%s %d %d", block, row, key)
              .isEqualTo(sees(spec, query + row, first + key) ? 1 : 0);
        }
      }
    }
    assertThat(together).isGreaterThan(200);
    assertThat(equal).isGreaterThan(100);
  }

  /// Compares the calls of cuDNN, and the tables of our kernels, with the definition of stripes,
  /// pair by pair. Sequences with a mask of one size share a call.
  @Test
  void stripesWithWindowsAreComputedOnce() {
    var random = new Random(13);
    int together = 0;
    for (int i = 0; i < 3000; i++) {
      int ranks = 2 + random.nextInt(4);
      int end = 9 + random.nextInt(9);
      int[] ends = {0, end, end + 20, end + 27, end + 37};
      var plain = spec(random.nextBoolean(), random.nextInt(25)).layout(TokenLayout.STRIPED);
      var masked =
          switch (random.nextInt(3)) {
            case 0 -> plain;
            case 1 -> plain.packed(ends, new int[] {0, 19, 41, 50, 64});
            default ->
                AttentionSpec.of(end + 37, HEADS, HEAD_SIZE)
                    .dtype(DType.BF16)
                    .packed(ends)
                    .packedKeys(0, 30, 75, 90, 103)
                    .window(plain.window())
                    .layout(TokenLayout.STRIPED);
          };
      var spec = plain.isCausal() ? masked.causal() : masked;
      int rank = random.nextInt(ranks);
      int owner = random.nextInt(ranks);
      var rows = AttentionOracle.positions(spec, ranks, rank);
      var keys = AttentionOracle.positions(spec, spec.packing().keys(), ranks, owner);
      var block =
          new AttentionBlock(
              spec,
              matrix(DType.BF16, rows.length, HEADS * HEAD_SIZE),
              Tokens.of(spec, ranks, rank),
              matrix(DType.BF16, keys.length, HEADS * HEAD_SIZE),
              matrix(DType.BF16, keys.length, HEADS * HEAD_SIZE),
              Tokens.ofKeys(spec, ranks, owner),
              new AttentionBlock.Part(
                  matrix(DType.FP32, rows.length, HEADS * HEAD_SIZE),
                  matrix(DType.FP32, rows.length, HEADS)),
              random.nextBoolean(),
              Optional.empty());
      var computed = new int[rows.length][keys.length];
      var mask = AttentionOracle.mask(spec);
      try (var arena = Arena.ofConfined()) {
        for (var each : Sequences.of(block)) {
          together += each.arePacked() ? 1 : 0;
          if (each.problem().isPresent()) {
            count(each, block, arena, computed);
          }
        }
        var pairs = Attender.Pairs.of(block, arena);
        for (int row = 0; row < rows.length; row++) {
          for (int key = 0; key < keys.length; key++) {
            boolean sees = mask.sees(rows[row], keys[key]);
            assertThat(computed[row][key]).as("%s %d %d", block, row, key).isEqualTo(sees ? 1 : 0);
            assertThat(has(pairs.seen(), row, key)).isEqualTo(sees);
            assertThat(has(pairs.seeing(), key, row)).isEqualTo(sees);
          }
        }
        assertNeverFalls(pairs.seen(), rows.length);
        assertNeverFalls(pairs.seeing(), keys.length);
      }
    }
    assertThat(together).isGreaterThan(300);
  }

  /// Counts the pairs that a call computes, by its problem and its tables.
  private static void count(
      Sequences sequences, AttentionBlock block, Arena arena, int[][] computed) {
    var problem = sequences.problem().orElseThrow();
    if (sequences.areSeveral() && !sequences.arePacked()) {
      int count = problem.sequences().count();
      assertThat(count).isEqualTo(sequences.all().size());
      assertThat(sequences.length()).isEqualTo(problem.rows());
      assertThat(count * problem.rows()).isEqualTo(block.query().rows());
      assertThat(count * problem.keys()).isEqualTo(block.key().rows());
      for (int i = 0; i < count; i++) {
        count(
            problem,
            i * problem.rows(),
            problem.rows(),
            i * problem.keys(),
            problem.keys(),
            computed);
      }
      return;
    }
    if (!sequences.arePacked()) {
      int row = block.rowOf(sequences.block()) + sequences.rows().first();
      int key = block.keyOf(sequences.block());
      count(problem, row, sequences.rows().count(), key, sequences.block().key().rows(), computed);
      return;
    }
    var tables = sequences.tables(arena);
    int columns = HEADS * HEAD_SIZE;
    int rowsOf = 0;
    int keysOf = 0;
    for (int i = 0; i < sequences.all().size(); i++) {
      int rows = tables.get(0).getAtIndex(ValueLayout.JAVA_INT, i);
      int keys = tables.get(1).getAtIndex(ValueLayout.JAVA_INT, i);
      int row = (int) tables.get(2).getAtIndex(ValueLayout.JAVA_LONG, i) / columns;
      int key = (int) tables.get(3).getAtIndex(ValueLayout.JAVA_LONG, i) / columns;
      assertThat(tables.get(4).getAtIndex(ValueLayout.JAVA_LONG, i)).isEqualTo((long) row * HEADS);
      assertThat(rows).isBetween(1, problem.rows());
      assertThat(keys).isBetween(1, problem.keys());
      for (int index = row; index < row + rows; index++) {
        assertThat(tables.get(5).get(ValueLayout.JAVA_BYTE, index)).isEqualTo((byte) 1);
      }
      for (int position = key; position < key + keys; position++) {
        assertThat(tables.get(6).get(ValueLayout.JAVA_BYTE, position)).isEqualTo((byte) 1);
      }
      count(problem, row, rows, key, keys, computed);
      rowsOf += rows;
      keysOf += keys;
    }
    assertThat(ones(tables.get(5))).isEqualTo(rowsOf);
    assertThat(ones(tables.get(6))).isEqualTo(keysOf);
    assertThat(sequences.haveAllRowsOf(block)).isEqualTo(rowsOf == block.query().rows());
    assertThat(sequences.haveAllKeysOf(block)).isEqualTo(keysOf == block.key().rows());
  }

  private static void count(
      AttentionProblem problem, int row, int rows, int key, int keys, int[][] computed) {
    for (int r = 0; r < rows; r++) {
      int seen = 0;
      for (int k = 0; k < keys; k++) {
        int sees = sees(problem, r, k) ? 1 : 0;
        computed[row + r][key + k] += sees;
        seen += sees;
      }
      assertThat(seen).isPositive();
    }
  }

  private static int ones(MemorySegment table) {
    int ones = 0;
    for (long i = 0; i < table.byteSize(); i++) {
      ones += table.get(ValueLayout.JAVA_BYTE, i);
    }
    return ones;
  }

  /// Tokens are at positions 0 to 9, 20 to 49 and 55 to 59. Returns sequences of equal lengths.
  private static AttentionSpec equal(Random random) {
    var cumulative = IntStream.rangeClosed(0, 64 / EQUAL).map(i -> i * EQUAL).toArray();
    var spec = spec(random.nextBoolean(), 0).packed(cumulative);
    return random.nextBoolean() ? spec.window(1 + random.nextInt(EQUAL)) : spec;
  }

  private static AttentionSpec packed(Random random) {
    int[] cumulative = {0, 10, 40, 45};
    int[] padded = {0, 20, 55, 64};
    var spec = spec(random.nextBoolean(), 0).packed(cumulative, padded);
    return random.nextBoolean() ? spec.window(1 + random.nextInt(40)) : spec;
  }

  /// Compares the tables of our kernels with the definition of packed sequences, pair by pair.
  @Test
  void tablesHoldThePairsOfPackedSequences() {
    var random = new Random(5);
    for (int i = 0; i < 1000; i++) {
      var spec = packed(random);
      int rows = 1 + random.nextInt(40);
      int keys = 1 + random.nextInt(40);
      int query = random.nextInt(65 - rows);
      int first = random.nextInt(65 - keys);
      var block = block(spec, rows, query, keys, first);
      try (var arena = Arena.ofConfined()) {
        var pairs = Attender.Pairs.of(block, arena);
        for (int row = 0; row < rows; row++) {
          boolean any = false;
          for (int key = 0; key < keys; key++) {
            boolean sees = sees(spec, query + row, first + key);
            assertThat(has(pairs.seen(), row, key)).as("%s %d %d", block, row, key).isEqualTo(sees);
            assertThat(has(pairs.seeing(), key, row))
                .as("%s %d %d", block, row, key)
                .isEqualTo(sees);
            any |= sees;
          }
          assertThat(pairs.queryTokens().get(ValueLayout.JAVA_BYTE, row) != 0).isEqualTo(any);
        }
        for (int key = 0; key < keys; key++) {
          assertThat(pairs.tokens().get(ValueLayout.JAVA_BYTE, key) != 0)
              .isEqualTo(sequence(spec, first + key) >= 0);
        }
        assertNeverFalls(pairs.seen(), rows);
        assertNeverFalls(pairs.seeing(), keys);
      }
    }
  }

  private static boolean sees(AttentionSpec spec, int query, int key) {
    int sequence = sequence(spec, query);
    return sequence >= 0
        && sequence == sequence(spec, key)
        && !(spec.isCausal() && key > query)
        && !(spec.window() > 0 && Math.abs(query - key) >= spec.window());
  }

  private static int sequence(AttentionSpec spec, int position) {
    if (spec.packing().sequences() == 64 / EQUAL) {
      return position / EQUAL;
    }
    return position < 10
        ? 0
        : position >= 20 && position < 50 ? 1 : position >= 55 && position < 60 ? 2 : -1;
  }

  private static boolean has(MemorySegment table, int index, int number) {
    return number >= table.getAtIndex(ValueLayout.JAVA_INT, 2L * index)
        && number < table.getAtIndex(ValueLayout.JAVA_INT, 2L * index + 1);
  }

  /// Compares the tables of a block with other keys than queries with plain rules, pair by pair: of
  /// a sequence of 9 queries and 20 keys, one of 6 and 4, and one without queries.
  @Test
  void tablesHoldThePairsOfSeparateKeys() {
    var random = new Random(7);
    for (int i = 0; i < 200; i++) {
      int[] queries = {0, 9, 15, 15};
      int[] keys = {0, 20, 24, 27};
      var spec =
          AttentionSpec.of(15, HEADS, HEAD_SIZE)
              .packed(queries)
              .packedKeys(keys)
              .window(random.nextInt(8));
      var ofQueries = Tokens.of(spec, 1, 0);
      var ofKeys = Tokens.ofKeys(spec, 1, 0);
      int row = random.nextInt(15);
      int rows = 1 + random.nextInt(15 - row);
      int first = random.nextInt(27);
      int count = 1 + random.nextInt(27 - first);
      var block =
          new AttentionBlock(
              spec,
              matrix(DType.FP32, rows, HEADS * HEAD_SIZE),
              ofQueries.rows(row, row + rows),
              matrix(DType.FP32, count, HEADS * HEAD_SIZE),
              matrix(DType.FP32, count, HEADS * HEAD_SIZE),
              ofKeys.rows(first, first + count),
              new AttentionBlock.Part(
                  matrix(DType.FP32, rows, HEADS * HEAD_SIZE), matrix(DType.FP32, rows, HEADS)),
              true,
              Optional.empty());
      var mask = AttentionOracle.mask(spec);
      var unseen = AttentionOracle.unseen(spec);
      try (var arena = Arena.ofConfined()) {
        var pairs = Attender.Pairs.of(block, arena);
        for (int key = 0; key < count; key++) {
          for (int query = 0; query < rows; query++) {
            assertThat(has(pairs.seen(), query, key))
                .as("%s %d %d", spec, row + query, first + key)
                .isEqualTo(mask.sees(row + query, first + key));
            assertThat(has(pairs.seeing(), key, query))
                .isEqualTo(mask.sees(row + query, first + key));
          }
          assertThat(pairs.tokens().get(ValueLayout.JAVA_BYTE, key) == 0)
              .isEqualTo(unseen[first + key]);
        }
        assertNeverFalls(pairs.seen(), rows);
        assertNeverFalls(pairs.seeing(), count);
      }
    }
  }

  /// The last query is at the last key: cuDNN is asked for a mask that is shifted to the right.
  @Test
  void aChunkOfAPromptIsShiftedToTheRight() {
    var spec = spec(true, 0).keys(100);
    var whole = block(spec, 64, 36, 100, 0);
    assertThat(Sequences.problem(whole, Seeing.of(whole)))
        .map(problem -> List.of(problem.causal(), problem.shift()))
        .contains(List.of(true, 36));
    // Packed ones alone, each with its own shift, since cuDNN aligns first rows.
    var two =
        AttentionSpec.of(64, HEADS, HEAD_SIZE)
            .dtype(DType.BF16)
            .packed(0, 24, 64)
            .packedKeys(0, 30, 100)
            .causal();
    var queries = Tokens.of(two, 1, 0);
    var keys = Tokens.ofKeys(two, 1, 0);
    var packed =
        new AttentionBlock(
            two,
            matrix(DType.BF16, 64, HEADS * HEAD_SIZE),
            queries,
            matrix(DType.BF16, 100, HEADS * HEAD_SIZE),
            matrix(DType.BF16, 100, HEADS * HEAD_SIZE),
            keys,
            whole.result(),
            true,
            Optional.empty());
    assertThat(Sequences.of(packed))
        .map(each -> each.problem().orElseThrow())
        .map(problem -> List.of(problem.rows(), problem.keys(), problem.shift()))
        .containsExactly(List.of(24, 30, 6), List.of(40, 70, 30));
  }

  private static void assertNeverFalls(MemorySegment table, int count) {
    for (int i = 2; i < 2 * count; i++) {
      assertThat(table.getAtIndex(ValueLayout.JAVA_INT, i))
          .isGreaterThanOrEqualTo(table.getAtIndex(ValueLayout.JAVA_INT, i - 2));
    }
  }
}
