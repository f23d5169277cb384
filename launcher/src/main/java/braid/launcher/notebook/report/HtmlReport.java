package braid.launcher.notebook.report;

import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.check.NotebookRun;
import braid.natives.WholeFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// A run as one HTML page without network access, scripts or other files. Failures come first.
public final class HtmlReport {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss xxx", Locale.ROOT);

  /// Makes the browser run and load nothing, as a second guard behind [SafeHtml].
  private static final String POLICY =
      "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action"
          + " 'none'";

  private final List<NotebookRun> runs;
  private final Facts facts;
  private final List<NotebookSection> sections = new ArrayList<>();

  private HtmlReport(List<NotebookRun> runs, Facts facts) {
    this.runs = runs;
    this.facts = facts;
    for (int i = 0; i < runs.size(); i++) {
      sections.add(new NotebookSection("n" + (i + 1), runs.get(i)));
    }
  }

  public static void write(List<NotebookRun> runs, Facts facts, Path file) throws IOException {
    WholeFile.write(file, html(runs, facts));
  }

  static String html(List<NotebookRun> runs, Facts facts) {
    return new HtmlReport(runs, facts).page();
  }

  private String page() {
    var page = new StringBuilder();
    page.append("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.append("<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n".formatted(POLICY));
    page.append("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.append("<meta name=\"color-scheme\" content=\"light dark\">\n");
    page.append("<title>%s: %s</title>\n".formatted(verdict(), Escape.html(title())));
    page.append("<style>\n").append(style()).append("</style>\n</head>\n<body>\n");
    head(page);
    failures(page);
    page.append("<nav>\n<h2>Contents</h2>\n");
    sections.forEach(section -> page.append(section.contents(runs.size() == 1)));
    page.append("</nav>\n");
    environment(page);
    sections.forEach(section -> page.append(section.html()));
    return page.append("</body>\n</html>\n").toString();
  }

  private void head(StringBuilder page) {
    var time =
        runs.stream().map(run -> run.result().elapsed()).reduce(Duration.ZERO, Duration::plus);
    page.append(
        "<header class=\"banner %s\">\n<h1><span class=\"verdict\">%s</span> %s</h1>\n"
            .formatted(failed() ? "failed" : "ok", verdict(), Escape.html(title())));
    page.append(
        "<p>%s · %s · %s</p>\n"
            .formatted(
                TIME.format(facts.start().atZone(ZoneId.systemDefault())),
                CellSection.time(time),
                Escape.html(counts())));
    sections.forEach(section -> page.append(section.findings()));
    page.append("</header>\n");
  }

  private boolean failed() {
    return runs.stream().anyMatch(run -> run.exitCode() != ExitCode.OK);
  }

  private String verdict() {
    return failed() ? "Failed" : "Passed";
  }

  private String title() {
    return runs.size() == 1
        ? sections.getFirst().title().orElse(runs.getFirst().result().notebook())
        : Counted.of(runs.size(), "notebook");
  }

  private String counts() {
    long cells = runs.stream().mapToLong(run -> run.result().cells().size()).sum();
    long failed = count(CellSection.Mark.FAILED);
    long different = count(CellSection.Mark.DIFFERENT);
    var found = new ArrayList<String>();
    if (runs.size() == 1) {
      found.add(runs.getFirst().result().notebook());
    } else {
      long passed =
          runs.stream().filter(run -> run.wasRun() && run.exitCode() == ExitCode.OK).count();
      found.add("%d of %d notebooks passed".formatted(passed, runs.size()));
    }
    found.add(
        "%s, %s"
            .formatted(
                Counted.of(cells, "cell"), failed == 0 ? "none failed" : failed + " failed"));
    if (different > 0) {
      found.add(different + " different from the recording");
    }
    return String.join(" · ", found);
  }

  private long count(CellSection.Mark mark) {
    return sections.stream()
        .flatMap(section -> section.failures().stream())
        .filter(cell -> cell.mark() == mark)
        .count();
  }

  private void failures(StringBuilder page) {
    var list = new StringBuilder();
    for (var section : sections) {
      section.failures().forEach(cell -> list.append(cell.failure()));
      list.append(section.trouble());
    }
    if (!list.isEmpty()) {
      page.append("<section class=\"failures\">\n<h2>What went wrong</h2>\n<ul>\n")
          .append(list)
          .append("</ul>\n</section>\n");
    }
  }

  private void environment(StringBuilder page) {
    page.append("<section>\n<h2>Run</h2>\n<table class=\"facts\"><tbody>\n");
    page.append(
        "<tr><th>command</th><td><code>%s</code></td></tr>\n"
            .formatted(Escape.html(facts.command())));
    for (var section : sections) {
      section.manifest().ifPresent(manifest -> manifest(page, section, manifest));
    }
    facts.environment().forEach((name, value) -> fact(page, name, value));
    page.append("</tbody></table>\n</section>\n");
  }

  /// Appends the run's id, by which `braid runs` and `braid rerun` find it, and the revision of the
  /// notebook.
  private void manifest(StringBuilder page, NotebookSection section, Manifest manifest) {
    var suffix = runs.size() == 1 ? "" : " of " + section.notebook();
    fact(page, "run" + suffix, manifest.id());
    manifest
        .text("git.revision")
        .ifPresent(
            revision ->
                fact(
                    page,
                    "revision" + suffix,
                    revision
                        + (manifest.text("git.dirty").orElse("").equals("true")
                            ? ", changed"
                            : "")));
  }

  private static void fact(StringBuilder page, String name, String value) {
    page.append(
        "<tr><th>%s</th><td>%s</td></tr>\n".formatted(Escape.html(name), Escape.html(value)));
  }

  private static String style() {
    try (var css = HtmlReport.class.getResourceAsStream("report.css")) {
      if (css == null) {
        throw new IllegalStateException("report.css is not beside " + HtmlReport.class);
      }
      return new String(css.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("report.css cannot be read", e);
    }
  }
}
