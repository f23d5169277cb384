package braid.internal.host;

import braid.DType;
import braid.natives.Blas;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Multiplies on one stream: fp32 as it is, narrow types widened to fp32 and the result rounded.
public final class HostGemm implements AutoCloseable {
  /// OpenBLAS has one thread limit a process; ranks that are threads all set the same.
  private static final AtomicInteger LIMIT = new AtomicInteger();

  private final int threads;
  private @Nullable Arena arena;
  private MemorySegment scratch = MemorySegment.NULL;

  public HostGemm(int threads) {
    this.threads = threads;
  }

  /// `c = a · b`; `b` is fp32 already, `a` and `c` are of that type.
  public void multiply(
      DType dtype, int m, int n, int k, MemorySegment a, MemorySegment b, MemorySegment c) {
    if (LIMIT.getAndSet(threads) != threads) {
      Blas.limitThreads(threads);
    }
    if (dtype == DType.FP32) {
      Blas.sgemm(m, n, k, a, b, c, n);
      return;
    }
    long wideA = (long) m * k * Float.BYTES;
    long wideC = (long) m * n * Float.BYTES;
    var wide = scratch(wideA + wideC);
    var left = wide.asSlice(0, wideA);
    var result = wide.asSlice(wideA, wideC);
    widen(dtype, a, left);
    Blas.sgemm(m, n, k, left, b, result, n);
    for (long i = 0; i < (long) m * n; i++) {
      dtype.store(c, i, result.getAtIndex(ValueLayout.JAVA_FLOAT, i));
    }
  }

  /// Every element of a narrow type as fp32.
  public static void widen(DType dtype, MemorySegment from, MemorySegment to) {
    long count = from.byteSize() / dtype.bytes();
    for (long i = 0; i < count; i++) {
      to.setAtIndex(ValueLayout.JAVA_FLOAT, i, dtype.load(from, i));
    }
  }

  private MemorySegment scratch(long bytes) {
    if (scratch.byteSize() < bytes) {
      close();
      var larger = Arena.ofShared();
      arena = larger;
      scratch = larger.allocate(bytes, 64);
    }
    return scratch;
  }

  @Override
  public void close() {
    if (arena != null) {
      arena.close();
      arena = null;
      scratch = MemorySegment.NULL;
    }
  }
}
