package braid.launcher.bench.report;

import java.util.List;

/// The report as text for a terminal.
public final class TextReport {
  private TextReport() {}

  public static String of(FrontReport report) {
    var text = new StringBuilder();
    text.append(report.machine()).append("\n\n");
    table(text, Columns.head(report), Columns.rows(report));
    text.append('\n');
    report.remarks().forEach(remark -> text.append(remark).append('\n'));
    return text.toString();
  }

  public static String stages(FrontReport report) {
    var text = new StringBuilder("\n");
    table(text, Columns.stageHead(report), Columns.stageRows(report));
    return text.toString();
  }

  private static void table(StringBuilder text, List<String> head, List<List<String>> rows) {
    var widths = head.stream().mapToInt(String::length).toArray();
    for (var row : rows) {
      for (int i = 0; i < widths.length; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    line(text, head, widths);
    rows.forEach(row -> line(text, row, widths));
  }

  private static void line(StringBuilder text, List<String> words, int[] widths) {
    var line = new StringBuilder();
    for (int i = 0; i < widths.length; i++) {
      line.append(("%-" + (widths[i] + 2) + "s").formatted(words.get(i)));
    }
    text.append(line.toString().stripTrailing()).append('\n');
  }
}
