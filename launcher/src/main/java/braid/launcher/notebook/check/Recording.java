package braid.launcher.notebook.check;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.run.RunResult;
import braid.model.BraidException;
import com.google.gson.JsonArray;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/// The outputs that a notebook was stored with, taken before a run replaces them.
public final class Recording {
  private final IdentityHashMap<NotebookCell, JsonArray> outputs = new IdentityHashMap<>();

  private Recording() {}

  /// @throws BraidException where no cell has an output
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

  /// How the notebook's outputs of now differ. Cells after one that failed unlike its record say
  /// nothing; after one that failed as recorded they say what was not run.
  public List<Difference> differences(Notebook notebook, RunResult result) {
    var found = new ArrayList<Difference>();
    var notRun = new ArrayList<Difference>();
    var cells = notebook.codeCells();
    for (int i = 0; i < cells.size(); i++) {
      var expected = outputs.get(cells.get(i));
      var run = result.cells().get(i);
      if (expected == null) {
        continue; // the cell that this run's parameters are in
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
