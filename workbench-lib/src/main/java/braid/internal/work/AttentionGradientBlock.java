package braid.internal.work;

/// Gradients of a block of an attention: in fp32, or in the type of the attention if nothing is
/// added to them. All matrices are stored by rows, output and LSE without gaps.
///
/// @param block the block; its result is the finished attention of the query, which is read
/// @param outputGradient gradient of the result's output
/// @param continuesQuery true to add to the gradient of the query; false to overwrite it
/// @param continuesKeys true to add to the gradients of key and value; false to overwrite them
/// @param deterministic true for equal bits in every run
public record AttentionGradientBlock(
    AttentionBlock block,
    Matrix outputGradient,
    Matrix queryGradient,
    Matrix keyGradient,
    Matrix valueGradient,
    boolean continuesQuery,
    boolean continuesKeys,
    boolean deterministic) {
  public AttentionGradientBlock {
    same(block.query(), outputGradient);
    same(block.query(), queryGradient);
    same(block.key(), keyGradient);
    same(block.value(), valueGradient);
  }

  private static void same(Matrix one, Matrix other) {
    if (one.rows() != other.rows() || one.columns() != other.columns()) {
      throw new IllegalArgumentException("sizes do not fit: %s, %s".formatted(one, other));
    }
  }

  /// Returns the gradients of a block of one of the sequences in this one, added to this one's.
  public AttentionGradientBlock of(AttentionBlock sequence) {
    int row = block.rowOf(sequence);
    int key = block.keyOf(sequence);
    int rows = sequence.query().rows();
    int keys = sequence.key().rows();
    return new AttentionGradientBlock(
        sequence,
        outputGradient.rows(row, rows),
        queryGradient.rows(row, rows),
        keyGradient.rows(key, keys),
        valueGradient.rows(key, keys),
        true,
        true,
        deterministic);
  }

  /// Number of multiplications and additions of the five products.
  public long flops() {
    return block.flops() / 2 * 5;
  }
}
