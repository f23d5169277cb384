package braid.internal.work;

import java.util.List;

/// One sum: `out` is what the epilogue makes of the parts' sum, which is kept in fp32 and added in
/// the order of the parts. The epilogue gets a sum of several parts rounded to `out`'s type, as a
/// collective would have returned it; one part alone it gets as it is. All are of the same size and
/// stored by rows without gaps; parts may be of another type than `out`, and the first may be `out`
/// itself.
public record Reduction(List<Matrix> parts, Matrix out, Epilogue epilogue) {
  public Reduction {
    parts = List.copyOf(parts);
    for (var part : parts) {
      if (part.rows() != out.rows() || part.columns() != out.columns()) {
        throw new IllegalArgumentException("sizes do not fit: %s, %s".formatted(part, out));
      }
    }
  }

  /// Whether the sum is rounded before the epilogue; without one it is rounded as it is stored.
  public boolean roundsSum() {
    return parts.size() > 1 && !epilogue.isNone() && !out.dtype().isStoredAsFp32();
  }

  /// Bytes read and written.
  public long bytes() {
    return parts.stream().mapToLong(part -> part.bytes().byteSize()).sum() + out.bytes().byteSize();
  }
}
