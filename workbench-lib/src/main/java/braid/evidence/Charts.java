package braid.evidence;

import braid.internal.report.chart.BarsChart;
import braid.internal.report.chart.BarsChart.Bar;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.Locale;
import java.util.Set;
import org.jfree.chart.JFreeChart;
import org.jspecify.annotations.Nullable;
import tech.tablesaw.api.NumericColumn;
import tech.tablesaw.api.Table;

/// Charts of tables in the style of all others. Each bar has its value, unit and interval written
/// beside it; bars of a table of profiles with different bytes also have their GB/s:
///
/// ```java
/// Charts.bars(profiles.table(), "pattern", "median ms")
/// Charts.bars(all).names("pattern").series("method").values("vs unfused %").interval("from %", "to %").chart()
/// ```
public final class Charts {
  private static final String BYTES = "received MB";
  private static final String RATE = "GB/s";
  private static final Set<String> UNITS = Set.of("%", "s", "ms", "µs", "MB", RATE, "W", "MHz");

  private final Table table;
  private @Nullable String names;
  private @Nullable String series;
  private @Nullable String values;
  private @Nullable String low;
  private @Nullable String high;
  private String title;

  private Charts(Table table) {
    this.table = table;
    this.title = table.name();
  }

  /// Bars of a table's rows; name its columns next.
  public static Charts bars(Table table) {
    return new Charts(table);
  }

  /// One bar for each row.
  public static JFreeChart bars(Table table, String names, String values) {
    return bars(table).names(names).values(values).chart();
  }

  /// The column with each bar's name; bars of one name stand side by side.
  public Charts names(String column) {
    names = column(column);
    return this;
  }

  /// The column that colours bars; by default all have one colour.
  public Charts series(String column) {
    series = column(column);
    return this;
  }

  /// The column of numbers; its name labels the axis, and ends with the unit: "median ms".
  public Charts values(String column) {
    values = number(column);
    return this;
  }

  /// The columns with each value's interval.
  public Charts interval(String from, String to) {
    low = number(from);
    high = number(to);
    return this;
  }

  /// By default the table's name.
  public Charts title(String text) {
    title = text;
    return this;
  }

  public JFreeChart chart() {
    if (names == null || values == null) {
      throw new BraidException(
          "bars need names and values but %s; call names(\"%s\").values(...)"
              .formatted(
                  names == null ? "names(column) is missing" : "values(column) is missing",
                  table.columnNames().isEmpty() ? "column" : table.columnNames().getFirst()));
    }
    var unit = values.substring(values.lastIndexOf(' ') + 1);
    boolean rates = unit.equals("ms") && bytesDiffer();
    var bars = new ArrayList<Bar>();
    for (int row = 0; row < table.rowCount(); row++) {
      var name = table.getUnformatted(row, table.columnIndex(names));
      bars.add(
          new Bar(
              names.equals("pattern") ? ConfigurationLabel.pattern(name) : name,
              series == null ? "" : table.getUnformatted(row, table.columnIndex(series)),
              number(values, row),
              number(low, row),
              number(high, row),
              rates ? TimeScale.digits(number(RATE, row)) + " " + RATE : ""));
    }
    // The name of every table of such times has the note.
    var note = table.name().contains(Caveats.SHARED) ? Caveats.SHARED : "";
    return BarsChart.of(title, note, values, UNITS.contains(unit) ? unit : "", bars);
  }

  /// Returns true if the rows moved different numbers of bytes, so that times alone mislead.
  private boolean bytesDiffer() {
    return table.containsColumn(BYTES)
        && table.containsColumn(RATE)
        && table.column(BYTES).unique().size() > 1;
  }

  private double number(@Nullable String column, int row) {
    return column == null ? Double.NaN : ((NumericColumn<?>) table.column(column)).getDouble(row);
  }

  private String column(String name) {
    if (!table.containsColumn(name)) {
      throw new BraidException(
          "a column must be one of %s but was \"%s\"".formatted(table.columnNames(), name));
    }
    return name;
  }

  private String number(String name) {
    if (!(table.column(column(name)) instanceof NumericColumn<?>)) {
      throw new BraidException(
          "column \"%s\" must hold numbers but holds %s; choose another"
              .formatted(name, table.column(name).type().name().toLowerCase(Locale.ROOT)));
    }
    return name;
  }
}
