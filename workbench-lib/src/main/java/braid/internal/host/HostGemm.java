package braid.internal.host;

import braid.internal.resource.PrivateMemory;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.natives.Blas;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/// Multiplications and sums of one stream, in fp32: narrow types are widened, and results rounded.
public final class HostGemm implements AutoCloseable {
  /// Thread limit of OpenBLAS, one per process; ranks that are threads all set the same.
  private static final AtomicInteger LIMIT = new AtomicInteger();

  private final int threads;
  private final HostScratch scratch = new HostScratch();

  public HostGemm(int threads) {
    this.threads = threads;
  }

  public void multiply(Gemm gemm) {
    limitThreads(threads);
    var c = gemm.c();
    if (c.rows() == 0) {
      return;
    }
    var workspace = scratch.begin(leftBytes(gemm.a()) + 2 * wideBytes(c));
    var left = left(gemm.a(), workspace);
    var right = gemm.b().source();
    var wideRight = gemm.b().widened().map(PrivateMemory::segment).orElse(right.segment());
    var epilogue = gemm.epilogue();
    // OpenBLAS would accumulate into the output block by block, rounding in between.
    boolean inPlace = c.dtype().isStoredAsFp32() && !epilogue.accumulate();
    var result = inPlace ? c.bytes() : workspace.take(wideBytes(c));
    Blas.sgemm(
        new Blas.Factor(left.segment(), left.stride(), left.transposed()),
        new Blas.Factor(wideRight, right.stride(), right.transposed()),
        new Blas.Sum(c.rows(), c.columns(), gemm.a().columns(), epilogue.scale(), 0, result));
    HostEpilogue.finish(result, c, epilogue.scaled(1), workspace::take);
  }

  /// Adds the parts in order, in fp32; rounds the sum and the epilogue's result.
  public void reduce(Reduction reduction) {
    limitThreads(threads);
    var out = reduction.out();
    if (out.rows() == 0) {
      return;
    }
    if (!reduction.isContiguous()) {
      IntStream.range(0, out.rows()).forEach(row -> reduce(reduction.row(row)));
      return;
    }
    long bytes = (long) out.rows() * out.columns() * Float.BYTES;
    var workspace = scratch.begin(3 * HostScratch.roundUp(bytes));
    var epilogue = reduction.epilogue();
    var parts = reduction.parts();
    boolean inPlace =
        out.dtype().isStoredAsFp32()
            && !epilogue.accumulate()
            && parts.stream()
                .skip(1)
                .noneMatch(part -> part.segment().address() == out.segment().address());
    var sum = inPlace ? out.bytes() : workspace.take(bytes);
    var first = parts.getFirst();
    if (!inPlace || first.segment().address() != out.segment().address()) {
      Numbers.widen(first.dtype(), first.bytes(), sum);
    }
    var wide =
        parts.stream().allMatch(part -> part.dtype().isStoredAsFp32())
            ? MemorySegment.NULL
            : workspace.take(bytes);
    for (var part : parts.subList(1, parts.size())) {
      if (part.dtype().isStoredAsFp32()) {
        Blas.add(part.bytes(), sum);
      } else {
        Numbers.widen(part.dtype(), part.bytes(), wide);
        Blas.add(wide, sum);
      }
    }
    Numbers.scale(sum, epilogue.scale());
    if (reduction.roundsSum()) {
      Numbers.round(reduction.sumType(), sum);
    }
    HostEpilogue.finish(sum, out, epilogue.scaled(1), workspace::take);
  }

  static void limitThreads(int threads) {
    if (LIMIT.getAndSet(threads) != threads) {
      Blas.limitThreads(threads);
    }
  }

  /// Returns the left side in fp32. Widening closes gaps between stored rows.
  private static Matrix left(Matrix a, HostScratch workspace) {
    if (a.dtype().isStoredAsFp32()) {
      return a;
    }
    return Numbers.widen(a, workspace.take(leftBytes(a)));
  }

  private static long leftBytes(Matrix a) {
    return a.dtype().isStoredAsFp32() ? 0 : wideBytes(a);
  }

  private static long wideBytes(Matrix matrix) {
    return HostScratch.roundUp((long) matrix.rows() * matrix.columns() * Float.BYTES);
  }

  @Override
  public void close() {
    scratch.close();
  }
}
