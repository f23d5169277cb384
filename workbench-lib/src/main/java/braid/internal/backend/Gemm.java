package braid.internal.backend;

import java.lang.foreign.MemorySegment;

/// One multiplication `c = a · b` of whole rows: `m` × `k` by `k` × `n`, all of `b`'s type.
public record Gemm(int m, int n, int k, MemorySegment a, Operand b, MemorySegment c) {
  /// Multiplications and additions.
  public long flops() {
    return 2L * m * n * k;
  }
}
