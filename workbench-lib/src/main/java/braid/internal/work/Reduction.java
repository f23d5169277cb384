package braid.internal.work;

import braid.model.DType;
import java.util.List;

/// One sum: `out` is what the epilogue makes of the parts' sum, which is kept in fp32 and added in
/// the order of the parts. The epilogue gets a sum of several parts rounded to the first part's
/// type, as a collective would have returned it; one part alone it gets as it is. All are of the
/// same size and stored by rows without gaps; parts may be of another type than `out`, and the
/// first may be `out` itself.
public record Reduction(List<Matrix> parts, Matrix out, Epilogue epilogue) {
  public Reduction {
    parts = List.copyOf(parts);
    for (var part : parts) {
      if (part.rows() != out.rows() || part.columns() != out.columns()) {
        throw new IllegalArgumentException("sizes do not fit: %s, %s".formatted(part, out));
      }
    }
  }

  /// The type that the sum is rounded to before the epilogue.
  public DType sumType() {
    return parts.getFirst().dtype();
  }

  /// Whether the sum is rounded before the epilogue; where there is none, and no other type,
  /// storing does that.
  public boolean roundsSum() {
    return parts.size() > 1
        && !(epilogue.onlyScales() && sumType() == out.dtype())
        && !sumType().isStoredAsFp32();
  }

  /// Bytes read and written.
  public long bytes() {
    return parts.stream().mapToLong(part -> part.bytes().byteSize()).sum() + out.bytes().byteSize();
  }
}
