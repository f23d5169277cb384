package braid.launcher.notebook.check;

import braid.launcher.ExitCode;
import braid.launcher.experiment.Manifest;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.CellResult.Status;
import braid.launcher.notebook.run.RunResult;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Optional;

/// A notebook after its run: the result, and the differences from its recording.
///
/// @param checked true if it was compared with a recording
public record NotebookRun(
    Notebook notebook, RunResult result, boolean checked, List<Difference> differences) {
  public NotebookRun {
    differences = List.copyOf(differences);
  }

  public static NotebookRun unchecked(Notebook notebook, RunResult result) {
    return new NotebookRun(notebook, result, false, List.of());
  }

  public static NotebookRun checked(Notebook notebook, RunResult result, Recording recording) {
    return new NotebookRun(notebook, result, true, recording.differences(notebook, result));
  }

  /// Returns this run with something that failed after its last cell.
  public NotebookRun troubled(String trouble) {
    return unchecked(
        notebook,
        new RunResult(
            result.notebook(),
            result.output(),
            result.cells(),
            ExitCode.CELL_FAILED,
            result.elapsed(),
            Optional.of(trouble)));
  }

  public List<Difference> differences(CellResult cell) {
    return differences.stream().filter(d -> d.cell().equals(cell.name())).toList();
  }

  /// Returns true if a checked notebook failed exactly as recorded.
  public boolean failsAsRecorded() {
    return checked
        && result.trouble().isEmpty()
        && result.failed().map(cell -> differences(cell).isEmpty()).orElse(false);
  }

  /// Returns the manifest that the run left in the notebook; empty if it did not start.
  public Optional<Manifest> manifest() {
    return notebook.metadata().get("braid") instanceof JsonObject json && json.has("id")
        ? Optional.of(new Manifest(json))
        : Optional.empty();
  }

  /// Returns true if any cell was run.
  public boolean wasRun() {
    return result.cells().stream()
        .anyMatch(cell -> cell.status() != Status.PENDING && cell.status() != Status.SKIPPED);
  }

  public ExitCode exitCode() {
    var own = failsAsRecorded() ? ExitCode.OK : result.exitCode();
    return own == ExitCode.OK && !differences.isEmpty() ? ExitCode.DIFFERENT : own;
  }
}
