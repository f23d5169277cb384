package braid.launcher.cli;

import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.CellResult.Status;
import braid.launcher.notebook.run.RunResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// How a run and its cells are put in words.
final class RunSummary {
  private RunSummary() {}

  /// For example "tune.ipynb: 3 of 9 cells ran on 4 ranks in 1.2 s, cell 3 failed, 6 not run".
  static String line(RunResult result, int ranks) {
    long all = result.cells().size() - result.count(Status.SKIPPED);
    long ran = all - result.count(Status.PENDING);
    var parts = new ArrayList<String>();
    parts.add(
        "%s: %s ran on %s in %s"
            .formatted(
                result.notebook(),
                ran == all ? counted(all, "cell") : ran + " of " + counted(all, "cell"),
                counted(ranks, "rank"),
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

  /// What a failed cell printed, and why it failed.
  static List<String> failure(CellResult cell) {
    var lines = new ArrayList<String>();
    lines.add("braid: " + cell.name() + " failed: " + cell.firstLine());
    cell.printed().lines().forEach(line -> lines.add("  | " + line));
    cell.failure()
        .ifPresent(failure -> failure.traceback().forEach(line -> lines.add("  " + line)));
    return lines;
  }

  static String counted(long count, String noun) {
    return count + " " + noun + (count == 1 ? "" : "s");
  }

  static String time(Duration duration) {
    double seconds = duration.toNanos() / 1e9;
    return seconds < 60
        ? String.format(Locale.ROOT, "%.1f s", seconds)
        : "%d:%02d min".formatted(duration.toMinutes(), duration.toSecondsPart());
  }
}
