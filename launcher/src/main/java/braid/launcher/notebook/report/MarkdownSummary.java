package braid.launcher.notebook.report;

import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult.Status;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/// A run as a short Markdown page for CI: the verdict, a row per notebook, the headline of each
/// study with links to its charts, and what went wrong. Links are relative to the page.
public final class MarkdownSummary {
  private final Path folder;

  private MarkdownSummary(Path folder) {
    this.folder = folder;
  }

  public static void write(List<NotebookRun> runs, Facts facts, Path file) throws IOException {
    WholeFile.write(
        file, new MarkdownSummary(file.toAbsolutePath().resolveSibling("")).page(runs, facts));
  }

  private String page(List<NotebookRun> runs, Facts facts) throws IOException {
    boolean passed = runs.stream().allMatch(run -> run.exitCode() == ExitCode.OK);
    var time =
        runs.stream().map(run -> run.result().elapsed()).reduce(Duration.ZERO, Duration::plus);
    var lines = new ArrayList<String>();
    lines.add(
        "## %s: %s in %s"
            .formatted(
                passed ? "Passed" : "Failed",
                runs.size() == 1
                    ? text(runs.getFirst().result().notebook())
                    : Counted.of(runs.size(), "notebook"),
                CellSection.time(time)));
    lines.add("");
    lines.add("`" + facts.command().replace('`', '\'') + "`");
    lines.add("");
    lines.add("| notebook | verdict | cells | time | run |");
    lines.add("|---|---|---|---|---|");
    runs.forEach(run -> lines.add(row(run)));
    studies(runs, lines);
    failures(runs, lines);
    lines.add("");
    facts.environment().forEach((name, value) -> lines.add("- " + name + ": " + text(value)));
    return String.join("\n", lines) + "\n";
  }

  private static String row(NotebookRun run) {
    var result = run.result();
    return "| %s | %s | %d of %d | %s | %s |"
        .formatted(
            text(result.notebook()),
            verdict(run),
            result.cells().size() - result.count(Status.PENDING) - result.count(Status.SKIPPED),
            result.cells().size(),
            CellSection.time(result.elapsed()),
            run.manifest().map(Manifest::id).orElse("–"));
  }

  private static String verdict(NotebookRun run) {
    return !run.wasRun() ? "not run" : run.exitCode() == ExitCode.OK ? "passed" : "**failed**";
  }

  private void studies(List<NotebookRun> runs, List<String> lines) throws IOException {
    var rows = new ArrayList<String>();
    for (var run : runs) {
      for (var study : run.manifest().map(Manifest::measured).orElse(List.of())) {
        if (study.isStudy()) {
          rows.add(
              "| %s | %s | %s | %s |"
                  .formatted(
                      text(run.result().notebook()),
                      text(study.problem()),
                      text(study.headline()),
                      charts(run.manifest().orElseThrow(), study.id())));
        }
      }
    }
    if (!rows.isEmpty()) {
      lines.add("");
      lines.add("| notebook | problem | headline | charts |");
      lines.add("|---|---|---|---|");
      lines.addAll(rows);
    }
  }

  /// Returns links to the charts of a study.
  private String charts(Manifest manifest, String study) throws IOException {
    var file = manifest.text("manifest").map(Path::of);
    if (file.isEmpty()) {
      return "–";
    }
    var saved = file.get().toAbsolutePath().resolveSibling(study);
    if (!Files.isDirectory(saved)) {
      return "–";
    }
    try (var files = Files.list(saved)) {
      var links =
          files
              .filter(each -> each.toString().endsWith(".svg"))
              .sorted()
              .map(
                  each ->
                      "[%s](<%s>)"
                          .formatted(
                              String.valueOf(each.getFileName()).replace(".svg", ""),
                              folder.relativize(each)))
              .collect(Collectors.joining(", "));
      return links.isEmpty() ? "–" : links;
    }
  }

  private static void failures(List<NotebookRun> runs, List<String> lines) {
    var all = new ArrayList<String>();
    for (var run : runs) {
      var notebook = text(run.result().notebook());
      run.result()
          .failed()
          .filter(_ -> !run.failsAsRecorded())
          .ifPresent(
              cell ->
                  all.add(
                      "- %s, %s: %s"
                          .formatted(
                              notebook,
                              cell.name(),
                              text(
                                  cell.failure()
                                      .map(why -> why.name() + ": " + why.message())
                                      .orElse("failed")))));
      run.differences()
          .forEach(difference -> all.add("- %s: %s".formatted(notebook, text("" + difference))));
      run.result().trouble().ifPresent(why -> all.add("- %s: %s".formatted(notebook, text(why))));
    }
    if (!all.isEmpty()) {
      lines.add("");
      lines.add("### What went wrong");
      lines.add("");
      lines.addAll(all);
    }
  }

  /// Returns text that Markdown shows as it is, in one line.
  private static String text(String text) {
    return text.strip().replaceAll("\\s+", " ").replaceAll("([\\\\`*_\\[\\]<>|#])", "\\\\$1");
  }
}
