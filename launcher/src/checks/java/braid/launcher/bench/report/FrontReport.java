package braid.launcher.bench.report;

import java.util.List;
import java.util.Map;

/// Result of `braid bench front`. `stages` is the time of each stage of an expression cell, by
/// number of ranks; `remarks` are the measuring conditions.
public record FrontReport(
    Machine machine,
    List<Integer> rankCounts,
    List<Row> rows,
    Map<Integer, Map<String, Measure>> stages,
    List<String> remarks) {
  /// Number of ipyparallel engines, and of ranks in the comparison.
  public static final int PEER_ENGINES = 4;

  public FrontReport {
    rankCounts = List.copyOf(rankCounts);
    rows = List.copyOf(rows);
    stages = Map.copyOf(stages);
    remarks = List.copyOf(remarks);
  }
}
