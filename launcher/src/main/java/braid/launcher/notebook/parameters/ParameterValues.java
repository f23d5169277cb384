package braid.launcher.notebook.parameters;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import com.google.gson.JsonObject;

/// Parameters of a notebook for a run: the type of each, its value as Java source, and whether the
/// value was given or is the notebook's default.
public final class ParameterValues {
  private ParameterValues() {}

  public static JsonObject of(Notebook notebook) {
    var values = new JsonObject();
    put(notebook, NotebookCell.PARAMETERS, values);
    put(notebook, NotebookCell.INJECTED_PARAMETERS, values);
    return values;
  }

  private static void put(Notebook notebook, String tag, JsonObject values) {
    for (var cell : notebook.cells()) {
      if (cell.isCode() && cell.hasTag(tag)) {
        boolean given = tag.equals(NotebookCell.INJECTED_PARAMETERS);
        Declarations.described(cell.source())
            .forEach(
                (name, declared) -> {
                  // without an initializer there is no value
                  if (!declared.value().isEmpty()) {
                    var value = new JsonObject();
                    value.addProperty("type", declared.type().source());
                    value.addProperty("value", declared.value());
                    value.addProperty("given", given);
                    values.add(name, value);
                  }
                });
      }
    }
  }
}
