package braid.internal.report.value;

import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// A small table of texts, as aligned text and as HTML, without Tablesaw, so that ranks can use it
/// and stay small.
public final class Grid {
  private static final String CELL = "padding:2px 10px;";

  private final List<String> names;
  private final boolean[] right;
  private final List<List<String>> rows = new ArrayList<>();
  private String title = "";
  private String note = "";

  private Grid(List<String> names) {
    this.names = names;
    right = new boolean[names.size()];
  }

  public static Grid of(String... names) {
    return of(List.of(names));
  }

  public static Grid of(List<String> names) {
    return new Grid(List.copyOf(names));
  }

  public Grid rightAligned(int... columns) {
    for (int column : columns) {
      right[column] = true;
    }
    return this;
  }

  public Grid title(String text) {
    title = text;
    return this;
  }

  /// Sets a note below the rows.
  public Grid note(String text) {
    note = text;
    return this;
  }

  public Grid row(String... cells) {
    return row(Arrays.asList(cells));
  }

  public Grid row(List<String> cells) {
    if (cells.size() != names.size()) {
      throw new IllegalArgumentException(
          "a row has " + names.size() + " cells but this has " + cells.size());
    }
    rows.add(List.copyOf(cells));
    return this;
  }

  public boolean isEmpty() {
    return rows.isEmpty() && note.isEmpty();
  }

  public MimeBundle bundle() {
    return MimeBundle.text(text()).with(MimeBundle.HTML, html());
  }

  public String text() {
    var widths = new int[names.size()];
    for (int column = 0; column < widths.length; column++) {
      widths[column] = names.get(column).length();
      for (var row : rows) {
        widths[column] = Math.max(widths[column], row.get(column).length());
      }
    }
    var lines = new ArrayList<String>();
    if (!title.isEmpty()) {
      lines.add(title);
    }
    lines.add(line(names, widths));
    rows.forEach(row -> lines.add(line(row, widths)));
    if (!note.isEmpty()) {
      lines.add(note);
    }
    return String.join("\n", lines);
  }

  private String line(List<String> cells, int[] widths) {
    var line = new StringBuilder();
    for (int column = 0; column < widths.length; column++) {
      var padding = " ".repeat(widths[column] - cells.get(column).length());
      line.append(right[column] ? padding + cells.get(column) : cells.get(column) + padding);
      line.append("  ");
    }
    return line.toString().stripTrailing();
  }

  public String html() {
    var out = new StringBuilder("<table style=\"border-collapse:collapse\">");
    if (!title.isEmpty()) {
      out.append("<caption style=\"text-align:left;font-weight:bold;padding:4px 0\">")
          .append(escape(title))
          .append("</caption>");
    }
    out.append("<thead>");
    row(out, "th", names);
    out.append("</thead><tbody>");
    rows.forEach(row -> row(out, "td", row));
    out.append("</tbody></table>");
    if (!note.isEmpty()) {
      out.append("<div style=\"opacity:.7\">").append(escape(note)).append("</div>");
    }
    return out.toString();
  }

  private void row(StringBuilder out, String tag, List<String> cells) {
    out.append("<tr>");
    for (int column = 0; column < cells.size(); column++) {
      out.append(
              "<%s style=\"%stext-align:%s\">"
                  .formatted(tag, CELL, right[column] ? "right" : "left"))
          .append(escape(cells.get(column)))
          .append("</%s>".formatted(tag));
    }
    out.append("</tr>");
  }

  private static String escape(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
