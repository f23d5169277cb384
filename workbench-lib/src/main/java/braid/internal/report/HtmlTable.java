package braid.internal.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import tech.tablesaw.api.ColumnType;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.NumericColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// Formats a Tablesaw table for reading: the first rows, numbers aligned by their decimal point,
/// the type of each column below its name.
public final class HtmlTable {
  public static final int DEFAULT_ROWS = 20;

  private static final String CELL = "padding:2px 10px;";
  private static final String MISSING = "–";

  /// Significant digits of a number that is not an integer.
  private static final int DIGITS = 4;

  /// Numbers closer to 0 are written with an exponent.
  private static final double SMALLEST_PLAIN = 1e-6;

  /// Limit from which a double may represent several integers.
  private static final double EXACT_INTEGERS = 1L << 53;

  private static final Pattern PLAIN = Pattern.compile("-?[0-9.]+");
  private static final String DIGIT_SPACE = "\u2007";
  private static final String POINT_SPACE = "\u2008";

  private HtmlTable() {}

  /// Returns the table for a notebook, with the type of each column.
  public static String html(Table table, int rows) {
    return html(table, rows, true);
  }

  static String html(Table table, int rows, boolean types) {
    int shown = Math.min(rows, table.rowCount());
    var columns = columns(table, shown);
    var out = new StringBuilder("<table style=\"border-collapse:collapse\">");
    if (!table.name().isEmpty()) {
      out.append("<caption style=\"text-align:left;font-weight:bold;padding:4px 0\">")
          .append(escape(table.name()).replace("\n", "<br>"))
          .append("</caption>");
    }
    out.append("<thead><tr>");
    for (var column : columns) {
      out.append("<th style=\"").append(CELL).append(column.align()).append("\">");
      out.append(escape(column.name));
      if (types) {
        out.append("<br><span style=\"font-weight:normal;opacity:.6\">");
        out.append(escape(column.type)).append("</span>");
      }
      out.append("</th>");
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
        var cell = row < 0 ? column.name : plain(column.cells.get(row));
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

  /// Replaces spaces of special widths, for fonts of equal width.
  private static String plain(String cell) {
    return cell.replace(DIGIT_SPACE, " ").replace(POINT_SPACE, " ");
  }

  /// Describes size and columns of the table; if it is cut, also how to see the rest.
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

  private record ShownColumn(String name, String type, boolean number, List<String> cells) {
    String align() {
      return number ? "text-align:right" : "text-align:left";
    }

    int width() {
      return Math.max(name.length(), cells.stream().mapToInt(String::length).max().orElse(0));
    }
  }

  private static List<ShownColumn> columns(Table table, int rows) {
    return table.columns().stream().map(c -> shown(c, rows)).toList();
  }

  private static ShownColumn shown(Column<?> column, int rows) {
    boolean number = column instanceof NumericColumn<?>;
    var cells = new ArrayList<String>();
    for (int row = 0; row < rows; row++) {
      if (column.isMissing(row)) {
        cells.add(MISSING);
      } else if (column instanceof DoubleColumn numbers) {
        double value = numbers.getDouble(row);
        cells.add(column.name().endsWith("%") ? percent(value) : number(value));
      } else {
        cells.add(column.getString(row));
      }
    }
    return new ShownColumn(
        column.name(),
        type(column.type()),
        number,
        column instanceof DoubleColumn ? alignPoints(cells) : cells);
  }

  /// Formats a number for reading: integers whole, others with [#DIGITS] significant digits and at
  /// least one decimal. Uses an exponent only if plain digits would be mostly zeros.
  static String number(double value) {
    double size = Math.abs(value);
    if (!Double.isFinite(value) || size >= EXACT_INTEGERS) {
      return Double.toString(value);
    }
    if (value == Math.rint(value)) {
      return Long.toString((long) value);
    }
    if (size < SMALLEST_PLAIN) {
      return String.format(Locale.ROOT, "%." + (DIGITS - 1) + "e", value);
    }
    int decimals = Math.max(1, DIGITS - 1 - (int) Math.floor(Math.log10(size)));
    return String.format(Locale.ROOT, "%." + decimals + "f", value);
  }

  /// Formats a percentage: more than one decimal suggests a precision that times do not have.
  private static String percent(double value) {
    var digits = String.format(Locale.ROOT, "%.1f", value);
    return digits.matches("-?0\\.0") ? "0" : digits;
  }

  /// Pads the right side with spaces as wide as a digit or a point, so that points are aligned in a
  /// right-aligned column.
  private static List<String> alignPoints(List<String> cells) {
    int widest = cells.stream().mapToInt(HtmlTable::fraction).max().orElse(0);
    return cells.stream().map(cell -> filled(cell, widest - fraction(cell), widest)).toList();
  }

  private static String filled(String cell, int missing, int widest) {
    boolean pointless = missing == widest && widest > 0;
    return PLAIN.matcher(cell).matches() && missing > 0
        ? cell + (pointless ? POINT_SPACE : DIGIT_SPACE) + DIGIT_SPACE.repeat(missing - 1)
        : cell;
  }

  /// Returns the length of the point and the digits behind it.
  private static int fraction(String cell) {
    int point = cell.indexOf('.');
    return point < 0 || !PLAIN.matcher(cell).matches() ? 0 : cell.length() - point;
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
