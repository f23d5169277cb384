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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// Report files of a run, written however it ends.
public final class RunReports {
  private final Optional<Path> junit;
  private final Optional<Path> html;
  private final Optional<Path> summary;
  private final SequencedMap<String, Path> written = new LinkedHashMap<>();

  private RunReports(Optional<Path> junit, Optional<Path> html, Optional<Path> summary) {
    this.junit = junit;
    this.html = html;
    this.summary = summary;
  }

  /// @throws BraidException if one cannot be written, or would replace another file of the run
  public static RunReports to(
      @Nullable Path junit, @Nullable Path html, @Nullable Path summary, RunInputs inputs) {
    var taken = new LinkedHashMap<Path, String>();
    for (var input : inputs.all()) {
      taken.put(absolute(Path.of(input.notebook().name())), "the notebook");
      input.saved().ifPresent(saved -> taken.put(absolute(saved), "the output notebook"));
    }
    return new RunReports(
        own("--junit", junit, taken),
        own("--report", html, taken),
        own("--summary", summary, taken));
  }

  private static Optional<Path> own(String option, @Nullable Path file, Map<Path, String> taken) {
    if (file == null) {
      return Optional.empty();
    }
    var writable = OutputFile.writable(option, file);
    var owner = taken.putIfAbsent(absolute(writable), "the file of " + option);
    if (owner != null) {
      throw new BraidException(
          "%s must be a file of its own but %s is %s too; name another"
              .formatted(option, file, owner));
    }
    return Optional.of(writable);
  }

  private static Path absolute(Path file) {
    return file.toAbsolutePath().normalize();
  }

  private interface Writing {
    void to(Path file) throws IOException;
  }

  /// Writes all reports that it can, and prints why the others failed.
  ///
  /// @return true if all are written
  private boolean write(List<NotebookRun> runs, Facts facts, PrintWriter err) {
    boolean first = write("junit", junit, file -> JUnitReport.write(runs, facts, file), err);
    boolean second = write("report", html, file -> HtmlReport.write(runs, facts, file), err);
    boolean third =
        write("summary", summary, file -> MarkdownSummary.write(runs, facts, file), err);
    return first && second && third;
  }

  /// Writes reports of an unfinished run into regular files. Errors are reported at the end, when
  /// the files are written again.
  private void writeUnfinished(List<NotebookRun> runs, Facts facts) {
    writeUnfinished(junit, file -> JUnitReport.write(runs, facts, file));
    writeUnfinished(html, file -> HtmlReport.write(runs, facts, file));
    writeUnfinished(summary, file -> MarkdownSummary.write(runs, facts, file));
  }

  private static void writeUnfinished(Optional<Path> file, Writing writing) {
    if (file.isPresent() && (Files.notExists(file.get()) || Files.isRegularFile(file.get()))) {
      try {
        writing.to(file.get());
      } catch (IOException e) {
        // Reported at the end.
      }
    }
  }

  private boolean write(String report, Optional<Path> file, Writing writing, PrintWriter err) {
    if (file.isEmpty()) {
      return true;
    }
    try {
      writing.to(file.get());
      written.put(report, file.get());
      return true;
    } catch (IOException e) {
      err.println(
          "braid: --%s %s could not be written (%s); is its directory still there, and is there room?"
              .formatted(report, file.get(), e.getClass().getSimpleName()));
      err.flush();
      return false;
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
        new RunSummary(runs, options).print(out, RunReports.this, kept);
        var worst = ExitCode.worst(runs.stream().map(NotebookRun::exitCode).toList());
        return (worst == ExitCode.OK && !all ? ExitCode.CELL_FAILED : worst).code();
      }
    };
  }

  /// Returns the files that were written, by the names of their options.
  SequencedMap<String, Path> written() {
    return written;
  }
}
