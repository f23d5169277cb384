package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/// Compares cuDNN's attention with plain loops on the GPU that will run it, and times large cases.
public final class AttentionChecks {
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
  private final CheckedMemory memory;

  AttentionChecks(Gpu gpu, Cudnn cudnn, GpuStream stream) {
    this.gpu = gpu;
    this.cudnn = cudnn;
    this.stream = stream;
    this.memory = new CheckedMemory(gpu, stream);
  }

  static AttentionProblem problem(
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
    right &= new PackedAttentionChecks(cudnn, stream, memory).areRight();
    for (var problem : REFUSED) {
      right &= refused(problem, cudnn.cannot(problem));
    }
    return right;
  }

  static boolean refused(AttentionProblem problem, Optional<String> why) {
    System.out.printf("%s  %s%n", why.isPresent() ? "right" : "WRONG", why.orElse("" + problem));
    return why.isPresent();
  }

  static boolean print(String what, AttentionProblem problem, Optional<String> wrong) {
    System.out.printf(
        "%s  %s %s%s%n",
        wrong.isEmpty() ? "right" : "WRONG",
        what,
        problem,
        wrong.map(why -> ": " + why).orElse(""));
    return wrong.isEmpty();
  }

  Optional<String> forward(AttentionProblem problem) {
    var refused = cudnn.cannot(problem);
    if (refused.isPresent()) {
      return refused;
    }
    try {
      var expected = new PlainAttention(problem, 1);
      var plan = cudnn.forward(problem);
      long output = memory.allocate(2L * expected.output.length);
      long stats = memory.allocate(4L * expected.stats.length);
      plan.run(
          stream,
          memory.allocate(plan.workspaceBytes()),
          memory.narrow(problem.type(), expected.query),
          memory.narrow(problem.type(), expected.key),
          memory.narrow(problem.type(), expected.value),
          output,
          stats);
      stream.synchronize();
      return PlainAttention.compare(
              "output",
              memory.read(problem.type(), output, expected.output.length),
              expected.output,
              PlainAttention.tolerance(problem.type()))
          .or(
              () ->
                  PlainAttention.compare(
                      "statistics",
                      memory.floats(stats, expected.stats.length),
                      expected.stats,
                      PlainAttention.STATISTICS_TOLERANCE));
    } finally {
      memory.free();
    }
  }

  Optional<String> backward(AttentionProblem problem, boolean deterministic) {
    var refused = cudnn.cannotBackward(problem, deterministic);
    if (refused.isPresent()) {
      return refused;
    }
    try {
      var expected = new PlainAttention(problem, 2);
      var plan = cudnn.backward(problem, deterministic);
      long dQuery = memory.allocate(2L * expected.query.length);
      long dKey = memory.allocate(2L * expected.key.length);
      long dValue = memory.allocate(2L * expected.value.length);
      plan.run(
          stream,
          memory.allocate(plan.workspaceBytes()),
          memory.narrow(problem.type(), expected.query),
          memory.narrow(problem.type(), expected.key),
          memory.narrow(problem.type(), expected.value),
          memory.narrow(problem.type(), expected.output),
          memory.narrow(problem.type(), expected.dOutput),
          memory.wide(expected.stats),
          dQuery,
          dKey,
          dValue);
      stream.synchronize();
      double tolerance = PlainAttention.tolerance(problem.type());
      return expected
          .dQuery
          .compare(memory.read(problem.type(), dQuery, expected.query.length), tolerance)
          .or(
              () ->
                  expected.dKey.compare(
                      memory.read(problem.type(), dKey, expected.key.length), tolerance))
          .or(
              () ->
                  expected.dValue.compare(
                      memory.read(problem.type(), dValue, expected.value.length), tolerance));
    } finally {
      memory.free();
    }
  }

  private void time(AttentionProblem problem) {
    try {
      int rows = problem.heads() * problem.headSize() * problem.rows();
      int keys = problem.kvHeads() * problem.headSize() * problem.keys();
      var random = new Random(3);
      long query = memory.random(problem.type(), rows, random);
      long key = memory.random(problem.type(), keys, random);
      long value = memory.random(problem.type(), keys, random);
      long dOutput = memory.random(problem.type(), rows, random);
      long output = memory.allocate(2L * rows);
      long stats = memory.allocate(4L * problem.heads() * problem.rows());
      long begun = System.nanoTime();
      var forward = cudnn.forward(problem);
      long built = System.nanoTime();
      long workspace = memory.allocate(forward.workspaceBytes());
      var times = time(() -> forward.run(stream, workspace, query, key, value, output, stats));
      System.out.printf(
          "%s: forward %.3f ms (%.1f us of the host, built in %.0f ms, workspace %d)",
          problem, times[0], times[1], (built - begun) / 1e6, forward.workspaceBytes());
      long dQuery = memory.allocate(2L * rows);
      long dKey = memory.allocate(2L * keys);
      long dValue = memory.allocate(2L * keys);
      for (boolean deterministic : new boolean[] {false, true}) {
        var backward = cudnn.backward(problem, deterministic);
        long more = memory.allocate(backward.workspaceBytes());
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
      memory.free();
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
}
