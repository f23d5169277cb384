package braid.launcher.bench.report;

import java.util.List;
import java.util.Map;

/// What `braid bench front` found. `stages` is where the time of an expression cell goes, by number
/// of ranks and stage; `remarks` is what a reader has to know to trust the rest.
public record FrontReport(
    Machine machine,
    List<Integer> rankCounts,
    List<Row> rows,
    Map<Integer, Map<String, Measure>> stages,
    List<String> remarks) {
  /// How many engines ipyparallel gets, and so with how many ranks it is compared.
  public static final int PEER_ENGINES = 4;

  public FrontReport {
    rankCounts = List.copyOf(rankCounts);
    rows = List.copyOf(rows);
    stages = Map.copyOf(stages);
    remarks = List.copyOf(remarks);
  }
}
