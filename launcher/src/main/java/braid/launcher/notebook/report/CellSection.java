package braid.launcher.notebook.report;

import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.Locale;

/// A code cell on the page: its outcome, its code and its outputs.
///
/// @param id target of links to it
record CellSection(String id, NotebookRun run, NotebookCell cell, CellResult result) {
  /// Outcome of a cell, as its badge names it.
  enum Mark {
    FAILED("failed"),
    DIFFERENT("differs"),
    EXPECTED("failed as allowed"),
    OK("ok"),
    SKIPPED("skipped"),
    PENDING("not run");

    private final String word;

    Mark(String word) {
      this.word = word;
    }

    String word() {
      return word;
    }

    String cssClass() {
      return name().toLowerCase(Locale.ROOT);
    }

    boolean isFailure() {
      return this == FAILED || this == DIFFERENT;
    }

    String badge() {
      return "<span class=\"badge %s\">%s</span>".formatted(cssClass(), word);
    }
  }

  Mark mark() {
    return switch (result.status()) {
      case FAILED -> run.failsAsRecorded() ? Mark.EXPECTED : Mark.FAILED;
      case SKIPPED -> Mark.SKIPPED;
      case PENDING -> run.differences(result).isEmpty() ? Mark.PENDING : Mark.DIFFERENT;
      case COMPLETED ->
          !run.differences(result).isEmpty()
              ? Mark.DIFFERENT
              : result.failure().isPresent() ? Mark.EXPECTED : Mark.OK;
    };
  }

  /// Returns a line for the list of contents.
  String entry() {
    return "<li class=\"%s\"><a href=\"#%s\">%s</a> <code>%s</code><span class=\"time\">%s</span></li>\n"
        .formatted(
            mark().cssClass(),
            id,
            Escape.html(result.name()),
            Escape.html(result.firstLine()),
            mark() == Mark.OK ? time() : mark().word());
  }

  /// Returns an entry for the list of failures, with the reason.
  String failure() {
    var why = new StringBuilder();
    if (mark() == Mark.FAILED) {
      result
          .failure()
          .ifPresent(
              failure ->
                  why.append(place(failure))
                      .append("<p class=\"reason\"><b>")
                      .append(Escape.html(simple(failure.name())))
                      .append("</b>: ")
                      .append(Escape.html(failure.message()))
                      .append("</p>"));
    }
    return "<li>%s <a href=\"#%s\">%s, %s</a> <code>%s</code>%s%s</li>\n"
        .formatted(
            mark().badge(),
            id,
            Escape.html(run.result().notebook()),
            Escape.html(result.name()),
            Escape.html(result.firstLine()),
            why,
            differences());
  }

  /// Returns the first line of the failure's text, which has the rank and the line of the cell;
  /// empty if it only repeats the message.
  private static String place(CellFailure failure) {
    return failure.traceback().stream()
        .findFirst()
        .map(String::strip)
        .filter(line -> !line.isEmpty() && !failure.message().contains(line))
        .map(line -> "<p class=\"place\">%s</p>".formatted(Escape.html(line)))
        .orElse("");
  }

  private static String simple(String className) {
    return className.substring(className.lastIndexOf('.') + 1);
  }

  private String differences() {
    var differences = run.differences(result);
    if (differences.isEmpty()) {
      return "";
    }
    var table =
        new StringBuilder(
            "<table class=\"plain\"><thead><tr><th>what</th><th>recorded</th><th>now</th></tr></thead><tbody>");
    differences.forEach(
        d ->
            table
                .append("<tr><td>")
                .append(Escape.html(d.what()))
                .append("</td><td>")
                .append(Escape.html(d.expected()))
                .append("</td><td>")
                .append(Escape.html(d.got()))
                .append("</td></tr>"));
    return table.append("</tbody></table>").toString();
  }

  String html() {
    var mark = mark();
    var html = new StringBuilder();
    html.append("<section class=\"cell %s\" id=\"%s\">\n".formatted(mark.cssClass(), id));
    html.append(
        "<header><a href=\"#%s\">%s</a> %s<span class=\"time\">%s</span></header>\n"
            .formatted(id, Escape.html(result.name()), mark.badge(), time()));
    html.append("<pre class=\"code\">")
        .append(Escape.html(cell.source().stripTrailing()))
        .append("</pre>\n");
    html.append(differences());
    var outputs = new StringBuilder();
    for (var output : cell.outputs()) {
      if (output instanceof JsonObject object) {
        outputs.append(OutputHtml.of(object));
      }
    }
    if (!outputs.isEmpty()) {
      html.append("<div class=\"outputs\">\n").append(outputs).append("</div>\n");
    }
    return html.append("</section>\n").toString();
  }

  private String time() {
    return switch (result.status()) {
      case COMPLETED, FAILED -> time(result.elapsed());
      case SKIPPED, PENDING -> "";
    };
  }

  static String time(Duration duration) {
    double seconds = duration.toNanos() / 1e9;
    if (seconds < 60) {
      return String.format(Locale.ROOT, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
    }
    return "%d:%02d min".formatted(duration.toMinutes(), duration.toSecondsPart());
  }
}
