package braid.internal.work;

/// One multiplication: `c` is what the epilogue makes of `a · b`. `c` is stored by rows.
public record Gemm(Matrix a, Operand b, Matrix c, Epilogue epilogue) {
  public Gemm {
    var right = b.source();
    if (a.columns() != right.rows() || a.rows() != c.rows() || right.columns() != c.columns()) {
      throw new IllegalArgumentException("sizes do not fit: %s, %s, %s".formatted(a, right, c));
    }
    if (c.transposed()) {
      throw new IllegalArgumentException("a result is stored by rows: " + c);
    }
  }

  /// Multiplications and additions.
  public long flops() {
    return 2L * c.rows() * c.columns() * a.columns();
  }
}
