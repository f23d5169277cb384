package braid;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.SequencedMap;

/// The problem: which multiplication beside which communication, how large, in which type. It is
/// the same on every rank and says nothing of how it is solved; that is [Overlap].
///
/// For [Pattern#ALL_GATHER_GEMM] the ranks together hold an input of `m` × `k` and a weight of `k`
/// × `n`. A rank holds its balanced part of the input's rows and of the weight's columns, and
/// computes all rows of its columns: an output of `m` × (its part of `n`).
public record GemmSpec(Pattern pattern, int m, int n, int k, DType dtype) {
  public static final DType DEFAULT_DTYPE = DType.FP32;

  /// What is communicated beside the multiplication.
  public enum Pattern {
    ALL_GATHER_GEMM;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  public GemmSpec {
    positive("m", m);
    positive("n", n);
    positive("k", k);
  }

  /// Gathers the input's rows from all ranks and multiplies them by this rank's columns.
  public static GemmSpec allGatherGemm(int m, int n, int k) {
    return new GemmSpec(Pattern.ALL_GATHER_GEMM, m, n, k, DEFAULT_DTYPE);
  }

  public GemmSpec dtype(DType other) {
    return new GemmSpec(pattern, m, n, k, other);
  }

  /// Multiplications and additions of all ranks together.
  public double flops() {
    return 2.0 * m * n * k;
  }

  /// This problem as columns of a table.
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", pattern.toString());
    columns.put("m", Integer.toString(m));
    columns.put("n", Integer.toString(n));
    columns.put("k", Integer.toString(k));
    columns.put("dtype", dtype.toString());
    return columns;
  }

  private static void positive(String name, int value) {
    if (value < 1) {
      throw new BraidException(
          "%s must be 1 or more but was %d; give the size of the whole problem"
              .formatted(name, value));
    }
  }

  @Override
  public String toString() {
    return "%s m=%d n=%d k=%d %s".formatted(pattern, m, n, k, dtype);
  }
}
