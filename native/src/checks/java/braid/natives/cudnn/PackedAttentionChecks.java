package braid.natives.cudnn;

import braid.natives.cuda.GpuStream;
import braid.natives.cudnn.AttentionProblem.Sequences;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/// Compares cuDNN's attention of packed sequences with plain loops over each.
final class PackedAttentionChecks {
  /// Packed sequences: rows and keys of each, and of the gap after it.
  ///
  /// @param of the problem of one sequence
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record Packed(AttentionProblem of, int[][] sizes) {
    int rows() {
      return sum(0, 2);
    }

    int keys() {
      return sum(1, 3);
    }

    private int sum(int size, int gap) {
      return Arrays.stream(sizes).mapToInt(each -> each[size] + each[gap]).sum();
    }

    @Override
    public String toString() {
      return "%s, rows and keys and gaps %s".formatted(of, Arrays.deepToString(sizes));
    }

    AttentionProblem one(int sequence) {
      int rows = sizes[sequence][0];
      int keys = sizes[sequence][1];
      return resized(rows, keys, new Sequences(1, rows, keys));
    }

    AttentionProblem all() {
      return resized(
          Arrays.stream(sizes).mapToInt(each -> each[0]).max().orElseThrow(),
          Arrays.stream(sizes).mapToInt(each -> each[1]).max().orElseThrow(),
          new Sequences(sizes.length, rows(), keys()));
    }

    private AttentionProblem resized(int rows, int keys, Sequences sequences) {
      return new AttentionProblem(
          of.type(),
          of.heads(),
          of.kvHeads(),
          of.headSize(),
          rows,
          keys,
          of.causal(),
          0,
          of.window(),
          of.scale(),
          sequences);
    }
  }

  private static final int[][] EQUAL = {{128, 128, 0, 0}, {128, 128, 0, 0}, {128, 128, 0, 0}};
  private static final int[][] UNEQUAL = {
    {1, 1, 0, 0}, {300, 300, 0, 0}, {77, 77, 0, 0}, {2, 2, 0, 0}, {500, 500, 0, 0}
  };
  private static final int[][] GAPS = {{65, 65, 7, 7}, {130, 130, 62, 62}, {9, 9, 1, 1}};
  private static final int[][] OTHER_KEYS = {{50, 130, 0, 3}, {200, 60, 10, 0}, {64, 64, 0, 0}};

  private static final List<Packed> PACKED =
      List.of(
          new Packed(problem(AttentionProblem.Type.BF16, 4, 4, 128, true, 0), EQUAL),
          new Packed(problem(AttentionProblem.Type.BF16, 4, 2, 128, true, 0), UNEQUAL),
          new Packed(problem(AttentionProblem.Type.FP16, 3, 1, 64, true, 0), GAPS),
          new Packed(problem(AttentionProblem.Type.BF16, 4, 2, 64, false, 0), OTHER_KEYS),
          new Packed(problem(AttentionProblem.Type.BF16, 2, 2, 128, true, 0), OTHER_KEYS),
          new Packed(problem(AttentionProblem.Type.BF16, 4, 1, 128, true, 100), UNEQUAL),
          new Packed(problem(AttentionProblem.Type.FP16, 2, 2, 48, true, 30), GAPS),
          new Packed(problem(AttentionProblem.Type.BF16, 2, 1, 256, true, 0), UNEQUAL));

  private final Cudnn cudnn;
  private final GpuStream stream;
  private final CheckedMemory memory;

  PackedAttentionChecks(Cudnn cudnn, GpuStream stream, CheckedMemory memory) {
    this.cudnn = cudnn;
    this.stream = stream;
    this.memory = memory;
  }

  private static AttentionProblem problem(
      AttentionProblem.Type type,
      int heads,
      int kvHeads,
      int headSize,
      boolean causal,
      int window) {
    return AttentionChecks.problem(type, heads, kvHeads, headSize, 1, 1, causal, 0, window);
  }

  boolean areRight() {
    boolean right = true;
    for (var packed : PACKED) {
      right &= AttentionChecks.print("forward", packed.all(), check(packed, false));
      right &= AttentionChecks.print("backward", packed.all(), check(packed, true));
    }
    var odd = new Packed(problem(AttentionProblem.Type.FP16, 2, 2, 40, true, 0), GAPS).all();
    var even = PACKED.getFirst().all();
    right &= AttentionChecks.refused(odd, cudnn.cannotBackward(odd, false));
    right &= AttentionChecks.refused(even, cudnn.cannotBackward(even, true));
    return right;
  }

  /// Compares packed sequences with plain loops over each. Gaps hold NaN.
  Optional<String> check(Packed packed, boolean backward) {
    var problem = packed.all();
    var refused = backward ? cudnn.cannotBackward(problem, false) : cudnn.cannot(problem);
    if (refused.isPresent()) {
      return refused;
    }
    int inRow = problem.heads() * problem.headSize();
    int inKey = problem.kvHeads() * problem.headSize();
    var query = nan(packed.rows() * inRow);
    var key = nan(packed.keys() * inKey);
    var value = key.clone();
    var output = query.clone();
    var dOutput = query.clone();
    var stats = nan(packed.rows() * problem.heads());
    var expected = new ArrayList<PlainAttention>();
    int count = packed.sizes.length;
    var tables =
        List.of(
            new long[count],
            new long[count],
            new long[count + 1],
            new long[count + 1],
            new long[count + 1]);
    int row = 0;
    int from = 0;
    for (int i = 0; i <= count; i++) {
      tables.get(2)[i] = (long) row * inRow;
      tables.get(3)[i] = (long) from * inKey;
      tables.get(4)[i] = (long) row * problem.heads();
      if (i < count) {
        int[] size = packed.sizes[i];
        var one = new PlainAttention(packed.one(i), i);
        tables.get(0)[i] = size[0];
        tables.get(1)[i] = size[1];
        put(one.query, query, row * inRow);
        put(one.key, key, from * inKey);
        put(one.value, value, from * inKey);
        put(one.output, output, row * inRow);
        put(one.dOutput, dOutput, row * inRow);
        put(one.byRow(), stats, row * problem.heads());
        expected.add(one);
        row += size[0] + size[2];
        from += size[1] + size[3];
      }
    }
    try {
      var plan = backward ? cudnn.backward(problem, false) : cudnn.forward(problem);
      long gotOutput = memory.allocate(2L * query.length);
      long gotStats = memory.allocate(4L * stats.length);
      long dQuery = memory.allocate(2L * query.length);
      long dKey = memory.allocate(2L * key.length);
      long dValue = memory.allocate(2L * key.length);
      var operands = new ArrayList<Long>();
      operands.add(memory.narrow(problem.type(), query));
      operands.add(memory.narrow(problem.type(), key));
      operands.add(memory.narrow(problem.type(), value));
      if (backward) {
        operands.add(memory.narrow(problem.type(), output));
        operands.add(memory.narrow(problem.type(), dOutput));
        operands.add(memory.wide(stats));
        operands.addAll(List.of(dQuery, dKey, dValue));
      } else {
        operands.addAll(List.of(gotOutput, gotStats));
      }
      operands.add(memory.put(MemorySegment.ofArray(ints(tables.get(0)))));
      operands.add(memory.put(MemorySegment.ofArray(ints(tables.get(1)))));
      tables.subList(2, 5).forEach(each -> operands.add(memory.put(MemorySegment.ofArray(each))));
      plan.run(
          stream,
          memory.allocate(plan.workspaceBytes()),
          operands.stream().mapToLong(Long::longValue).toArray());
      stream.synchronize();
      var results =
          backward
              ? List.of(
                  memory.read(problem.type(), dQuery, query.length),
                  memory.read(problem.type(), dKey, key.length),
                  memory.read(problem.type(), dValue, key.length))
              : List.of(
                  memory.read(problem.type(), gotOutput, query.length),
                  memory.floats(gotStats, stats.length));
      for (int i = 0; i < count; i++) {
        var one = expected.get(i);
        int rows = (int) tables.get(2)[i];
        int keys = (int) tables.get(3)[i];
        double tolerance = PlainAttention.tolerance(problem.type());
        var wrong =
            backward
                ? one.dQuery
                    .compare(part(results.get(0), rows, one.query), tolerance)
                    .or(() -> one.dKey.compare(part(results.get(1), keys, one.key), tolerance))
                    .or(() -> one.dValue.compare(part(results.get(2), keys, one.key), tolerance))
                : PlainAttention.compare(
                    "output", part(results.get(0), rows, one.output), one.output, tolerance);
        if (!backward) {
          int stat = (int) tables.get(4)[i];
          wrong =
              wrong.or(
                  () ->
                      PlainAttention.compare(
                          "statistics",
                          part(results.get(1), stat, one.byRow()),
                          one.byRow(),
                          PlainAttention.STATISTICS_TOLERANCE));
        }
        if (wrong.isPresent()) {
          return Optional.of("sequence %d: %s".formatted(i, wrong.get()));
        }
      }
      return Optional.empty();
    } finally {
      memory.free();
    }
  }

  private static double[] nan(int count) {
    var numbers = new double[count];
    Arrays.fill(numbers, Double.NaN);
    return numbers;
  }

  private static void put(double[] from, double[] to, int at) {
    System.arraycopy(from, 0, to, at, from.length);
  }

  private static double[] part(double[] of, int from, double[] like) {
    return Arrays.copyOfRange(of, from, from + like.length);
  }

  private static int[] ints(long[] numbers) {
    return Arrays.stream(numbers).mapToInt(Math::toIntExact).toArray();
  }
}
