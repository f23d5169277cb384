package braid.launcher.notebook;

import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.util.List;

/// Builds notebooks for tests from code.
public final class Notebooks {
  private Notebooks() {}

  /// A code cell and its tags.
  public record Code(String source, List<String> tags) {
    public Code(String source, String... tags) {
      this(source, List.of(tags));
    }
  }

  public static String json(Code... cells) {
    var list = new JsonArray();
    for (var code : cells) {
      var tags = new JsonArray();
      code.tags().forEach(tags::add);
      var metadata = new JsonObject();
      metadata.add("tags", tags);
      var cell = new JsonObject();
      cell.addProperty("cell_type", "code");
      cell.add("execution_count", JsonNull.INSTANCE);
      cell.add("metadata", metadata);
      cell.add("outputs", new JsonArray());
      cell.addProperty("source", code.source());
      list.add(cell);
    }
    var notebook = new JsonObject();
    notebook.add("cells", list);
    notebook.add("metadata", new JsonObject());
    notebook.addProperty("nbformat", 4);
    notebook.addProperty("nbformat_minor", 4);
    return NotebookJson.write(notebook);
  }

  public static Notebook of(Code... cells) {
    return Notebook.parse(json(cells), "test.ipynb");
  }
}
