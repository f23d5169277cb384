package braid.internal.report;

import braid.Overlap;
import braid.Study;
import braid.internal.report.statistics.OrderStatistics;
import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// A study's table: the unfused reference first, then the configurations in the order of the study.
public final class StudyTable {
  private static final double NANOS_PER_MILLI = 1e6;

  private StudyTable() {}

  public static Table of(Study study) {
    var settings = new ArrayList<SequencedMap<String, String>>();
    settings.add(Overlap.unfused().columns());
    var median = DoubleColumn.create("median ms");
    var p10 = DoubleColumn.create("p10 ms");
    var p90 = DoubleColumn.create("p90 ms");
    var change = DoubleColumn.create("vs unfused %");
    var low = DoubleColumn.create("from %");
    var high = DoubleColumn.create("to %");
    var verdict = StringColumn.create("verdict");

    var best = study.best();
    var ties = study.ties();
    median.append(OrderStatistics.quantile(study.unfusedNanos(), 0.5) / NANOS_PER_MILLI);
    p10.append(OrderStatistics.quantile(study.unfusedNanos(), 0.1) / NANOS_PER_MILLI);
    p90.append(OrderStatistics.quantile(study.unfusedNanos(), 0.9) / NANOS_PER_MILLI);
    change.append(0);
    low.appendMissing();
    high.appendMissing();
    verdict.append(best.equals(Overlap.unfused()) ? "reference, best" : "reference");
    var saved = study.saved();
    for (int i = 0; i < study.trials().size(); i++) {
      var trial = study.trials().get(i);
      settings.add(trial.overlap().columns());
      median.append(trial.medianNanos() / NANOS_PER_MILLI);
      p10.append(trial.p10Nanos() / NANOS_PER_MILLI);
      p90.append(trial.p90Nanos() / NANOS_PER_MILLI);
      change.append(-100 * saved.get(i).value());
      low.append(-100 * saved.get(i).high());
      high.append(-100 * saved.get(i).low());
      verdict.append(
          trial.overlap().equals(best)
              ? "best"
              : ties.contains(trial.overlap()) ? "ties with best" : "slower");
    }
    var columns = new ArrayList<Column<?>>(ConfigurationColumns.of(settings));
    columns.addAll(List.of(median, p10, p90, change, low, high, verdict));
    return Table.create(study.setting(), columns);
  }
}
