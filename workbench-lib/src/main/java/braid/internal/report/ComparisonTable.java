package braid.internal.report;

import braid.Comparison;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// A comparison's table: a row for each configuration that both studies have.
public final class ComparisonTable {
  private static final double NANOS_PER_MILLI = 1e6;

  private ComparisonTable() {}

  public static Table of(Comparison comparison) {
    var configuration = StringColumn.create("configuration");
    var first = DoubleColumn.create("first ms");
    var second = DoubleColumn.create("second ms");
    var difference = DoubleColumn.create("difference %");
    var low = DoubleColumn.create("from %");
    var high = DoubleColumn.create("to %");
    var verdict = StringColumn.create("verdict");
    for (var row : comparison.rows()) {
      configuration.append(row.configuration());
      first.append(row.firstNanos() / NANOS_PER_MILLI);
      second.append(row.secondNanos() / NANOS_PER_MILLI);
      difference.append(100 * row.difference().value());
      low.append(100 * row.difference().low());
      high.append(100 * row.difference().high());
      verdict.append(row.verdict().toString());
    }
    return Table.create(
        comparison.setting(), configuration, first, second, difference, low, high, verdict);
  }
}
