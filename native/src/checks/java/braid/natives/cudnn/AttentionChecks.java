package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/// Compares cuDNN's attention with plain loops on the GPU that will run it, and times large cases.
public final class AttentionChecks {
  /// Largest difference of an output or gradient, relative to the root mean square of the expected
  /// ones and to the number itself. A number of bf16 has 8 significant bits, one of fp16 11.
  /// Grouped heads are rounded before they are summed.
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
    for (var problem : REFUSED) {
      var why = cudnn.cannot(problem);
      right &= why.isPresent();
      System.out.printf("%s  %s%n", why.isPresent() ? "right" : "WRONG", why.orElse("" + problem));
    }
    return right;
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
      return compare(
              "gradient of the query",
              read(problem, dQuery, expected.query.length),
              expected.dQuery,
              tolerance)
          .or(
              () ->
                  compare(
                      "gradient of the key",
                      read(problem, dKey, expected.key.length),
                      expected.dKey,
                      tolerance))
          .or(
              () ->
                  compare(
                      "gradient of the value",
                      read(problem, dValue, expected.value.length),
                      expected.dValue,
                      tolerance));
    } finally {
      free();
    }
  }

  private static double tolerance(AttentionProblem problem) {
    return problem.type() == AttentionProblem.Type.BF16 ? BF16_TOLERANCE : FP16_TOLERANCE;
  }

  private static Optional<String> compare(
      String what, double[] got, double[] expected, double tolerance) {
    double squares = 0;
    for (double each : expected) {
      squares += each * each;
    }
    double bound = tolerance * Math.max(Math.sqrt(squares / expected.length), 1e-3);
    for (int i = 0; i < got.length; i++) {
      double most = bound + tolerance * Math.abs(expected[i]);
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

  /// The problem with random numbers, solved by plain loops.
  private static final class Expected {
    private final AttentionProblem problem;
    private final double[] query;
    private final double[] key;
    private final double[] value;
    private final double[] dOutput;
    private final double[] output;
    private final double[] stats;
    private final double[] dQuery;
    private final double[] dKey;
    private final double[] dValue;

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
      dQuery = new double[numbers];
      dKey = new double[kvNumbers];
      dValue = new double[kvNumbers];
      for (int head = 0; head < problem.heads(); head++) {
        for (int row = 0; row < problem.rows(); row++) {
          solve(head, row);
        }
      }
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
        add(dValue, k, dOutput, q, weights[j]);
      }
      double own = dot(dOutput, q, output, q);
      for (int j = first; j <= last; j++) {
        int k = (j * problem.kvHeads() + kvHead) * size;
        double dScore = weights[j] * (dot(dOutput, q, value, k) - own) * problem.scale();
        add(dQuery, q, key, k, dScore);
        add(dKey, k, query, q, dScore);
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
