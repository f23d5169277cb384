package braid.launcher.cli.run;

import braid.launcher.ExitCode;
import braid.launcher.OutputFile;
import braid.launcher.experiment.Experiment;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.report.Facts;
import braid.launcher.notebook.report.HtmlReport;
import braid.launcher.notebook.report.JUnitReport;
import braid.launcher.notebook.report.MarkdownSummary;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// Report files of a run, written however it ends.
public final class RunReports {
  private interface Writing {
    void to(List<NotebookRun> runs, Facts facts, Path file) throws IOException;
  }

  /// A report that the user asked for.
  ///
  /// @param name of its option
  private record Report(String name, Path file, Writing writing) {}

  private final List<Report> reports = new ArrayList<>();
  private final Map<Path, String> taken = new LinkedHashMap<>();
  private final SequencedMap<String, Path> written = new LinkedHashMap<>();

  /// @throws BraidException if one cannot be written, or would replace another file of the run
  public RunReports(
      @Nullable Path junit, @Nullable Path html, @Nullable Path summary, RunInputs inputs) {
    for (var input : inputs.all()) {
      taken.put(absolute(Path.of(input.notebook().name())), "the notebook");
      input.saved().ifPresent(saved -> taken.put(absolute(saved), "the output notebook"));
    }
    add("junit", junit, JUnitReport::write);
    add("report", html, HtmlReport::write);
    add("summary", summary, MarkdownSummary::write);
  }

  private void add(String name, @Nullable Path file, Writing writing) {
    if (file == null) {
      return;
    }
    var option = "--" + name;
    var writable = OutputFile.writable(option, file);
    var owner = taken.putIfAbsent(absolute(writable), "the file of " + option);
    if (owner != null) {
      throw new BraidException(
          "%s must be a file of its own but %s is %s too; name another"
              .formatted(option, file, owner));
    }
    reports.add(new Report(name, writable, writing));
  }

  private static Path absolute(Path file) {
    return file.toAbsolutePath().normalize();
  }

  /// Writes all reports that it can, and prints why the others failed.
  ///
  /// @return true if all are written
  private boolean write(List<NotebookRun> runs, Facts facts, PrintWriter err) {
    for (var report : reports) {
      try {
        report.writing.to(runs, facts, report.file);
        written.put(report.name, report.file);
      } catch (IOException e) {
        err.println(
            "braid: --%s %s could not be written (%s); is its directory still there, and is there room?"
                .formatted(report.name, report.file, e.getClass().getSimpleName()));
        err.flush();
      }
    }
    return written.size() == reports.size();
  }

  /// Writes reports of an unfinished run into regular files. Errors are reported at the end, when
  /// the files are written again.
  private void writeUnfinished(List<NotebookRun> runs, Facts facts) {
    for (var report : reports) {
      if (Files.notExists(report.file) || Files.isRegularFile(report.file)) {
        try {
          report.writing.to(runs, facts, report.file);
        } catch (IOException e) {
          // Reported at the end.
        }
      }
    }
  }

  /// Returns the action at the end of all notebooks: writes, prints, and returns the exit code.
  public NotebookQueue.Ending<Integer> ending(Facts facts, PrintWriter out, PrintWriter err) {
    return new NotebookQueue.Ending<>() {
      @Override
      public void unfinished(List<NotebookRun> runs) {
        writeUnfinished(runs, facts);
      }

      @Override
      public Integer of(List<NotebookRun> runs, List<Experiment> kept, SessionOptions options) {
        boolean all = write(runs, facts, err);
        new RunSummary(runs, options).print(out, written, kept);
        var worst = ExitCode.worst(runs.stream().map(NotebookRun::exitCode).toList());
        return (worst == ExitCode.OK && !all ? ExitCode.CELL_FAILED : worst).code();
      }
    };
  }
}
