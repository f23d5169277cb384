package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.natives.blaslt.AlgorithmCache;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuEvent;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.ElementType;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// Measures which of cublasLt's algorithms is the fastest for a problem. It multiplies the numbers
/// that are there (a multiplication of zeros draws less power and is faster than any real one) and
/// writes beside what users see. What was found is kept on disk, where the next process looks
/// first.
final class AlgorithmTimer implements AutoCloseable {
  /// The heuristic's first ones: the best of more has not been seen to be later in its list.
  private static final int CANDIDATES = 8;

  private static final int WARM_UPS = 1;
  private static final int ROUNDS = 3;
  private static final long FILLING_SEED = 7;
  private static final double NANOS_PER_MILLI = 1e6;

  private final CudaDevice device;
  private final Lt lt;
  private final AlgorithmCache cache;
  private final GpuStream stream;
  private final GpuEvent begin;
  private final GpuEvent end;

  /// @param folder where choices are kept
  AlgorithmTimer(CudaDevice device, Lt lt, Path folder) {
    this.device = device;
    this.lt = lt;
    var gpu = device.gpu();
    this.cache = new AlgorithmCache(folder, setting(gpu, lt), System.err::println);
    this.stream = gpu.stream(gpu.greatestPriority());
    this.begin = gpu.event(true);
    this.end = gpu.event(true);
  }

  private static AlgorithmCache.Setting setting(Gpu gpu, Lt lt) {
    return new AlgorithmCache.Setting(
        gpu.name(),
        gpu.architecture(),
        gpu.multiprocessors(),
        lt.build(),
        gpu.driverVersion(),
        CANDIDATES,
        Lt.WORKSPACE_BYTES);
  }

  /// How a problem is multiplied.
  ///
  /// @param fromDisk whether an earlier trial is taken at its word
  record Choice(Lt.Plan plan, boolean fromDisk) {}

  /// What a candidate works on: addresses, 0 where there is nothing.
  private record Buffers(long a, long b, long d, long bias, long aux, long workspace) {}

  /// What was found before, or the fastest of the candidates. It has run when it is given out, also
  /// where there was nothing to compare: the driver loads a kernel at its first use and may wait
  /// for all streams then, one of which may wait for a rank that does just the same. Left and right
  /// are where such matrices lie, or 0.
  Choice choose(Lt.Problem problem, long left, long right) {
    try (var scratch = new Scratch(device.gpu())) {
      var buffers =
          new Buffers(
              left == 0 ? filled(scratch, problem.a()) : left,
              right == 0 ? filled(scratch, problem.b()) : right,
              scratch.allocate(resultBytes(problem)),
              problem.bias() ? scratch.allocate((long) problem.d().columns() * Float.BYTES) : 0,
              problem.gelu() ? scratch.allocate(resultBytes(problem)) : 0,
              scratch.allocate(Lt.WORKSPACE_BYTES));
      return fromCache(problem, buffers)
          .map(plan -> new Choice(plan, true))
          .orElseGet(() -> new Choice(fastest(problem, buffers), false));
    }
  }

  private Optional<Lt.Plan> fromCache(Lt.Problem problem, Buffers buffers) {
    var found = cache.find(problem);
    if (found.isEmpty()) {
      return Optional.empty();
    }
    var plan = lt.restored(problem, found.get().algorithm(), Lt.WORKSPACE_BYTES);
    if (plan.isEmpty()) {
      cache.refuse(problem, "cublasLt does not take it");
      return plan;
    }
    try {
      run(plan.get(), buffers);
      stream.synchronize();
      return plan;
    } catch (GpuError e) {
      plan.get().close();
      cache.refuse(problem, String.valueOf(e.getMessage()));
      return Optional.empty();
    }
  }

  /// The others are closed.
  private Lt.Plan fastest(Lt.Problem problem, Buffers buffers) {
    var candidates = lt.candidates(problem, CANDIDATES, Lt.WORKSPACE_BYTES);
    var best = candidates.getFirst();
    float least = Float.POSITIVE_INFINITY;
    for (var candidate : candidates) {
      float took = milliseconds(candidate, buffers);
      if (took < least) {
        least = took;
        best = candidate;
      }
    }
    closeAllBut(best, candidates);
    cache.keep(
        problem, new AlgorithmCache.Kept(best.algorithm(), Math.round(least * NANOS_PER_MILLI)));
    return best;
  }

  private float milliseconds(Lt.Plan plan, Buffers buffers) {
    for (int i = 0; i < WARM_UPS; i++) {
      run(plan, buffers);
    }
    float least = Float.POSITIVE_INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
      stream.record(begin);
      run(plan, buffers);
      stream.record(end);
      stream.synchronize();
      least = Math.min(least, end.millisecondsSince(begin));
    }
    return least;
  }

  private void run(Lt.Plan plan, Buffers buffers) {
    plan.run(
        stream,
        1,
        buffers.a,
        buffers.b,
        0,
        buffers.d,
        buffers.d,
        buffers.bias,
        buffers.aux,
        buffers.workspace);
  }

  private static void closeAllBut(Lt.Plan best, List<Lt.Plan> all) {
    for (var each : all) {
      if (!each.equals(best)) {
        each.close();
      }
    }
  }

  /// Of all that the problem writes: a batch goes on after its stride.
  static long resultBytes(Lt.Problem problem) {
    long first = bytes(problem.d());
    return first + (problem.batch() - 1) * problem.batchStrideD() * bytes(problem.d().type());
  }

  static long bytes(Lt.Layout layout) {
    long storedRows = layout.transposed() ? layout.columns() : layout.rows();
    return storedRows * layout.stride() * bytes(layout.type());
  }

  private static ElementType type(Lt.Type type) {
    return switch (type) {
      case FP32 -> ElementType.FP32;
      case TF32 -> ElementType.TF32;
      case BF16 -> ElementType.BF16;
      case FP16 -> ElementType.FP16;
      case E4M3 -> ElementType.E4M3;
      case E5M2 -> ElementType.E5M2;
    };
  }

  private static int bytes(Lt.Type type) {
    return switch (type) {
      case FP32, TF32 -> Float.BYTES;
      case BF16, FP16 -> Short.BYTES;
      case E4M3, E5M2 -> Byte.BYTES;
    };
  }

  /// Memory of that matrix's size with numbers in it.
  private long filled(Scratch scratch, Lt.Layout layout) {
    long address = scratch.allocate(bytes(layout));
    device
        .kernels()
        .fillIntegers(
            stream,
            address,
            bytes(layout) / bytes(layout.type()),
            type(layout.type()),
            FILLING_SEED);
    stream.synchronize();
    return address;
  }

  @Override
  public void close() {
    Closing.each(begin, end, stream);
  }
}
