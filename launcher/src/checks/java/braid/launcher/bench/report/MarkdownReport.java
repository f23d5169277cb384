package braid.launcher.bench.report;

import java.util.List;

/// The report as a Markdown page of `docs/results`.
public final class MarkdownReport {
  private MarkdownReport() {}

  public static String of(FrontReport report) {
    var text = new StringBuilder();
    text.append("# Cost of Braid's front\n\n");
    text.append("Measured by `braid bench front` on ")
        .append(report.machine().when())
        .append(":\n")
        .append(report.machine())
        .append(".\n\n");
    table(text, Columns.head(report), Columns.rows(report));
    text.append('\n');
    report.remarks().forEach(remark -> text.append("- ").append(remark).append('\n'));
    text.append("\n## Time of an expression cell by stage\n\n");
    table(text, Columns.stageHead(report), Columns.stageRows(report));
    return text.toString();
  }

  private static void table(StringBuilder text, List<String> head, List<List<String>> rows) {
    line(text, head);
    text.append("|---".repeat(head.size())).append("|\n");
    rows.forEach(row -> line(text, row));
  }

  private static void line(StringBuilder text, List<String> words) {
    text.append("| ").append(String.join(" | ", words)).append(" |\n");
  }
}
