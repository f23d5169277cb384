package braid.natives.cudnn;

import static braid.natives.cudnn.AttentionProblem.Type.BF16;
import static braid.natives.cudnn.AttentionProblem.Type.FP16;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.PlainAttention;
import braid.natives.kernels.PlainAttention.Bounded;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// Compares cuDNN's attention, alone and packed, with plain loops on the GPU that will run it.
final class AttentionChecks {
  private static final int[][] EQUAL = {{128, 128, 0, 0}, {128, 128, 0, 0}, {128, 128, 0, 0}};
  private static final int[][] UNEQUAL = {
    {1, 1, 0, 0}, {300, 300, 0, 0}, {77, 77, 0, 0}, {2, 2, 0, 0}, {500, 500, 0, 0}
  };
  private static final int[][] GAPS = {{65, 65, 7, 7}, {130, 130, 62, 62}, {9, 9, 1, 1}};
  private static final int[][] OTHER_KEYS = {{50, 130, 0, 3}, {200, 60, 10, 0}, {64, 64, 0, 0}};

  private static final List<PackedProblem> PROBLEMS =
      List.of(
          alone(BF16, 4, 4, 128, 256, 256, false, 0, 0),
          alone(BF16, 4, 2, 128, 256, 256, true, 0, 0),
          alone(BF16, 3, 1, 64, 77, 333, false, 0, 0),
          alone(FP16, 3, 3, 128, 333, 77, true, 0, 0),
          alone(BF16, 4, 2, 128, 200, 257, true, 57, 0),
          alone(BF16, 4, 2, 128, 100, 257, true, 20, 0),
          alone(BF16, 2, 2, 128, 100, 200, true, 300, 0),
          alone(BF16, 2, 2, 128, 256, 256, true, 0, 100),
          alone(BF16, 2, 1, 128, 150, 300, true, 150, 40),
          alone(BF16, 2, 1, 128, 150, 300, true, 280, 140),
          alone(BF16, 2, 1, 64, 300, 150, true, 0, 151),
          // Windows to both sides, of 64 and of 200 positions.
          alone(BF16, 2, 1, 128, 256, 256, true, 63, 127),
          alone(BF16, 4, 2, 64, 256, 256, true, 199, 399),
          alone(FP16, 2, 2, 40, 65, 129, true, 64, 0),
          alone(BF16, 1, 1, 8, 1, 300, false, 0, 0),
          alone(BF16, 1, 1, 256, 130, 130, true, 0, 0),
          alone(BF16, 4, 2, 128, 256, 256, true, 0, 0).fused(),
          alone(FP16, 3, 1, 64, 77, 333, false, 0, 0).fused(),
          alone(BF16, 2, 1, 64, 300, 150, true, 0, 151).fused(),
          alone(BF16, 4, 4, 128, 128, 128, true, 0, 0).times(3),
          alone(BF16, 4, 2, 128, 77, 77, true, 0, 0).times(5),
          alone(FP16, 6, 2, 72, 130, 130, true, 0, 50).times(4),
          alone(BF16, 4, 1, 64, 100, 257, true, 157, 0).times(3),
          alone(BF16, 4, 4, 64, 60, 90, false, 0, 0).times(2),
          alone(BF16, 4, 2, 128, 64, 64, true, 0, 0).times(6).fused(),
          alone(BF16, 8, 8, 64, 1, 1, true, 0, 0).times(9),
          PackedProblem.of(BF16, 4, 4, 128, true, 0, 0, EQUAL),
          PackedProblem.of(BF16, 4, 2, 128, true, 0, 0, UNEQUAL),
          PackedProblem.of(FP16, 3, 1, 64, true, 0, 0, GAPS),
          PackedProblem.of(BF16, 4, 2, 64, false, 0, 0, OTHER_KEYS),
          PackedProblem.of(BF16, 2, 2, 128, true, 0, 0, OTHER_KEYS),
          PackedProblem.of(BF16, 4, 1, 128, true, 0, 100, UNEQUAL),
          PackedProblem.of(FP16, 2, 2, 48, true, 0, 30, GAPS),
          PackedProblem.of(BF16, 2, 1, 256, true, 0, 0, UNEQUAL));

  private static final List<PackedProblem> REFUSED =
      List.of(
          alone(BF16, 2, 2, 100, 64, 64, false, 0, 0),
          alone(BF16, 2, 2, 264, 64, 64, false, 0, 0),
          alone(BF16, 2, 2, 64, 64, 64, true, -1, 0),
          alone(BF16, 2, 2, 64, 300, 150, true, 0, 100),
          PackedProblem.of(BF16, 4, 4, 128, true, 0, 0, EQUAL).fused());

  private final Cudnn cudnn;
  private final GpuStream stream;
  private final CheckedMemory memory;

  AttentionChecks(Gpu gpu, Cudnn cudnn, GpuStream stream) {
    this.cudnn = cudnn;
    this.stream = stream;
    this.memory = new CheckedMemory(gpu, stream);
  }

  private static PackedProblem alone(
      AttentionProblem.Type type,
      int heads,
      int kvHeads,
      int headSize,
      int rows,
      int keys,
      boolean causal,
      int shift,
      int window) {
    return PackedProblem.of(
        type, heads, kvHeads, headSize, causal, shift, window, new int[] {rows, keys, 0, 0});
  }

  /// Returns what is wrong of all problems, and those that cuDNN does not refuse as it must.
  static List<String> wrong(Gpu gpu, Cudnn cudnn) {
    var wrong = new ArrayList<String>();
    try (var stream = gpu.stream(gpu.leastPriority())) {
      var checks = new AttentionChecks(gpu, cudnn, stream);
      for (var each : PROBLEMS) {
        checks.check(each, false, false).map((each + ", forward: ")::concat).ifPresent(wrong::add);
        checks.check(each, true, false).map((each + ", backward: ")::concat).ifPresent(wrong::add);
        if (!each.isPacked()) {
          checks
              .check(each, true, true)
              .map((each + ", deterministic backward: ")::concat)
              .ifPresent(wrong::add);
        }
      }
    }
    for (var each : REFUSED) {
      if (cudnn.cannot(each.problem()).isEmpty()) {
        wrong.add(each + ", forward: must be refused");
      }
    }
    var odd = PackedProblem.of(FP16, 2, 2, 40, true, 0, 0, GAPS).problem();
    var deterministic = PackedProblem.of(BF16, 4, 4, 128, true, 0, 0, EQUAL).problem();
    if (cudnn.cannotBackward(odd, false).isEmpty()
        || cudnn.cannotBackward(deterministic, true).isEmpty()) {
      wrong.add("packed, backward: heads of 40 and deterministic sums must be refused");
    }
    return wrong;
  }

  /// Compares a problem with plain loops. Gaps hold NaN.
  ///
  /// @return the first wrong number, or why cuDNN refuses the problem; empty if all is right
  Optional<String> check(PackedProblem packed, boolean backward, boolean deterministic) {
    var problem = packed.problem();
    var refused = backward ? cudnn.cannotBackward(problem, deterministic) : cudnn.cannot(problem);
    if (refused.isPresent()) {
      return refused;
    }
    try {
      return backward ? backward(packed, problem, deterministic) : forward(packed, problem);
    } finally {
      memory.free();
    }
  }

  private static PlainAttention.Errors errors(AttentionProblem problem) {
    return problem.type() == BF16 ? PlainAttention.Errors.BF16 : PlainAttention.Errors.FP16;
  }

  private Optional<String> forward(PackedProblem packed, AttentionProblem problem) {
    int columns = problem.heads() * problem.headSize();
    int kvColumns = problem.kvHeads() * problem.headSize();
    var query = packed.numbers(0, columns, 1);
    var key = packed.numbers(1, kvColumns, 2);
    var value = packed.numbers(1, kvColumns, 3);
    var rows = packed.positions(0);
    var expected = packed.plain(query, key, value).forward(errors(problem), rows);
    var plan = cudnn.forward(problem);
    int statistics = query.length / problem.headSize();
    long output = memory.allocate(2L * query.length);
    long stats = memory.allocate(4L * statistics);
    run(plan, packed, given(problem, query, key, value), output, stats);
    var type = problem.type();
    var got = memory.read(type, output, query.length);
    var lse = byRow(packed, problem, memory.floats(stats, statistics));
    return wrong("output", expected.output().stored(errors(problem)), got, columns, rows)
        .or(() -> wrong("statistics", expected.lse(), lse, problem.heads(), rows));
  }

  private Optional<String> backward(
      PackedProblem packed, AttentionProblem problem, boolean deterministic) {
    int columns = problem.heads() * problem.headSize();
    int kvColumns = problem.kvHeads() * problem.headSize();
    var query = packed.numbers(0, columns, 1);
    var key = packed.numbers(1, kvColumns, 2);
    var value = packed.numbers(1, kvColumns, 3);
    var gradient = packed.numbers(0, columns, 4);
    var rows = packed.positions(0);
    var keys = packed.positions(1);
    var plain = packed.plain(query, key, value);
    var forward = plain.forward(errors(problem), rows);
    var expected =
        plain.backward(errors(problem), PlainAttention.numbers(columns, gradient), rows, keys);
    var output = spread(forward.output().values(), query.length, columns, rows);
    int statistics = query.length / problem.headSize();
    var lse = spread(forward.lse().values(), statistics, problem.heads(), rows);
    var plan = cudnn.backward(problem, deterministic);
    int stride = stride(columns, problem);
    int kvStride = stride(kvColumns, problem);
    int queryCount = query.length / columns * stride;
    int keyCount = key.length / kvColumns * kvStride;
    long dQuery = memory.allocate(2L * queryCount);
    long dKey = memory.allocate(2L * keyCount);
    long dValue = memory.allocate(2L * keyCount);
    var type = problem.type();
    run(
        plan,
        packed,
        LongStream.concat(
                Arrays.stream(given(problem, query, key, value)),
                Stream.of(output, gradient).mapToLong(each -> memory.narrow(type, each)))
            .toArray(),
        memory.wide(byHead(packed, problem, lse)),
        dQuery,
        dKey,
        dValue);
    var stored = errors(problem);
    var ofQuery = moved(memory.read(type, dQuery, queryCount), stride, columns);
    var ofKey = moved(memory.read(type, dKey, keyCount), kvStride, kvColumns);
    var ofValue = moved(memory.read(type, dValue, keyCount), kvStride, kvColumns);
    return wrong("query gradient", expected.query().stored(stored), ofQuery, columns, rows)
        .or(() -> wrong("key gradient", expected.key().stored(stored), ofKey, kvColumns, keys))
        .or(
            () ->
                wrong("value gradient", expected.value().stored(stored), ofValue, kvColumns, keys));
  }

  /// Returns query, key and value in memory, with NaN between rows that are apart.
  private long[] given(AttentionProblem problem, double[] query, double[] key, double[] value) {
    int columns = problem.heads() * problem.headSize();
    int kvColumns = problem.kvHeads() * problem.headSize();
    int kvStride = stride(kvColumns, problem);
    return Stream.of(
            moved(query, columns, stride(columns, problem)),
            moved(key, kvColumns, kvStride),
            moved(value, kvColumns, kvStride))
        .mapToLong(each -> memory.narrow(problem.type(), each))
        .toArray();
  }

  /// Returns the numbers from row to row of query, key, value and their gradients.
  private static int stride(int columns, AttentionProblem problem) {
    long stride = problem.strides().query();
    return stride == 0 ? columns : Math.toIntExact(stride);
  }

  /// Returns the first numbers of each row in rows of another length, with NaN in gaps.
  private static double[] moved(double[] rows, int from, int to) {
    int count = rows.length / from;
    var moved = new double[count * to];
    Arrays.fill(moved, Double.NaN);
    for (int row = 0; row < count; row++) {
      System.arraycopy(rows, row * from, moved, row * to, Math.min(from, to));
    }
    return moved;
  }

  /// Runs a plan on operands and results; packed sequences need tables of their sizes and ends.
  private void run(AttentionPlan plan, PackedProblem packed, long[] operands, long... results) {
    var all = new ArrayList<Long>();
    Arrays.stream(operands).forEach(all::add);
    Arrays.stream(results).forEach(all::add);
    if (packed.isPacked()) {
      var one = packed.one();
      for (int side = 0; side < 2; side++) {
        int size = side;
        all.add(ints(Arrays.stream(packed.sizes()).mapToInt(each -> each[size]).toArray()));
      }
      all.add(ends(packed, 0, (long) one.heads() * one.headSize()));
      all.add(ends(packed, 1, (long) one.kvHeads() * one.headSize()));
      all.add(ends(packed, 0, one.heads()));
    }
    long workspace = memory.allocate(plan.workspaceBytes());
    var addresses = all.stream().mapToLong(Long::longValue).toArray();
    plan.load(workspace, addresses);
    plan.run(stream, workspace, addresses);
    stream.synchronize();
  }

  private long ints(int... numbers) {
    return memory.put(MemorySegment.ofArray(numbers));
  }

  private long ends(PackedProblem packed, int side, long columns) {
    var ends = new long[packed.sizes().length + 1];
    Arrays.setAll(ends, i -> packed.first(side, i) * columns);
    return memory.put(MemorySegment.ofArray(ends));
  }

  /// Returns statistics as cuDNN reads them: head by head in each sequence, those of packed ones
  /// row by row.
  private static double[] byHead(PackedProblem packed, AttentionProblem problem, double... byRow) {
    return packed.isPacked() ? byRow : transposed(packed, problem.heads(), byRow);
  }

  private static double[] byRow(PackedProblem packed, AttentionProblem problem, double... stats) {
    return packed.isPacked() ? stats : transposed(packed, problem.rows(), stats);
  }

  /// Transposes the matrix of each sequence.
  private static double[] transposed(PackedProblem packed, int columns, double... matrices) {
    int size = matrices.length / packed.sizes().length;
    int rows = size / columns;
    var transposed = new double[matrices.length];
    Arrays.setAll(
        transposed, i -> matrices[i - i % size + i % size % rows * columns + i % size / rows]);
    return transposed;
  }

  /// Returns numbers of some rows in their places; NaN in gaps.
  private static double[] spread(double[] numbers, int count, int columns, int... rows) {
    var all = new double[count];
    Arrays.fill(all, Double.NaN);
    for (int i = 0; i < rows.length; i++) {
      System.arraycopy(numbers, i * columns, all, rows[i] * columns, columns);
    }
    return all;
  }

  private static Optional<String> wrong(
      String name, Bounded expected, double[] got, int columns, int... rows) {
    var kept = new double[rows.length * columns];
    for (int i = 0; i < rows.length; i++) {
      System.arraycopy(got, rows[i] * columns, kept, i * columns, columns);
    }
    return expected.wrong(name, kept);
  }
}
