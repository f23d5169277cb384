package braid.internal.work;

/// Rounds heads to e4m3, each row of a head with a scale of its own, or restores them: see
/// [braid.model.AttentionSpec#exchanged]. A rounded head has its numbers and then its scale in
/// fp32, at any alignment.
///
/// @param rounds false to restore
public record Recoding(Matrix wide, Matrix rounded, int headSize, boolean rounds) {
  public int heads() {
    return wide.columns() / headSize;
  }

  /// Returns the bytes of a rounded head of a row.
  public int roundedSize() {
    return headSize + Float.BYTES;
  }

  /// Number of bytes read and written.
  public long bytes() {
    return wide.size() + rounded.size();
  }
}
