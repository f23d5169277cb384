package braid.launcher.notebook.report;

import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult.Status;
import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;

/// A notebook on the page.
final class NotebookSection {
  private final String id;
  private final NotebookRun run;
  private final IdentityHashMap<NotebookCell, CellSection> cells = new IdentityHashMap<>();
  private final List<CellSection> inOrder = new ArrayList<>();

  NotebookSection(String id, NotebookRun run) {
    this.id = id;
    this.run = run;
    var code = run.notebook().codeCells();
    for (int i = 0; i < code.size(); i++) {
      var section =
          new CellSection(id + "c" + (i + 1), run, code.get(i), run.result().cells().get(i));
      cells.put(code.get(i), section);
      inOrder.add(section);
    }
  }

  List<CellSection> failures() {
    return inOrder.stream().filter(cell -> cell.mark().isFailure()).toList();
  }

  /// Returns the reason why the notebook did not run or was not saved; empty if it ran and was
  /// saved.
  String trouble() {
    return run.result()
        .trouble()
        .map(
            why ->
                "<li><span class=\"badge %s\">%s</span> <a href=\"#%s\">%s</a><p class=\"reason\">%s</p></li>\n"
                    .formatted(
                        run.exitCode() == ExitCode.OK ? "pending" : "failed",
                        run.wasRun() ? "not saved" : "not run",
                        id,
                        name(),
                        Escape.html(why)))
        .orElse("");
  }

  String notebook() {
    return run.result().notebook();
  }

  private String name() {
    return Escape.html(notebook());
  }

  /// Folder of the notebook, which its images are relative to.
  private Path folder() {
    return Path.of(notebook()).toAbsolutePath().resolveSibling("");
  }

  /// Returns the notebook's first heading; empty if it has none.
  Optional<String> title() {
    return run.notebook().cells().stream()
        .filter(NotebookCell::isMarkdown)
        .flatMap(cell -> Markdown.heading(cell.source()).stream())
        .findFirst();
  }

  Optional<Manifest> manifest() {
    return run.manifest();
  }

  /// Returns a sentence with what each study found.
  String findings() {
    return manifest().map(Manifest::measured).orElse(List.of()).stream()
        .filter(Manifest.Measured::isStudy)
        .map(
            study ->
                "<p class=\"finding\">%s <a href=\"#%s\">%s</a></p>\n"
                    .formatted(Escape.html(study.headline()), id, Escape.html(study.problem())))
        .collect(Collectors.joining());
  }

  private String badge() {
    if (!run.wasRun() && run.result().trouble().isPresent()) {
      return "<span class=\"badge pending\">not run</span>";
    }
    return switch (run.exitCode()) {
      case OK ->
          "<span class=\"badge ok\">%s</span>".formatted(run.checked() ? "as recorded" : "ok");
      case DIFFERENT -> "<span class=\"badge different\">differs</span>";
      case TIMEOUT -> "<span class=\"badge failed\">time limit</span>";
      case RANK_DIED -> "<span class=\"badge failed\">rank died</span>";
      case VERIFICATION_FAILED -> "<span class=\"badge failed\">wrong result</span>";
      default -> "<span class=\"badge failed\">failed</span>";
    };
  }

  /// Returns the notebook, its headings and its cells for the list of contents.
  ///
  /// @param open whether its cells are unfolded; a failed notebook always is
  String contents(boolean open) {
    var html = new StringBuilder();
    html.append(
        "<details%s><summary><a href=\"#%s\">%s</a> %s %s<span class=\"time\">%s</span></summary>\n<ol class=\"cells\">\n"
            .formatted(
                open || !failures().isEmpty() ? " open" : "",
                id,
                name(),
                badge(),
                open
                    ? ""
                    : "<span class=\"quiet\">%s</span>"
                        .formatted(title().map(Escape::html).orElse("")),
                CellSection.time(run.result().elapsed())));
    for (var cell : run.notebook().cells()) {
      if (cell.isCode()) {
        html.append(Objects.requireNonNull(cells.get(cell)).entry());
      } else if (cell.isMarkdown()) {
        Markdown.heading(cell.source())
            .map(heading -> "<li class=\"heading\">%s</li>\n".formatted(Escape.html(heading)))
            .ifPresent(html::append);
      }
    }
    return html.append("</ol></details>\n").toString();
  }

  String html() {
    var result = run.result();
    var html = new StringBuilder();
    html.append("<article id=\"%s\">\n<h2>%s %s</h2>\n".formatted(id, name(), badge()));
    html.append("<p class=\"quiet\">");
    long pending = result.count(Status.PENDING);
    long skipped = result.count(Status.SKIPPED);
    html.append(
        "%d of %s ran in %s"
            .formatted(
                result.cells().size() - pending - skipped,
                Counted.of(result.cells().size(), "cell"),
                CellSection.time(result.elapsed())));
    if (result.trouble().isEmpty()) {
      html.append("; saved as ").append(Escape.html(result.output().toString()));
    }
    html.append("</p>\n");
    result
        .trouble()
        .ifPresent(why -> html.append("<p class=\"reason\">" + Escape.html(why) + "</p>\n"));
    html.append(parameters(run.notebook()));
    for (var cell : run.notebook().cells()) {
      var code = cells.get(cell);
      if (code != null) {
        html.append(code.html());
      } else if (cell.isMarkdown()) {
        html.append("<div class=\"markdown\">\n")
            .append(Markdown.html(cell.source(), cell.attachments(), folder()))
            .append("</div>\n");
      }
    }
    return html.append("</article>\n").toString();
  }

  /// Returns the given parameters. Defaults are in the notebook's own cell.
  private static String parameters(Notebook notebook) {
    if (!(notebook.papermill().get("parameters") instanceof JsonObject given) || given.isEmpty()) {
      return "";
    }
    var html = new StringBuilder("<table class=\"facts\"><caption>Parameters</caption><tbody>\n");
    given
        .entrySet()
        .forEach(
            e ->
                html.append(
                    "<tr><th>%s</th><td>%s</td></tr>\n"
                        .formatted(Escape.html(e.getKey()), Escape.html("" + e.getValue()))));
    return html.append("</tbody></table>\n").toString();
  }
}
