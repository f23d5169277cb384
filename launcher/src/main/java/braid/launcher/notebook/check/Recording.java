package braid.launcher.notebook.check;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.run.RunResult;
import braid.model.BraidException;
import com.google.gson.JsonArray;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/// Outputs stored in a notebook, copied before a run replaces them.
public final class Recording {
  private final IdentityHashMap<NotebookCell, JsonArray> outputs = new IdentityHashMap<>();

  private Recording() {}

  /// @throws BraidException if no cell has an output
  public static Recording of(Notebook notebook) {
    var recording = new Recording();
    notebook.codeCells().forEach(cell -> recording.outputs.put(cell, cell.outputs().deepCopy()));
    if (recording.outputs.values().stream().allMatch(JsonArray::isEmpty)) {
      throw new BraidException(
          "--check compares with the outputs stored in the notebook but %s has none; record them: braid run %s -o recorded.ipynb, and keep recorded.ipynb in its place"
              .formatted(notebook.name(), notebook.name()));
    }
    return recording;
  }

  /// Returns the differences of the notebook's current outputs. Cells after an unexpected failure
  /// are ignored; after a recorded failure, cells that were not run are reported.
  public List<Difference> differences(Notebook notebook, RunResult result) {
    var found = new ArrayList<Difference>();
    var notRun = new ArrayList<Difference>();
    var cells = notebook.codeCells();
    for (int i = 0; i < cells.size(); i++) {
      var expected = outputs.get(cells.get(i));
      var run = result.cells().get(i);
      if (expected == null) {
        continue; // the injected parameters of this run
      }
      switch (run.status()) {
        case COMPLETED, FAILED ->
            found.addAll(
                OutputShape.of(expected)
                    .differences(run.name(), OutputShape.of(cells.get(i).outputs())));
        case PENDING -> {
          if (!expected.isEmpty()) {
            notRun.add(new Difference(run.name(), "outputs", "some", "none, it was not run"));
          }
        }
        case SKIPPED -> {}
      }
    }
    if (found.isEmpty() && result.trouble().isEmpty()) {
      found.addAll(notRun);
    }
    return found;
  }
}
