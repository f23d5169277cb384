package braid.internal.report;

import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.columns.Column;

/// Configurations as table columns: one per name, integers if every value is one.
public final class ConfigurationColumns {
  private static final String WHOLE = "-?\\d{1,9}";

  static {
    TableTypes.ready();
  }

  private ConfigurationColumns() {}

  /// Returns columns with one row per configuration; a name that a row lacks is missing there.
  public static List<Column<?>> of(List<? extends SequencedMap<String, String>> rows) {
    var names = new ArrayList<String>();
    rows.forEach(r -> r.keySet().stream().filter(k -> !names.contains(k)).forEach(names::add));
    return names.stream().<Column<?>>map(name -> column(name, rows)).toList();
  }

  private static Column<?> column(String name, List<? extends SequencedMap<String, String>> rows) {
    var values = rows.stream().map(r -> r.getOrDefault(name, "")).toList();
    if (values.stream().allMatch(v -> v.isEmpty() || v.matches(WHOLE))) {
      var column = IntColumn.create(name);
      for (var value : values) {
        if (value.isEmpty()) {
          column.appendMissing();
        } else {
          column.append(Integer.parseInt(value));
        }
      }
      return column;
    }
    return StringColumn.create(name, values);
  }
}
