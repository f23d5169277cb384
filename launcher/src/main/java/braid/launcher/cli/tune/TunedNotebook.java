package braid.launcher.cli.tune;

import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.util.List;

/// The notebook that `braid tune` runs: a title, and a cell for each problem.
final class TunedNotebook {
  private TunedNotebook() {}

  /// @param seconds budget of each problem
  static String json(String title, List<TunedProblem> problems, long seconds) {
    var cells = new JsonArray();
    cells.add(cell("markdown", "title", List.of("# Tuning of " + title)));
    for (int i = 0; i < problems.size(); i++) {
      var code = cell("code", "tune-" + (i + 1), problems.get(i).cell(seconds));
      code.add("execution_count", JsonNull.INSTANCE);
      code.add("outputs", new JsonArray());
      cells.add(code);
    }
    var kernel = new JsonObject();
    kernel.addProperty("display_name", "Braid");
    kernel.addProperty("language", "java");
    kernel.addProperty("name", "braid");
    var metadata = new JsonObject();
    metadata.add("kernelspec", kernel);
    var notebook = new JsonObject();
    notebook.add("cells", cells);
    notebook.add("metadata", metadata);
    notebook.addProperty("nbformat", 4);
    notebook.addProperty("nbformat_minor", 5);
    return notebook.toString();
  }

  private static JsonObject cell(String type, String id, List<String> lines) {
    var cell = new JsonObject();
    cell.addProperty("cell_type", type);
    cell.addProperty("id", id);
    cell.add("metadata", new JsonObject());
    var source = new JsonArray();
    lines.forEach(source::add);
    cell.add("source", source);
    return cell;
  }
}
