package braid.launcher.cli.run;

import braid.internal.report.value.Caveats;
import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Manifest.Measured;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.CellResult.Status;
import braid.launcher.notebook.run.RunResult;
import braid.launcher.session.SessionOptions;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// The results of a run and its cells as text.
public record RunSummary(List<NotebookRun> runs, SessionOptions options) {
  /// Profiles whose results are printed; of a notebook with studies none are.
  private static final int MOST_PROFILES = 4;

  /// Prints a line for each notebook and its output file, the total, and the other files.
  ///
  /// @param reports report files by the names of their options
  void print(PrintWriter out, Map<String, Path> reports, List<Experiment> kept) {
    for (var run : runs) {
      out.println(line(run, options.ranks()));
      if (run.result().trouble().isEmpty()) {
        out.println("saved   " + run.result().output());
      }
    }
    if (runs.size() > 1) {
      out.println(total());
    }
    out.println("backend " + options.backend());
    if (options.backend().sharesGpus()) {
      out.println("times   " + Caveats.SHARED);
    }
    reports.forEach((what, file) -> out.println("%-7s %s".formatted(what, file)));
    kept.stream().filter(Experiment::hasBegun).forEach(run -> print(out, run));
    out.flush();
  }

  /// Prints the results of its studies, or of its newest profiles, and the folder with all
  /// measurements.
  private void print(PrintWriter out, Experiment run) {
    var measured = run.manifest().measured();
    var studies = measured.stream().filter(Measured::isStudy).toList();
    var answers =
        studies.isEmpty()
            ? measured.subList(Math.max(0, measured.size() - MOST_PROFILES), measured.size())
            : studies;
    answers.forEach(answer -> out.println("found   " + answer.answer()));
    options.untilDecided().ifPresent(limit -> out.println("decided " + decided(studies, limit)));
    var held = new ArrayList<String>();
    if (!studies.isEmpty()) {
      held.add(Counted.of(studies.size(), "study", "studies"));
    }
    if (measured.size() > studies.size()) {
      held.add(Counted.of(measured.size() - studies.size(), "profile"));
    }
    out.println(
        "run     "
            + run.directory()
            + (held.isEmpty() ? "" : " (" + String.join(", ", held) + ")"));
  }

  /// Returns, for example, "1 of 2 studies; undecided after the 600 s of --until-decided: m 64".
  static String decided(List<Measured> studies, Duration limit) {
    var undecided = studies.stream().filter(study -> !study.decided()).toList();
    var line =
        "%d of %s"
            .formatted(
                studies.size() - undecided.size(), Counted.of(studies.size(), "study", "studies"));
    return undecided.isEmpty()
        ? line
        : "%s; undecided after the %d s of --until-decided: %s"
            .formatted(
                line,
                limit.toSeconds(),
                String.join("; ", undecided.stream().map(Measured::problem).toList()));
  }

  /// Returns, for example, "3 notebooks: 2 in order, 1 failed; 17 cells in 41.2 s".
  private String total() {
    long order = runs.stream().filter(r -> r.wasRun() && r.exitCode() == ExitCode.OK).count();
    long failed = runs.stream().filter(r -> r.wasRun() && r.exitCode() != ExitCode.OK).count();
    long notRun = runs.size() - order - failed;
    long cells =
        runs.stream()
            .mapToLong(
                run ->
                    run.result().cells().size()
                        - run.result().count(Status.SKIPPED)
                        - run.result().count(Status.PENDING))
            .sum();
    var time =
        runs.stream().map(run -> run.result().elapsed()).reduce(Duration.ZERO, Duration::plus);
    return "%s: %d in order%s%s; %s in %s"
        .formatted(
            Counted.of(runs.size(), "notebook"),
            order,
            failed == 0 ? "" : ", " + failed + " failed",
            notRun == 0 ? "" : ", " + notRun + " not run",
            Counted.of(cells, "cell"),
            time(time));
  }

  private static String line(NotebookRun run, int ranks) {
    var line = line(run.result(), ranks);
    if (!run.wasRun()) {
      return run.result().notebook() + ": " + run.result().trouble().orElse("nothing to run");
    }
    if (run.result().trouble().isPresent()) {
      return line + ", not saved";
    }
    if (!run.checked()) {
      return line;
    }
    return line
        + (run.differences().isEmpty()
            ? ", as recorded"
            : ", " + Counted.of(run.differences().size(), "difference") + " from its record");
  }

  /// Returns, for example, "tune.ipynb: 3 of 9 cells ran on 4 ranks in 1.2 s, cell 3 failed, 6 not
  /// run".
  static String line(RunResult result, int ranks) {
    long all = result.cells().size() - result.count(Status.SKIPPED);
    long ran = all - result.count(Status.PENDING);
    var parts = new ArrayList<String>();
    parts.add(
        "%s: %s ran on %s in %s"
            .formatted(
                result.notebook(),
                ran == all ? Counted.of(all, "cell") : ran + " of " + Counted.of(all, "cell"),
                Counted.of(ranks, "rank"),
                time(result.elapsed())));
    result.failed().ifPresent(cell -> parts.add(cell.name() + " failed"));
    if (result.count(Status.PENDING) > 0) {
      parts.add(result.count(Status.PENDING) + " not run");
    }
    if (result.count(Status.SKIPPED) > 0) {
      parts.add(result.count(Status.SKIPPED) + " skipped");
    }
    return String.join(", ", parts);
  }

  /// Returns the output and the error of a failed cell.
  static List<String> failure(CellResult cell) {
    var lines = new ArrayList<String>();
    lines.add("braid: " + cell.name() + " failed: " + cell.firstLine());
    cell.printed().lines().forEach(line -> lines.add("  | " + line));
    cell.failure()
        .ifPresent(failure -> failure.traceback().forEach(line -> lines.add("  " + line)));
    return lines;
  }

  /// Returns, for example, "41.2 s" or "2:05 min".
  public static String time(Duration duration) {
    double seconds = duration.toNanos() / 1e9;
    return seconds < 60
        ? String.format(Locale.ROOT, "%.1f s", seconds)
        : "%d:%02d min".formatted(duration.toMinutes(), duration.toSecondsPart());
  }
}
