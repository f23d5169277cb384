package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.natives.blaslt.AlgorithmCache;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuEvent;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.ElementType;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// Measures which of cublasLt's algorithms is the fastest for a problem. Multiplies the actual
/// inputs, since a multiplication of zeros draws less power and is faster, and writes to scratch
/// memory. Choices are cached on disk for later processes, but not those of ranks that share a GPU
/// and disturb each other's measurements.
final class AlgorithmTimer implements AutoCloseable {
  /// Number of the heuristic's first algorithms that are tried; later ones have never been the
  /// fastest.
  private static final int CANDIDATES = 8;

  private static final int ROUNDS = 3;

  /// Most runs behind each other in a round, and the time that they take if they are fewer. One
  /// short run by itself takes longer than behind another, and its time scatters by more than
  /// algorithms differ.
  private static final int MOST_IN_FLIGHT = 10;

  private static final float ROUND_MILLIS = 2;

  /// Multiplications of fewer operations take as long as their launch, by any algorithm.
  private static final double LEAST_FLOPS_IN_FLIGHT = 1e7;

  private static final long FILLING_SEED = 7;
  private static final double NANOS_PER_MILLI = 1e6;

  private final CudaDevice device;
  private final Lt lt;
  private final AlgorithmCache cache;
  private final GpuStream stream;
  private final GpuEvent begin;
  private final GpuEvent end;

  /// @param folder folder of the choices on disk
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

  /// The algorithm chosen for a problem.
  ///
  /// @param fromDisk true if an earlier process chose it
  record Choice(Lt.Plan plan, boolean fromDisk) {}

  /// Addresses of a candidate's buffers; 0 if absent.
  private record Buffers(long a, long b, long d, long bias, long workspace) {}

  /// Returns the cached algorithm, or the fastest of the candidates. The algorithm has run at least
  /// once: at a kernel's first use the driver loads it and may wait for all streams, one of which
  /// may wait for a rank that does the same. `left` and `right` are addresses of such matrices, or
  /// 0.
  Choice choose(Lt.Problem problem, long left, long right) {
    try (var scratch = new Scratch(device.gpu())) {
      var buffers =
          new Buffers(
              left == 0 ? filled(scratch, problem.a()) : left,
              right == 0 ? filled(scratch, problem.b()) : right,
              scratch.allocate(resultBytes(problem)),
              problem.bias() ? scratch.allocate((long) problem.d().columns() * Float.BYTES) : 0,
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

  /// Returns the fastest candidate and closes the others.
  private Lt.Plan fastest(Lt.Problem problem, Buffers buffers) {
    var candidates = lt.candidates(problem, CANDIDATES, Lt.WORKSPACE_BYTES);
    var best = candidates.getFirst();
    float least = Float.POSITIVE_INFINITY;
    double flops =
        2.0 * problem.batch() * problem.d().rows() * problem.d().columns() * problem.a().columns();
    for (var candidate : candidates) {
      float took = milliseconds(candidate, flops, buffers);
      if (took < least) {
        least = took;
        best = candidate;
      }
    }
    closeAllBut(best, candidates);
    if (device.ranks() == 1) {
      cache.keep(
          problem, new AlgorithmCache.Kept(best.algorithm(), Math.round(least * NANOS_PER_MILLI)));
    }
    return best;
  }

  private float milliseconds(Lt.Plan plan, double flops, Buffers buffers) {
    run(plan, buffers);
    float alone = milliseconds(() -> run(plan, buffers));
    int inFlight = Math.clamp((long) (ROUND_MILLIS / alone), 1, MOST_IN_FLIGHT);
    if (inFlight == 1 || flops < LEAST_FLOPS_IN_FLIGHT) {
      return Math.min(alone, least(() -> run(plan, buffers)));
    }
    stream.beginCapture();
    for (int i = 0; i < inFlight; i++) {
      run(plan, buffers);
    }
    try (var graph = stream.endCapture()) {
      graph.upload(stream);
      return least(() -> graph.launch(stream)) / inFlight;
    }
  }

  private float least(Runnable work) {
    float least = Float.POSITIVE_INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
      least = Math.min(least, milliseconds(work));
    }
    return least;
  }

  private float milliseconds(Runnable work) {
    stream.record(begin);
    work.run();
    stream.record(end);
    stream.synchronize();
    return end.millisecondsSince(begin);
  }

  private void run(Lt.Plan plan, Buffers buffers) {
    plan.run(
        stream, 1, buffers.a, buffers.b, 0, buffers.d, buffers.d, buffers.bias, buffers.workspace);
  }

  private static void closeAllBut(Lt.Plan best, List<Lt.Plan> all) {
    for (var each : all) {
      if (!each.equals(best)) {
        each.close();
      }
    }
  }

  /// Size of all results of a batch.
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

  /// Allocates a matrix filled with numbers.
  private long filled(Scratch scratch, Lt.Layout layout) {
    long address = scratch.allocate(bytes(layout));
    device
        .kernels()
        .draw(
            stream,
            address,
            bytes(layout) / bytes(layout.type()),
            type(layout.type()),
            Drawn.REALS,
            FILLING_SEED);
    stream.synchronize();
    return address;
  }

  @Override
  public void close() {
    Closing.each(begin, end, stream);
  }
}
