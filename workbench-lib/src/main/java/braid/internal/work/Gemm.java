package braid.internal.work;

import java.util.List;
import java.util.stream.IntStream;

/// One multiplication: `c = epilogue(a · b)`. `c` is stored by rows.
///
/// May be a batch of `count` multiplications, each `aStep` stored rows further on in the memory of
/// `a` and `cStep` in the memory of `c`: evenly spaced chunks of equal size fill a GPU better
/// together than one by one.
public record Gemm(
    Matrix a, Operand b, Matrix c, Epilogue epilogue, int count, int aStep, int cStep) {
  public Gemm {
    var right = b.source();
    if (a.columns() != right.rows() || a.rows() != c.rows() || right.columns() != c.columns()) {
      throw new IllegalArgumentException("sizes do not fit: %s, %s, %s".formatted(a, right, c));
    }
    if (c.transposed()) {
      throw new IllegalArgumentException("a result is stored by rows: " + c);
    }
    if (count > 1 && (a.transposed() || aStep < a.rows() || cStep < c.rows())) {
      throw new IllegalArgumentException(
          "%d chunks of %d rows cannot be %d and %d rows apart: %s"
              .formatted(count, a.rows(), aStep, cStep, a));
    }
  }

  /// A single multiplication.
  public Gemm(Matrix a, Operand b, Matrix c, Epilogue epilogue) {
    this(a, b, c, epilogue, 1, 0, 0);
  }

  /// Returns the multiplications of the batch as single ones.
  public List<Gemm> each() {
    return count == 1
        ? List.of(this)
        : IntStream.range(0, count)
            .mapToObj(
                i -> {
                  int rows = i * cStep;
                  return new Gemm(
                      a.shifted(i * aStep), b, c.shifted(rows), epilogue.shifted(rows), 1, 0, 0);
                })
            .toList();
  }

  /// Number of multiplications and additions.
  public long flops() {
    return 2L * count * c.rows() * c.columns() * a.columns();
  }
}
