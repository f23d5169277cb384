package braid.internal.report;

import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.RankedConfigurations;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SequencedMap;
import java.util.function.Function;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// Table of a study: the unfused reference first, then the configurations in the order of the
/// study.
public final class StudyTable {
  private static final double NANOS_PER_MILLI = 1e6;

  private StudyTable() {}

  public static Table of(RankedConfigurations ranked) {
    var settings = new ArrayList<SequencedMap<String, String>>();
    settings.add(Overlap.unfused().columns());
    var median = DoubleColumn.create("median ms");
    var p10 = DoubleColumn.create("p10 ms");
    var p90 = DoubleColumn.create("p90 ms");
    var change = DoubleColumn.create("vs unfused %");
    var low = DoubleColumn.create("from %");
    var high = DoubleColumn.create("to %");
    var verdict = StringColumn.create("verdict");

    median.append(ranked.unfused().medianNanos() / NANOS_PER_MILLI);
    p10.append(ranked.unfused().p10Nanos() / NANOS_PER_MILLI);
    p90.append(ranked.unfused().p90Nanos() / NANOS_PER_MILLI);
    change.append(0);
    low.appendMissing();
    high.appendMissing();
    verdict.append(ranked.unfusedIsBest() ? "reference, best" : "reference");
    for (var configuration : ranked.configurations()) {
      settings.add(configuration.overlap().columns());
      median.append(configuration.time().medianNanos() / NANOS_PER_MILLI);
      p10.append(configuration.time().p10Nanos() / NANOS_PER_MILLI);
      p90.append(configuration.time().p90Nanos() / NANOS_PER_MILLI);
      change.append(-100 * configuration.saved().value());
      low.append(-100 * configuration.saved().high());
      high.append(-100 * configuration.saved().low());
      verdict.append(configuration.verdict().toString());
    }
    var columns = new ArrayList<Column<?>>(ConfigurationColumns.of(settings));
    columns.addAll(List.of(median, p10, p90, change, low, high, verdict));
    columns.addAll(hardware(ranked));
    return Table.create(ranked.setting(), columns);
  }

  /// Returns columns for the readings that any configuration has.
  private static List<Column<?>> hardware(RankedConfigurations ranked) {
    var rows = new ArrayList<Conditions>();
    rows.add(ranked.unfusedConditions());
    ranked.configurations().forEach(each -> rows.add(each.conditions()));
    var columns = new ArrayList<Column<?>>();
    whole("SM clock MHz", rows, Conditions::smClockMhz).ifPresent(columns::add);
    whole("power W", rows, Conditions::watts).ifPresent(columns::add);
    whole("temperature C", rows, Conditions::celsius).ifPresent(columns::add);
    if (rows.stream().anyMatch(row -> row.measurements() > 0)) {
      columns.add(StringColumn.create("held back by", rows.stream().map(Conditions::words)));
    }
    return columns;
  }

  private static Optional<IntColumn> whole(
      String name, List<Conditions> rows, Function<Conditions, OptionalInt> number) {
    var values = rows.stream().map(number).toList();
    if (values.stream().allMatch(OptionalInt::isEmpty)) {
      return Optional.empty();
    }
    var column = IntColumn.create(name);
    for (var value : values) {
      if (value.isPresent()) {
        column.append(value.getAsInt());
      } else {
        column.appendMissing();
      }
    }
    return Optional.of(column);
  }
}
