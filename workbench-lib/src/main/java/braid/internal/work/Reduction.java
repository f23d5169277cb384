package braid.internal.work;

import braid.model.DType;
import java.util.List;

/// One sum: `out = epilogue(sum of parts)`, added in fp32 in the order of the parts. A sum of
/// several parts is rounded to the first part's type before the epilogue, as a collective would
/// have returned it; a single part is not. All matrices have the same shape and are stored by rows:
/// without gaps if there is an epilogue. Parts may be of another type than `out`, and one of them
/// may be `out` itself.
///
/// @param linkBytes number of bytes of parts in other ranks' memory
public record Reduction(List<Matrix> parts, Matrix out, Epilogue epilogue, long linkBytes) {
  /// Creates the sum of parts in this rank's memory.
  public Reduction(List<Matrix> parts, Matrix out, Epilogue epilogue) {
    this(parts, out, epilogue, 0);
  }

  public Reduction {
    parts = List.copyOf(parts);
    for (var part : parts) {
      if (part.rows() != out.rows() || part.columns() != out.columns()) {
        throw new IllegalArgumentException("sizes do not fit: %s, %s".formatted(part, out));
      }
    }
  }

  /// Returns whether all matrices are stored without gaps.
  public boolean isContiguous() {
    return out.isContiguous() && parts.stream().allMatch(Matrix::isContiguous);
  }

  /// Returns the sum of one row.
  public Reduction row(int row) {
    return new Reduction(
        parts.stream().map(part -> part.rows(row, 1)).toList(), out.rows(row, 1), epilogue);
  }

  /// Type to which the sum is rounded before the epilogue.
  public DType sumType() {
    return parts.getFirst().dtype();
  }

  /// Returns true if the sum is rounded before the epilogue. Without an epilogue and a change of
  /// type, storing rounds it.
  public boolean roundsSum() {
    return parts.size() > 1
        && !(epilogue.onlyScales() && sumType() == out.dtype())
        && !sumType().isStoredAsFp32();
  }

  /// Number of bytes read and written.
  public long bytes() {
    return parts.stream().mapToLong(Matrix::size).sum() + out.size();
  }
}
