package braid.bench;

import braid.model.DType;
import braid.model.GemmSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;

/// A problem that `braid bench gpu` times, in BF16.
///
/// @param goal upper limit of the fastest method's time ÷ that of the GEMM alone, on 4 ranks; empty
///   if there is none
public record Workload(String name, GemmSpec spec, OptionalDouble goal) {
  /// Elements per rank of a collective beside a GEMM: 64 MiB.
  private static final int BESIDE = 32 << 20;

  private static final List<Integer> SMALL_ROWS = List.of(512, 1024, 2048, 4096);

  /// Returns the workloads: layers of a large model with 8192 rows, then with fewer.
  ///
  /// @param divisor divides every size; 1 for the workloads themselves
  public static List<Workload> all(int ranks, int divisor) {
    var all = new ArrayList<Workload>();
    int hidden = 8192 / divisor;
    int wide = 28672 / divisor;
    all.add(
        of(
            "all-gather GEMM",
            GemmSpec.allGatherGemm(hidden, wide, hidden),
            OptionalDouble.of(1.04)));
    all.add(
        of(
            "GEMM reduce-scatter",
            GemmSpec.gemmReduceScatter(hidden, hidden, wide),
            OptionalDouble.of(1.05)));
    all.add(
        of(
            "GEMM all-reduce",
            GemmSpec.gemmAllReduce(hidden, hidden, 32768 / divisor),
            OptionalDouble.of(1.12)));
    long beside = (long) BESIDE / divisor / divisor * ranks;
    all.add(
        of(
            "GEMM beside all-gather",
            GemmSpec.besideAllGather(hidden, hidden, hidden, beside),
            OptionalDouble.of(1.05)));
    for (int rows : SMALL_ROWS) {
      int m = rows / divisor;
      all.add(of("all-gather GEMM", GemmSpec.allGatherGemm(m, wide, hidden)));
      all.add(of("GEMM reduce-scatter", GemmSpec.gemmReduceScatter(m, hidden, wide)));
      all.add(of("GEMM all-reduce", GemmSpec.gemmAllReduce(m, hidden, wide)));
    }
    return List.copyOf(all);
  }

  private static Workload of(String pattern, GemmSpec spec) {
    return of(pattern, spec, OptionalDouble.empty());
  }

  private static Workload of(String pattern, GemmSpec spec, OptionalDouble goal) {
    return new Workload(
        "%s %d × %d × %d".formatted(pattern, spec.m(), spec.n(), spec.k()),
        spec.dtype(DType.BF16),
        goal);
  }
}
