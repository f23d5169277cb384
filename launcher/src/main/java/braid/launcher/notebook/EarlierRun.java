package braid.launcher.notebook;

import braid.model.BraidException;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.file.Path;
import java.util.Optional;

/// Metadata of the run that saved a notebook.
public final class EarlierRun {
  private EarlierRun() {}

  /// Refuses the output notebook of a failed or interrupted run: its session is gone, so it cannot
  /// be resumed, and run from the top it would pass for the original, which may have been fixed
  /// since. The output of a complete run may be run again.
  ///
  /// @throws BraidException if the run that saved it did not complete
  public static void requireWhole(Notebook notebook) {
    if (!(notebook.metadata().get(NotebookCell.PAPERMILL) instanceof JsonObject record)) {
      return;
    }
    var unfinished =
        notebook.codeCells().stream()
            .filter(cell -> status(cell).matches("failed|pending|running"))
            .findFirst();
    boolean failed = record.get("exception") instanceof JsonPrimitive p && p.getAsBoolean();
    if (!failed && unfinished.isEmpty()) {
      return;
    }
    var original = text(record, "input_path").orElse("the notebook that was run");
    throw new BraidException(
        "%s must be a notebook or the output of a complete run but is the output of a run of %s that %s%s; it cannot be resumed: run the original again, braid run %s%s"
            .formatted(
                notebook.name(),
                original,
                failed ? "failed" : "was interrupted",
                unfinished.map(cell -> " at \"" + cell.firstLine() + "\"").orElse(""),
                original,
                parameters(record)));
  }

  /// Returns true if a run of this notebook saved the output.
  public static boolean isOutputOf(Notebook output, Path notebook) {
    return output.metadata().get(NotebookCell.PAPERMILL) instanceof JsonObject record
        && text(record, "input_path")
            .map(input -> absolute(Path.of(input)).equals(absolute(notebook)))
            .orElse(false);
  }

  private static Path absolute(Path file) {
    return file.toAbsolutePath().normalize();
  }

  private static String status(NotebookCell cell) {
    return cell.json().get("metadata") instanceof JsonObject metadata
            && metadata.get(NotebookCell.PAPERMILL) instanceof JsonObject record
        ? text(record, "status").orElse("")
        : "";
  }

  private static Optional<String> text(JsonObject object, String key) {
    return object.get(key) instanceof JsonPrimitive value && value.isString()
        ? Optional.of(value.getAsString())
        : Optional.empty();
  }

  /// Returns the run's parameters as an option.
  private static String parameters(JsonObject record) {
    return record.get("parameters") instanceof JsonObject given && !given.isEmpty()
        ? " -y '" + given.toString().replace("'", "'\\''") + "'"
        : "";
  }
}
