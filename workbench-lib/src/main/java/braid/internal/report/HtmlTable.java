package braid.internal.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import tech.tablesaw.api.ColumnType;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.NumericColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// A Tablesaw table as people read it: the first rows, numbers aligned by their decimal point, the
/// type of each column under its name.
public final class HtmlTable {
  public static final int DEFAULT_ROWS = 20;

  private static final String CELL = "padding:2px 10px;";
  private static final String MISSING = "–";

  private HtmlTable() {}

  public static String html(Table table, int rows) {
    int shown = Math.min(rows, table.rowCount());
    var columns = columns(table, shown);
    var out = new StringBuilder("<table style=\"border-collapse:collapse\">");
    if (!table.name().isEmpty()) {
      out.append("<caption style=\"text-align:left;font-weight:bold;padding:4px 0\">")
          .append(escape(table.name()))
          .append("</caption>");
    }
    out.append("<thead><tr>");
    for (var column : columns) {
      out.append("<th style=\"").append(CELL).append(column.align()).append("\">");
      out.append(escape(column.name)).append("<br><span style=\"font-weight:normal;opacity:.6\">");
      out.append(escape(column.type)).append("</span></th>");
    }
    out.append("</tr></thead><tbody>");
    for (int row = 0; row < shown; row++) {
      out.append("<tr>");
      for (var column : columns) {
        out.append("<td style=\"").append(CELL).append(column.align()).append("\">");
        out.append(escape(column.cells.get(row))).append("</td>");
      }
      out.append("</tr>");
    }
    out.append("</tbody></table>");
    if (shown < table.rowCount()) {
      out.append("<div>").append(more(table, shown)).append("</div>");
    }
    return out.toString();
  }

  public static String text(Table table, int rows) {
    int shown = Math.min(rows, table.rowCount());
    var columns = columns(table, shown);
    var lines = new ArrayList<String>();
    if (!table.name().isEmpty()) {
      lines.add(table.name());
    }
    for (int row = -1; row < shown; row++) {
      var line = new StringBuilder();
      for (var column : columns) {
        var cell = row < 0 ? column.name : column.cells.get(row);
        var padding = " ".repeat(column.width() - cell.length());
        line.append(column.number ? padding + cell : cell + padding).append("  ");
      }
      lines.add(line.toString().stripTrailing());
    }
    if (shown < table.rowCount()) {
      lines.add(more(table, shown));
    }
    return String.join("\n", lines);
  }

  /// How large the table is and what its columns are of; where it is cut, how to see the rest.
  static String size(Table table, int rows) {
    var columns = table.columns().stream().map(c -> c.name() + " " + type(c.type())).toList();
    var cut = rows < table.rowCount() ? "; whole(table) shows all" : "";
    return String.format(
        Locale.ROOT,
        "%,d rows × %,d columns (%s)%s",
        table.rowCount(),
        table.columnCount(),
        String.join(", ", columns),
        cut);
  }

  public static String escape(String text) {
    return text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\"", "&quot;");
  }

  private static String more(Table table, int shown) {
    return String.format(
        Locale.ROOT, "… %,d of %,d rows more", table.rowCount() - shown, table.rowCount());
  }

  private record Shown(String name, String type, boolean number, List<String> cells) {
    String align() {
      return number ? "text-align:right" : "text-align:left";
    }

    int width() {
      return Math.max(name.length(), cells.stream().mapToInt(String::length).max().orElse(0));
    }
  }

  private static List<Shown> columns(Table table, int rows) {
    return table.columns().stream().map(c -> shown(c, rows)).toList();
  }

  private static Shown shown(Column<?> column, int rows) {
    boolean number = column instanceof NumericColumn<?>;
    var cells = new ArrayList<String>();
    int decimals = column instanceof DoubleColumn d ? decimals(d) : 0;
    for (int row = 0; row < rows; row++) {
      if (column.isMissing(row)) {
        cells.add(MISSING);
      } else if (column instanceof DoubleColumn numbers) {
        cells.add(String.format(Locale.ROOT, "%." + decimals + "f", numbers.getDouble(row)));
      } else {
        cells.add(column.getString(row));
      }
    }
    return new Shown(column.name(), type(column.type()), number, cells);
  }

  /// So many decimals that the column's largest value shows four significant digits.
  private static int decimals(DoubleColumn column) {
    double largest = 0;
    for (int row = 0; row < column.size(); row++) {
      if (!column.isMissing(row)) {
        largest = Math.max(largest, Math.abs(column.getDouble(row)));
      }
    }
    return largest == 0 ? 0 : Math.clamp(3 - (int) Math.floor(Math.log10(largest)), 0, 9);
  }

  private static String type(ColumnType type) {
    return switch (type.name()) {
      case "INTEGER", "LONG", "SHORT" -> "integer";
      case "DOUBLE", "FLOAT" -> "number";
      case "STRING", "TEXT" -> "text";
      default -> type.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    };
  }
}
