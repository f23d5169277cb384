package braid.internal.cuda;

import braid.internal.rank.Closing;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.GpuEvent;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.ElementType;
import java.util.List;

/// Measures which of cublasLt's algorithms is the fastest for a problem. It multiplies the numbers
/// that are there (a multiplication of zeros draws less power and is faster than any real one) and
/// writes beside what users see.
final class Trial implements AutoCloseable {
  /// The heuristic's first ones: the best of more has not been seen to be later in its list.
  private static final int CANDIDATES = 8;

  private static final int WARM_UPS = 1;
  private static final int ROUNDS = 3;
  private static final long FILLING_SEED = 7;

  private final CudaDevice device;
  private final Lt lt;
  private final GpuStream stream;
  private final GpuEvent begin;
  private final GpuEvent end;

  Trial(CudaDevice device, Lt lt) {
    this.device = device;
    this.lt = lt;
    var gpu = device.gpu();
    this.stream = gpu.stream(gpu.greatestPriority());
    this.begin = gpu.event(true);
    this.end = gpu.event(true);
  }

  /// The fastest of the candidates; the others are closed. One alone is run too: the driver loads a
  /// kernel at its first use and may wait for all streams then, one of which may wait for a rank
  /// that does just the same. Left and right are where such matrices lie, or 0.
  Lt.Plan fastest(Lt.Problem problem, long left, long right) {
    var candidates = lt.candidates(problem, CANDIDATES, Lt.WORKSPACE_BYTES);
    var gpu = device.gpu();
    try (var room = new Scratch(gpu)) {
      long a = left == 0 ? filled(room, problem.a()) : left;
      long b = right == 0 ? filled(room, problem.b()) : right;
      long bias = problem.bias() ? room.another((long) problem.d().columns() * Float.BYTES) : 0;
      long aux = problem.gelu() ? room.another(resultBytes(problem)) : 0;
      long d = room.another(resultBytes(problem));
      long workspace = room.another(Lt.WORKSPACE_BYTES);
      var best = candidates.getFirst();
      float least = Float.POSITIVE_INFINITY;
      for (var candidate : candidates) {
        float took = time(candidate, a, b, d, bias, aux, workspace);
        if (took < least) {
          least = took;
          best = candidate;
        }
      }
      closeAllBut(best, candidates);
      return best;
    }
  }

  private float time(Lt.Plan plan, long a, long b, long d, long bias, long aux, long workspace) {
    for (int i = 0; i < WARM_UPS; i++) {
      plan.run(stream, 1, a, b, 0, d, d, bias, aux, workspace);
    }
    float least = Float.POSITIVE_INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
      stream.record(begin);
      plan.run(stream, 1, a, b, 0, d, d, bias, aux, workspace);
      stream.record(end);
      stream.synchronize();
      least = Math.min(least, end.millisecondsSince(begin));
    }
    return least;
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

  private static long bytes(Lt.Layout of) {
    long storedRows = of.transposed() ? of.columns() : of.rows();
    return storedRows * of.stride() * bytes(of.type());
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
  private long filled(Scratch room, Lt.Layout of) {
    long address = room.another(bytes(of));
    device
        .kernels()
        .fillIntegers(stream, address, bytes(of) / bytes(of.type()), type(of.type()), FILLING_SEED);
    stream.synchronize();
    return address;
  }

  @Override
  public void close() {
    Closing.each(begin, end, stream);
  }
}
