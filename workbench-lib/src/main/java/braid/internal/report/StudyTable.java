package braid.internal.report;

import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.Verdict;
import braid.internal.report.statistics.Spread;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.Percent;
import braid.internal.report.value.TimeScale;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.SequencedMap;
import java.util.function.Function;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// Tables of studies: the reference first, then the configurations in the order of the study.
public final class StudyTable {
  private static final double NANOS_PER_MILLI = 1e6;

  static {
    TableTypes.ready();
  }

  private StudyTable() {}

  public static Table of(RankedConfigurations ranked) {
    var rows = new Rows();
    rows.reference(ranked);
    rows.configurations(ranked, Map.of());
    var columns = rows.columns(change(ranked.ofPipeline()));
    columns.addAll(hardware(ranked));
    return Table.create(ranked.setting(), columns);
  }

  /// Returns the table for reading: a name for each configuration, its verdict, and differences in
  /// as many digits as their intervals support. The caption has the settings that all share.
  public static Table shown(RankedConfigurations ranked) {
    var all = of(ranked);
    var names = StringColumn.create("configuration");
    var change = StringColumn.create(ranked.ofPipeline() ? "vs unfused" : "vs reference");
    names.append(ConfigurationLabel.reference(ranked.reference()));
    change.append("");
    for (var each : ranked.configurations()) {
      names.append(ConfigurationLabel.distinguishing(each.configuration(), ranked.varying()));
      var excess = each.excess();
      change.append("%s (%s)".formatted(Percent.change(excess), Percent.interval(excess)));
    }
    var spread = StringColumn.create("p10–p90 ms");
    for (int row = 0; row < all.rowCount(); row++) {
      spread.append(
          "%s–%s"
              .formatted(
                  TimeScale.digits(all.doubleColumn("p10 ms").getDouble(row)),
                  TimeScale.digits(all.doubleColumn("p90 ms").getDouble(row))));
    }
    var columns = new ArrayList<Column<?>>(List.of(names));
    if (ranked.isJudged()) {
      columns.add(all.column("verdict"));
    }
    columns.add(all.column("median ms"));
    if (all.containsColumn("predicted ms")) {
      columns.add(all.column("predicted ms"));
    }
    if (ranked.isJudged()) {
      columns.add(change);
    }
    columns.add(spread);
    columns.addAll(hardware(ranked));
    return Table.create(ranked.shared(), columns);
  }

  /// Returns the configurations of several studies, without the references: first the columns in
  /// which their problems differ.
  ///
  /// @param problems problem of each study
  public static Table joined(
      List<SequencedMap<String, String>> problems, List<RankedConfigurations> studies) {
    if (studies.isEmpty()) {
      throw new BraidException("a table of studies needs 1 or more of them but has none");
    }
    var names = new LinkedHashSet<String>();
    problems.forEach(problem -> names.addAll(problem.keySet()));
    names.removeIf(name -> problems.stream().map(p -> p.get(name)).distinct().count() == 1);
    var rows = new Rows();
    for (int i = 0; i < studies.size(); i++) {
      var differing = new LinkedHashMap<String, String>();
      for (var name : names) {
        differing.put(name, problems.get(i).getOrDefault(name, ""));
      }
      rows.configurations(studies.get(i), differing);
    }
    boolean ofPipelines = studies.stream().allMatch(RankedConfigurations::ofPipeline);
    boolean judged = studies.stream().allMatch(RankedConfigurations::isJudged);
    return Table.create(
        judged ? "studies" : "studies; " + Caveats.SHARED, rows.columns(change(ofPipelines)));
  }

  private static String change(boolean ofPipelines) {
    return ofPipelines ? "vs unfused %" : "vs reference %";
  }

  /// Rows of a table under construction.
  private static final class Rows {
    private final List<SequencedMap<String, String>> settings = new ArrayList<>();
    private final DoubleColumn median = DoubleColumn.create("median ms");
    private final DoubleColumn p10 = DoubleColumn.create("p10 ms");
    private final DoubleColumn p90 = DoubleColumn.create("p90 ms");
    private final DoubleColumn predicted = DoubleColumn.create("predicted ms");
    private final DoubleColumn change = DoubleColumn.create("change");
    private final DoubleColumn low = DoubleColumn.create("from %");
    private final DoubleColumn high = DoubleColumn.create("to %");
    private final StringColumn verdict = StringColumn.create("verdict");

    void reference(RankedConfigurations ranked) {
      add(ranked.reference().columns(), ranked.unfused(), ranked.unfusedPredictedNanos());
      if (!ranked.isJudged()) {
        unjudged();
        return;
      }
      change.append(0);
      low.appendMissing();
      high.appendMissing();
      verdict.append(ranked.unfusedIsBest() ? "reference, best" : "reference");
    }

    void configurations(RankedConfigurations ranked, Map<String, String> before) {
      for (var each : ranked.configurations()) {
        var row = new LinkedHashMap<>(before);
        row.putAll(each.configuration().columns());
        add(row, each.time(), each.predictedNanos());
        if (each.verdict() == Verdict.UNJUDGED) {
          unjudged();
          continue;
        }
        change.append(100 * each.excess().value());
        low.append(100 * each.excess().low());
        high.append(100 * each.excess().high());
        verdict.append(ranked.words(each));
      }
    }

    /// Appends no difference: of two times that are no evidence, none is either.
    private void unjudged() {
      change.appendMissing();
      low.appendMissing();
      high.appendMissing();
      verdict.append(Verdict.UNJUDGED.toString());
    }

    private void add(SequencedMap<String, String> row, Spread time, OptionalDouble nanos) {
      settings.add(row);
      median.append(time.medianNanos() / NANOS_PER_MILLI);
      p10.append(time.p10Nanos() / NANOS_PER_MILLI);
      p90.append(time.p90Nanos() / NANOS_PER_MILLI);
      nanos.ifPresentOrElse(n -> predicted.append(n / NANOS_PER_MILLI), predicted::appendMissing);
    }

    List<Column<?>> columns(String changeName) {
      var columns = new ArrayList<Column<?>>(ConfigurationColumns.of(settings));
      columns.addAll(List.of(verdict, median, p10, p90));
      if (predicted.countMissing() < predicted.size()) {
        columns.add(predicted);
      }
      columns.addAll(List.of(change.setName(changeName), low, high));
      return columns;
    }
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
      columns.add(StringColumn.create("throttled by", rows.stream().map(Conditions::words)));
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
