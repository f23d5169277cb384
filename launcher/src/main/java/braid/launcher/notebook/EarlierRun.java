package braid.launcher.notebook;

import braid.model.BraidException;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.Optional;

/// What the metadata of a notebook say of the run that it was saved by.
public final class EarlierRun {
  private EarlierRun() {}

  /// What a failed or broken-off run left is no notebook to run: a session that stood where it
  /// ended is gone, so there is nothing to go on with, and run from the top it would pass for the
  /// original, which may have been mended since. What a whole run left may be run again.
  ///
  /// @throws BraidException where the run that saved it did not come to its end
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
        "%s must be a notebook or what a whole run left but is what a run of %s left that %s%s; it cannot be resumed: run the original again, braid run %s%s"
            .formatted(
                notebook.name(),
                original,
                failed ? "failed" : "was broken off",
                unfinished.map(cell -> " at \"" + cell.firstLine() + "\"").orElse(""),
                original,
                parameters(record)));
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

  /// The parameters it was run with, as an option.
  private static String parameters(JsonObject record) {
    return record.get("parameters") instanceof JsonObject given && !given.isEmpty()
        ? " -y '" + given.toString().replace("'", "'\\''") + "'"
        : "";
  }
}
