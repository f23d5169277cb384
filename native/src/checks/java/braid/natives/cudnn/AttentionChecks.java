package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.cudnn.AttentionProblem.Sequences;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/// Compares cuDNN's attention with plain loops on the GPU that will run it, and times large cases.
public final class AttentionChecks {
  /// Largest difference of an output or gradient, relative to the root mean square of the expected
  /// ones, to the number itself, and to the root of the squares of a gradient's terms, which cancel
  /// out. A number of bf16 has 8 significant bits, one of fp16 11. Grouped heads are rounded before
  /// they are summed.
  private static final double BF16_TOLERANCE = 2e-2;

  private static final double FP16_TOLERANCE = 3e-3;
  private static final double STATISTICS_TOLERANCE = 1e-4;
  private static final int TIMED_RUNS = 10;

  private static final List<AttentionProblem> SMALL =
      List.of(
          problem(AttentionProblem.Type.BF16, 4, 4, 128, 256, 256, false, 0, 0),
          problem(AttentionProblem.Type.BF16, 4, 2, 128, 256, 256, true, 0, 0),
          problem(AttentionProblem.Type.BF16, 3, 1, 64, 77, 333, false, 0, 0),
          problem(AttentionProblem.Type.FP16, 3, 3, 128, 333, 77, true, 0, 0),
          problem(AttentionProblem.Type.BF16, 4, 2, 128, 200, 257, true, 57, 0),
          problem(AttentionProblem.Type.BF16, 4, 2, 128, 100, 257, true, 20, 0),
          problem(AttentionProblem.Type.BF16, 2, 2, 128, 100, 200, true, 300, 0),
          problem(AttentionProblem.Type.BF16, 2, 2, 128, 256, 256, true, 0, 100),
          problem(AttentionProblem.Type.BF16, 2, 1, 128, 150, 300, true, 150, 40),
          problem(AttentionProblem.Type.BF16, 2, 1, 128, 150, 300, true, 280, 140),
          problem(AttentionProblem.Type.BF16, 2, 1, 64, 300, 150, true, 0, 151),
          problem(AttentionProblem.Type.FP16, 2, 2, 40, 65, 129, true, 64, 0),
          problem(AttentionProblem.Type.BF16, 1, 1, 8, 1, 300, false, 0, 0),
          problem(AttentionProblem.Type.BF16, 1, 1, 256, 130, 130, true, 0, 0));

  /// Packed sequences: rows and keys of each, and of the gap after it.
  ///
  /// @param of the problem of one sequence
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  private record Packed(AttentionProblem of, int[][] sizes) {
    int rows() {
      return sum(0, 2);
    }

    int keys() {
      return sum(1, 3);
    }

    private int sum(int size, int gap) {
      return Arrays.stream(sizes).mapToInt(each -> each[size] + each[gap]).sum();
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
          new Packed(problem(AttentionProblem.Type.BF16, 4, 4, 128, 1, 1, true, 0, 0), EQUAL),
          new Packed(problem(AttentionProblem.Type.BF16, 4, 2, 128, 1, 1, true, 0, 0), UNEQUAL),
          new Packed(problem(AttentionProblem.Type.FP16, 3, 1, 64, 1, 1, true, 0, 0), GAPS),
          new Packed(problem(AttentionProblem.Type.BF16, 4, 2, 64, 1, 1, false, 0, 0), OTHER_KEYS),
          new Packed(problem(AttentionProblem.Type.BF16, 2, 2, 128, 1, 1, true, 0, 0), OTHER_KEYS),
          new Packed(problem(AttentionProblem.Type.BF16, 4, 1, 128, 1, 1, true, 0, 100), UNEQUAL),
          new Packed(problem(AttentionProblem.Type.FP16, 2, 2, 48, 1, 1, true, 0, 30), GAPS),
          new Packed(problem(AttentionProblem.Type.BF16, 2, 1, 256, 1, 1, true, 0, 0), UNEQUAL));

  private static final List<AttentionProblem> REFUSED =
      List.of(
          problem(AttentionProblem.Type.BF16, 2, 2, 100, 64, 64, false, 0, 0),
          problem(AttentionProblem.Type.BF16, 2, 2, 264, 64, 64, false, 0, 0),
          problem(AttentionProblem.Type.BF16, 2, 2, 64, 64, 64, true, -1, 0),
          problem(AttentionProblem.Type.BF16, 2, 2, 64, 300, 150, true, 0, 100));

  private static final List<AttentionProblem> LARGE =
      List.of(
          problem(AttentionProblem.Type.BF16, 32, 32, 128, 8192, 8192, true, 0, 0),
          problem(AttentionProblem.Type.BF16, 32, 32, 128, 8192, 8192, false, 0, 0),
          problem(AttentionProblem.Type.BF16, 32, 8, 128, 8192, 8192, true, 0, 0),
          problem(AttentionProblem.Type.BF16, 32, 8, 128, 4096, 8192, true, 4096, 0),
          problem(AttentionProblem.Type.BF16, 32, 8, 128, 4096, 4096, false, 0, 0),
          problem(AttentionProblem.Type.BF16, 32, 8, 128, 4096, 8192, true, 4096, 1024));

  private final Gpu gpu;
  private final Cudnn cudnn;
  private final GpuStream stream;
  private final List<Long> allocations = new ArrayList<>();

  private AttentionChecks(Gpu gpu, Cudnn cudnn, GpuStream stream) {
    this.gpu = gpu;
    this.cudnn = cudnn;
    this.stream = stream;
  }

  private static AttentionProblem problem(
      AttentionProblem.Type type,
      int heads,
      int kvHeads,
      int headSize,
      int rows,
      int keys,
      boolean causal,
      int shift,
      int window) {
    return new AttentionProblem(
        type,
        heads,
        kvHeads,
        headSize,
        rows,
        keys,
        causal,
        shift,
        window,
        (float) (1 / Math.sqrt(headSize)));
  }

  /// Checks device 0 and prints each result. Exits with 1 if one is wrong.
  public static void main(String[] args) {
    var missing = Gpu.missing();
    if (missing.isPresent()) {
      System.err.println("cuDNN cannot be checked: " + missing.get());
      System.exit(1);
    }
    boolean right;
    long begun = System.nanoTime();
    try (var gpu = Gpu.open(0, "check");
        var cudnn = Cudnn.open(gpu);
        var stream = gpu.stream(gpu.leastPriority())) {
      System.out.printf(
          "%s, cuDNN %s, opened in %.0f ms%n",
          gpu.where(), cudnn.version(), (System.nanoTime() - begun) / 1e6);
      var checks = new AttentionChecks(gpu, cudnn, stream);
      right = checks.areRight();
      for (var problem : LARGE) {
        checks.time(problem);
      }
    }
    if (!right) {
      System.exit(1);
    }
  }

  /// Checks all small cases and prints each result; returns whether all are right.
  static boolean areRight(Gpu gpu, Cudnn cudnn) {
    try (var stream = gpu.stream(gpu.leastPriority())) {
      return new AttentionChecks(gpu, cudnn, stream).areRight();
    }
  }

  private boolean areRight() {
    boolean right = true;
    for (var problem : SMALL) {
      right &= print("forward", problem, forward(problem));
      right &= print("backward", problem, backward(problem, false));
      right &= print("deterministic backward", problem, backward(problem, true));
    }
    for (var packed : PACKED) {
      right &= print("forward", packed.all(), packed(packed, false));
      right &= print("backward", packed.all(), packed(packed, true));
    }
    for (var problem : REFUSED) {
      right &= refused(problem, cudnn.cannot(problem));
    }
    var odd = new Packed(problem(AttentionProblem.Type.FP16, 2, 2, 40, 1, 1, true, 0, 0), GAPS);
    right &= refused(odd.all(), cudnn.cannotBackward(odd.all(), false));
    right &= refused(PACKED.getFirst().all(), cudnn.cannotBackward(PACKED.getFirst().all(), true));
    return right;
  }

  private static boolean refused(AttentionProblem problem, Optional<String> why) {
    System.out.printf("%s  %s%n", why.isPresent() ? "right" : "WRONG", why.orElse("" + problem));
    return why.isPresent();
  }

  private boolean print(String what, AttentionProblem problem, Optional<String> wrong) {
    System.out.printf(
        "%s  %s %s%s%n",
        wrong.isEmpty() ? "right" : "WRONG",
        what,
        problem,
        wrong.map(why -> ": " + why).orElse(""));
    return wrong.isEmpty();
  }

  private Optional<String> forward(AttentionProblem problem) {
    var refused = cudnn.cannot(problem);
    if (refused.isPresent()) {
      return refused;
    }
    try {
      var expected = new Expected(problem, 1);
      var plan = cudnn.forward(problem);
      long output = allocate(2L * expected.output.length);
      long stats = allocate(4L * expected.stats.length);
      plan.run(
          stream,
          allocate(plan.workspaceBytes()),
          narrow(problem, expected.query),
          narrow(problem, expected.key),
          narrow(problem, expected.value),
          output,
          stats);
      stream.synchronize();
      return compare(
              "output",
              read(problem, output, expected.output.length),
              expected.output,
              tolerance(problem))
          .or(
              () ->
                  compare(
                      "statistics",
                      floats(stats, expected.stats.length),
                      expected.stats,
                      STATISTICS_TOLERANCE));
    } finally {
      free();
    }
  }

  private Optional<String> backward(AttentionProblem problem, boolean deterministic) {
    var refused = cudnn.cannotBackward(problem, deterministic);
    if (refused.isPresent()) {
      return refused;
    }
    try {
      var expected = new Expected(problem, 2);
      var plan = cudnn.backward(problem, deterministic);
      long dQuery = allocate(2L * expected.query.length);
      long dKey = allocate(2L * expected.key.length);
      long dValue = allocate(2L * expected.value.length);
      plan.run(
          stream,
          allocate(plan.workspaceBytes()),
          narrow(problem, expected.query),
          narrow(problem, expected.key),
          narrow(problem, expected.value),
          narrow(problem, expected.output),
          narrow(problem, expected.dOutput),
          wide(expected.stats),
          dQuery,
          dKey,
          dValue);
      stream.synchronize();
      double tolerance = tolerance(problem);
      return expected
          .dQuery
          .compare(read(problem, dQuery, expected.query.length), tolerance)
          .or(() -> expected.dKey.compare(read(problem, dKey, expected.key.length), tolerance))
          .or(
              () ->
                  expected.dValue.compare(read(problem, dValue, expected.value.length), tolerance));
    } finally {
      free();
    }
  }

  /// Compares packed sequences with plain loops over each. Gaps hold NaN.
  private Optional<String> packed(Packed packed, boolean backward) {
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
    var expected = new ArrayList<Expected>();
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
        var one = new Expected(packed.one(i), i);
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
      long gotOutput = allocate(2L * query.length);
      long gotStats = allocate(4L * stats.length);
      long dQuery = allocate(2L * query.length);
      long dKey = allocate(2L * key.length);
      long dValue = allocate(2L * key.length);
      var operands = new ArrayList<Long>();
      operands.add(narrow(problem, query));
      operands.add(narrow(problem, key));
      operands.add(narrow(problem, value));
      if (backward) {
        operands.add(narrow(problem, output));
        operands.add(narrow(problem, dOutput));
        operands.add(wide(stats));
        operands.addAll(List.of(dQuery, dKey, dValue));
      } else {
        operands.addAll(List.of(gotOutput, gotStats));
      }
      operands.add(put(MemorySegment.ofArray(ints(tables.get(0)))));
      operands.add(put(MemorySegment.ofArray(ints(tables.get(1)))));
      tables.subList(2, 5).forEach(each -> operands.add(put(MemorySegment.ofArray(each))));
      plan.run(
          stream,
          allocate(plan.workspaceBytes()),
          operands.stream().mapToLong(Long::longValue).toArray());
      stream.synchronize();
      var results =
          backward
              ? List.of(
                  read(problem, dQuery, query.length),
                  read(problem, dKey, key.length),
                  read(problem, dValue, key.length))
              : List.of(read(problem, gotOutput, query.length), floats(gotStats, stats.length));
      for (int i = 0; i < count; i++) {
        var one = expected.get(i);
        int rows = (int) tables.get(2)[i];
        int keys = (int) tables.get(3)[i];
        double tolerance = tolerance(problem);
        var wrong =
            backward
                ? one.dQuery
                    .compare(part(results.get(0), rows, one.query), tolerance)
                    .or(() -> one.dKey.compare(part(results.get(1), keys, one.key), tolerance))
                    .or(() -> one.dValue.compare(part(results.get(2), keys, one.key), tolerance))
                : compare("output", part(results.get(0), rows, one.output), one.output, tolerance);
        if (!backward) {
          int stat = (int) tables.get(4)[i];
          wrong =
              wrong.or(
                  () ->
                      compare(
                          "statistics",
                          part(results.get(1), stat, one.byRow()),
                          one.byRow(),
                          STATISTICS_TOLERANCE));
        }
        if (wrong.isPresent()) {
          return Optional.of("sequence %d: %s".formatted(i, wrong.get()));
        }
      }
      return Optional.empty();
    } finally {
      free();
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

  private static double tolerance(AttentionProblem problem) {
    return problem.type() == AttentionProblem.Type.BF16 ? BF16_TOLERANCE : FP16_TOLERANCE;
  }

  private static Optional<String> compare(
      String what, double[] got, double[] expected, double tolerance) {
    return compare(what, got, expected, new double[expected.length], tolerance);
  }

  private static Optional<String> compare(
      String what, double[] got, double[] expected, double[] squaresOfTerms, double tolerance) {
    double squares = 0;
    for (double each : expected) {
      squares += each * each;
    }
    double bound = tolerance * Math.max(Math.sqrt(squares / expected.length), 1e-3);
    for (int i = 0; i < got.length; i++) {
      double most = bound + tolerance * (Math.abs(expected[i]) + Math.sqrt(squaresOfTerms[i]));
      if (!(Math.abs(got[i] - expected[i]) <= most)) {
        return Optional.of(
            "number %d of the %s is %s but should be %s, bound %.1e"
                .formatted(i, what, got[i], expected[i], most));
      }
    }
    return Optional.empty();
  }

  private void time(AttentionProblem problem) {
    try {
      int rows = problem.heads() * problem.headSize() * problem.rows();
      int keys = problem.kvHeads() * problem.headSize() * problem.keys();
      var random = new Random(3);
      long query = random(problem, rows, random);
      long key = random(problem, keys, random);
      long value = random(problem, keys, random);
      long dOutput = random(problem, rows, random);
      long output = allocate(2L * rows);
      long stats = allocate(4L * problem.heads() * problem.rows());
      long begun = System.nanoTime();
      var forward = cudnn.forward(problem);
      long built = System.nanoTime();
      long workspace = allocate(forward.workspaceBytes());
      var times = time(() -> forward.run(stream, workspace, query, key, value, output, stats));
      System.out.printf(
          "%s: forward %.3f ms (%.1f us of the host, built in %.0f ms, workspace %d)",
          problem, times[0], times[1], (built - begun) / 1e6, forward.workspaceBytes());
      long dQuery = allocate(2L * rows);
      long dKey = allocate(2L * keys);
      long dValue = allocate(2L * keys);
      for (boolean deterministic : new boolean[] {false, true}) {
        var backward = cudnn.backward(problem, deterministic);
        long more = allocate(backward.workspaceBytes());
        times =
            time(
                () ->
                    backward.run(
                        stream, more, query, key, value, output, dOutput, stats, dQuery, dKey,
                        dValue));
        System.out.printf(
            ", %sbackward %.3f ms (workspace %d)",
            deterministic ? "deterministic " : "", times[0], backward.workspaceBytes());
      }
      System.out.println();
    } finally {
      free();
    }
  }

  /// Returns the milliseconds of a run on the GPU, and the microseconds of its call.
  private double[] time(Runnable run) {
    run.run();
    run.run();
    stream.synchronize();
    try (var begin = gpu.event(true);
        var end = gpu.event(true)) {
      stream.record(begin);
      long begun = System.nanoTime();
      for (int i = 0; i < TIMED_RUNS; i++) {
        run.run();
      }
      long called = System.nanoTime() - begun;
      stream.record(end);
      stream.synchronize();
      return new double[] {end.millisecondsSince(begin) / TIMED_RUNS, called / 1e3 / TIMED_RUNS};
    }
  }

  private long allocate(long bytes) {
    long address = gpu.allocate(Math.max(bytes, 1));
    allocations.add(address);
    return address;
  }

  private void free() {
    stream.synchronize();
    allocations.forEach(gpu::free);
    allocations.clear();
  }

  private long random(AttentionProblem problem, int count, Random random) {
    var shorts = new short[count];
    var some = new short[4096 + 1];
    for (int i = 0; i < some.length; i++) {
      some[i] = encode(problem.type(), (float) random.nextGaussian());
    }
    for (int i = 0; i < count; i++) {
      shorts[i] = some[i % some.length];
    }
    return put(MemorySegment.ofArray(shorts));
  }

  private long narrow(AttentionProblem problem, double[] numbers) {
    var shorts = new short[numbers.length];
    for (int i = 0; i < shorts.length; i++) {
      shorts[i] = encode(problem.type(), (float) numbers[i]);
    }
    return put(MemorySegment.ofArray(shorts));
  }

  private long wide(double[] numbers) {
    var floats = new float[numbers.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) numbers[i];
    }
    return put(MemorySegment.ofArray(floats));
  }

  @SuppressWarnings("restricted")
  private long put(MemorySegment content) {
    long bytes = content.byteSize();
    long address = allocate(bytes);
    long pinned = gpu.allocatePinned(bytes);
    MemorySegment.ofAddress(pinned).reinterpret(bytes).copyFrom(content);
    gpu.copy(address, pinned, bytes);
    gpu.freePinned(pinned);
    return address;
  }

  @SuppressWarnings("restricted")
  private byte[] get(long address, long bytes) {
    long pinned = gpu.allocatePinned(bytes);
    gpu.copy(pinned, address, bytes);
    var content = MemorySegment.ofAddress(pinned).reinterpret(bytes).toArray(ValueLayout.JAVA_BYTE);
    gpu.freePinned(pinned);
    return content;
  }

  private double[] read(AttentionProblem problem, long address, int count) {
    var from = MemorySegment.ofArray(get(address, 2L * count));
    var numbers = new double[count];
    for (int i = 0; i < count; i++) {
      numbers[i] =
          decode(
              problem.type(), from.get(ValueLayout.JAVA_SHORT_UNALIGNED, (long) i * Short.BYTES));
    }
    return numbers;
  }

  private double[] floats(long address, int count) {
    var from = MemorySegment.ofArray(get(address, 4L * count));
    var numbers = new double[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = from.get(ValueLayout.JAVA_FLOAT_UNALIGNED, (long) i * Float.BYTES);
    }
    return numbers;
  }

  private static short encode(AttentionProblem.Type type, float number) {
    int bits = Float.floatToRawIntBits(number);
    return type == AttentionProblem.Type.FP16
        ? Float.floatToFloat16(number)
        : (short) ((bits + 0x7fff + (bits >>> 16 & 1)) >>> 16);
  }

  private static float decode(AttentionProblem.Type type, short number) {
    return type == AttentionProblem.Type.FP16
        ? Float.float16ToFloat(number)
        : Float.intBitsToFloat(number << 16);
  }

  /// A gradient: sums of terms, and of their squares.
  private static final class Gradient {
    private final String name;
    private final double[] sums;
    private final double[] squares;

    Gradient(String name, int count) {
      this.name = name;
      sums = new double[count];
      squares = new double[count];
    }

    /// Adds `size` numbers, times a factor.
    void add(int at, double[] from, int begin, int size, double factor) {
      for (int i = 0; i < size; i++) {
        double term = factor * from[begin + i];
        sums[at + i] += term;
        squares[at + i] += term * term;
      }
    }

    Optional<String> compare(double[] got, double tolerance) {
      return AttentionChecks.compare("gradient of the " + name, got, sums, squares, tolerance);
    }
  }

  /// The problem with random numbers, solved by plain loops.
  private static final class Expected {
    private final AttentionProblem problem;
    private final double[] query;
    private final double[] key;
    private final double[] value;
    private final double[] dOutput;
    private final double[] output;
    private final double[] stats;
    private final Gradient dQuery;
    private final Gradient dKey;
    private final Gradient dValue;

    Expected(AttentionProblem problem, long seed) {
      this.problem = problem;
      var random = new Random(seed);
      int numbers = problem.heads() * problem.headSize() * problem.rows();
      int kvNumbers = problem.kvHeads() * problem.headSize() * problem.keys();
      query = random(numbers, random);
      key = random(kvNumbers, random);
      value = random(kvNumbers, random);
      dOutput = random(numbers, random);
      output = new double[numbers];
      stats = new double[problem.heads() * problem.rows()];
      dQuery = new Gradient("query", numbers);
      dKey = new Gradient("key", kvNumbers);
      dValue = new Gradient("value", kvNumbers);
      for (int head = 0; head < problem.heads(); head++) {
        for (int row = 0; row < problem.rows(); row++) {
          solve(head, row);
        }
      }
    }

    /// The statistics row by row.
    double[] byRow() {
      var byRow = new double[stats.length];
      for (int i = 0; i < stats.length; i++) {
        byRow[i % problem.rows() * problem.heads() + i / problem.rows()] = stats[i];
      }
      return byRow;
    }

    /// Random numbers that both types represent.
    private static double[] random(int count, Random random) {
      return random.doubles(count, -2, 2).map(each -> Math.rint(each * 32) / 32).toArray();
    }

    private void solve(int head, int row) {
      int size = problem.headSize();
      int kvHead = head / (problem.heads() / problem.kvHeads());
      int q = (row * problem.heads() + head) * size;
      int last =
          problem.causal()
              ? Math.min(problem.keys() - 1, row + problem.shift())
              : problem.keys() - 1;
      int first =
          problem.window() > 0 ? Math.max(0, row + problem.shift() - problem.window() + 1) : 0;
      var weights = new double[problem.keys()];
      double sum = 0;
      for (int j = first; j <= last; j++) {
        int k = (j * problem.kvHeads() + kvHead) * size;
        weights[j] = Math.exp(problem.scale() * dot(query, q, key, k));
        sum += weights[j];
      }
      stats[head * problem.rows() + row] = Math.log(sum);
      for (int j = first; j <= last; j++) {
        int k = (j * problem.kvHeads() + kvHead) * size;
        weights[j] /= sum;
        add(output, q, value, k, weights[j]);
        dValue.add(k, dOutput, q, size, weights[j]);
      }
      double own = dot(dOutput, q, output, q);
      for (int j = first; j <= last; j++) {
        int k = (j * problem.kvHeads() + kvHead) * size;
        double dScore = weights[j] * (dot(dOutput, q, value, k) - own) * problem.scale();
        dQuery.add(q, key, k, size, dScore);
        dKey.add(k, query, q, size, dScore);
      }
    }

    private double dot(double[] a, int at, double[] b, int from) {
      double sum = 0;
      for (int i = 0; i < problem.headSize(); i++) {
        sum += a[at + i] * b[from + i];
      }
      return sum;
    }

    private void add(double[] to, int at, double[] from, int begin, double factor) {
      for (int i = 0; i < problem.headSize(); i++) {
        to[at + i] += factor * from[begin + i];
      }
    }
  }
}
