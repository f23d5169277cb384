package braid.internal.work;

import braid.model.DType;

/// Rounds heads to e4m3, each row of a head with a scale of its own, or restores them: see
/// [braid.model.AttentionSpec#exchanged]. A rounded head has its numbers and then its scale in
/// fp32, at any alignment.
public record Recoding(Matrix from, Matrix to, int headSize) {
  public Recoding {
    int heads = wide(from, to).columns() / headSize;
    if (from.rows() != to.rows()
        || wide(from, to).columns() != heads * headSize
        || narrow(from, to).dtype() != DType.FP8_E4M3
        || narrow(from, to).columns() != heads * bytes(headSize)) {
      throw new IllegalArgumentException("sizes do not fit: %s, %s".formatted(from, to));
    }
  }

  private static int bytes(int headSize) {
    return headSize + Float.BYTES;
  }

  private static Matrix wide(Matrix from, Matrix to) {
    return to.dtype() == DType.FP8_E4M3 ? from : to;
  }

  private static Matrix narrow(Matrix from, Matrix to) {
    return to.dtype() == DType.FP8_E4M3 ? to : from;
  }

  public Matrix wide() {
    return wide(from, to);
  }

  public Matrix narrow() {
    return narrow(from, to);
  }

  /// Returns whether it rounds; it restores otherwise.
  public boolean rounds() {
    return to.dtype() == DType.FP8_E4M3;
  }

  public int heads() {
    return wide().columns() / headSize;
  }

  /// Returns the bytes of a rounded head of a row.
  public int roundedBytes() {
    return bytes(headSize);
  }

  /// Number of bytes read and written.
  public long bytes() {
    return from.size() + to.size();
  }
}
