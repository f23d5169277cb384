package braid.launcher.notebook.check;

import braid.launcher.Counted;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.run.RunResult;
import braid.model.BraidException;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

/// Outputs stored in a notebook, copied before a run replaces them.
public final class Recording {
  /// Tag of the Markdown cell that names the machine of the recorded outputs.

  private final IdentityHashMap<NotebookCell, JsonArray> outputs = new IdentityHashMap<>();

  private Recording() {}

  /// @throws BraidException if no cell has an output
  public static Recording of(Notebook notebook) {
    var recording = new Recording();
    notebook.codeCells().forEach(cell -> recording.outputs.put(cell, cell.outputs().deepCopy()));
    if (recording.outputs.values().stream().allMatch(JsonArray::isEmpty)) {
      throw new BraidException(
          "--check compares with the outputs stored in the notebook but %s has none; record them: braid run %s --record"
              .formatted(notebook.name(), notebook.name()));
    }
    return recording;
  }

  /// Stores the outputs of a complete run in the file that was run, for pages that show notebooks
  /// and for later comparisons, with a sentence that names the machine. Progress, evidence for
  /// programs and times are left out.
  ///
  /// @param facts the manifest of the run
  /// @throws BraidException if the file was changed during the run
  public static void store(Notebook run, Path file, JsonObject facts) throws IOException {
    var source = Notebook.read(file);
    var cells = source.codeCells();
    var ran = run.codeCells();
    if (!sources(cells).equals(sources(ran))) {
      throw new BraidException(
          "--record stores outputs beside the code that made them but %s was changed during the run; record it again"
              .formatted(file));
    }
    for (int i = 0; i < cells.size(); i++) {
      var outputs = cells.get(i).clearOutputs();
      for (var output : ran.get(i).outputs()) {
        OutputShape.lasting(output.getAsJsonObject()).ifPresent(outputs::add);
      }
      cells.get(i).executionCount(i + 1);
    }
    source.remark(NotebookCell.RECORDED, sentence(facts));
    source.write(file);
  }

  private static List<String> sources(List<NotebookCell> cells) {
    return cells.stream().map(NotebookCell::source).toList();
  }

  private static String sentence(JsonObject facts) {
    var session = facts.getAsJsonObject("session");
    var machine = facts.getAsJsonObject("machine");
    var gpus = facts.getAsJsonObject("gpus");
    var link = session.has("link") ? ", links of " + session.get("link").getAsString() : "";
    var devices =
        gpus.has("driver")
            ? "%s, driver %s"
                .formatted(gpus.get("words").getAsString(), gpus.get("driver").getAsString())
            : "%s, %s"
                .formatted(
                    machine.get("processor").getAsString(),
                    Counted.of(machine.get("cores").getAsInt(), "core"));
    return "*Outputs recorded on %s by Braid %s: %s, %s backend%s; %s.*"
        .formatted(
            LocalDate.now(ZoneOffset.UTC),
            facts.getAsJsonObject("braid").get("version").getAsString(),
            Counted.of(session.get("ranks").getAsInt(), "rank"),
            session.get("backend").getAsString(),
            link,
            devices);
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
