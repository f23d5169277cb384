package braid.launcher.notebook;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;

/// One cell of a notebook, and the part of its JSON that Braid reads or changes.
public final class NotebookCell {
  /// Tag of the cell that names the machine of stored outputs.
  public static final String RECORDED = "recorded";

  /// Tag of a cell that is not run and not changed.
  public static final String SKIP_EXECUTION = "skip-execution";

  /// Tag of a cell that may fail without failing the notebook.
  public static final String RAISES_EXCEPTION = "raises-exception";

  public static final String PARAMETERS = "parameters";
  public static final String INJECTED_PARAMETERS = "injected-parameters";

  static final String PAPERMILL = "papermill";

  private final JsonObject json;

  NotebookCell(Notebook notebook, String place, JsonObject json) {
    this.json = json;
    notebook.require(
        json.get("cell_type"),
        place + ".cell_type",
        "code, markdown or raw",
        NotebookCell::isKnownType);
    notebook.require(
        json.get("source"), place + ".source", "text or a list of texts", NotebookCell::isText);
    optional(notebook, place, "metadata", "an object", JsonElement::isJsonObject);
    optional(notebook, place, "outputs", "a list", JsonElement::isJsonArray);
    if (json.get("metadata") instanceof JsonObject metadata && metadata.has("tags")) {
      notebook.require(
          metadata.get("tags"), place + ".metadata.tags", "a list of texts", NotebookCell::isTags);
    }
  }

  private void optional(
      Notebook notebook, String place, String key, String expected, Predicate<JsonElement> rule) {
    if (json.has(key)) {
      notebook.require(json.get(key), place + "." + key, expected, rule);
    }
  }

  private static boolean isKnownType(JsonElement element) {
    return isString(element) && List.of("code", "markdown", "raw").contains(element.getAsString());
  }

  private static boolean isText(JsonElement element) {
    return isString(element) || isTags(element);
  }

  private static boolean isTags(JsonElement element) {
    return element instanceof JsonArray array
        && StreamSupport.stream(array.spliterator(), false).allMatch(NotebookCell::isString);
  }

  private static boolean isString(JsonElement element) {
    return element instanceof JsonPrimitive primitive && primitive.isString();
  }

  /// Describes a JSON value for a message: short values are shown.
  static String kind(JsonElement element) {
    return switch (element) {
      case JsonObject object -> "an object";
      case JsonArray array -> "a list";
      case JsonNull none -> "null";
      default -> {
        var value = element.toString();
        yield value.length() <= 40 ? value : value.substring(0, 37) + "...";
      }
    };
  }

  public JsonObject json() {
    return json;
  }

  public boolean isCode() {
    return json.get("cell_type").getAsString().equals("code");
  }

  public boolean isMarkdown() {
    return json.get("cell_type").getAsString().equals("markdown");
  }

  public Optional<String> id() {
    return Optional.ofNullable(json.get("id"))
        .filter(NotebookCell::isString)
        .map(JsonElement::getAsString);
  }

  public String source() {
    return json.get("source") instanceof JsonArray lines
        ? StreamSupport.stream(lines.spliterator(), false)
            .map(JsonElement::getAsString)
            .collect(Collectors.joining())
        : json.get("source").getAsString();
  }

  void source(String source) {
    json.add("source", lines(source));
  }

  /// Returns the first line of code, for messages and progress.
  public String firstLine() {
    var lines = source().lines().map(String::strip).filter(line -> !line.isEmpty()).toList();
    return lines.stream()
        .filter(line -> !line.startsWith("//"))
        .findFirst()
        .or(() -> lines.stream().findFirst())
        .orElse("");
  }

  public boolean hasTag(String tag) {
    return json.get("metadata") instanceof JsonObject metadata
        && metadata.get("tags") instanceof JsonArray tags
        && tags.contains(new JsonPrimitive(tag));
  }

  /// The cell's metadata, created if missing.
  public JsonObject metadata() {
    if (!(json.get("metadata") instanceof JsonObject)) {
      json.add("metadata", new JsonObject());
    }
    return json.getAsJsonObject("metadata");
  }

  /// papermill's section of the metadata, created if missing.
  public JsonObject papermill() {
    return section(metadata(), PAPERMILL);
  }

  static JsonObject section(JsonObject metadata, String name) {
    if (!(metadata.get(name) instanceof JsonObject)) {
      metadata.add(name, new JsonObject());
    }
    return metadata.getAsJsonObject(name);
  }

  public void executionCount(int count) {
    json.addProperty("execution_count", count);
  }

  /// Clears the outputs of an earlier run; returns the list for the new outputs.
  public JsonArray clearOutputs() {
    json.add("execution_count", JsonNull.INSTANCE);
    json.add("outputs", new JsonArray());
    return json.getAsJsonArray("outputs");
  }

  /// Images that the cell's Markdown names: name to MIME type to base64.
  public JsonObject attachments() {
    return json.get("attachments") instanceof JsonObject attachments
        ? attachments
        : new JsonObject();
  }

  public JsonArray outputs() {
    return json.get("outputs") instanceof JsonArray outputs ? outputs : new JsonArray();
  }

  /// Returns text as Jupyter saves it: a list of lines with their line ends.
  public static JsonArray lines(String text) {
    var lines = new ArrayList<String>();
    int start = 0;
    while (start < text.length()) {
      int end = text.indexOf('\n', start);
      int next = end < 0 ? text.length() : end + 1;
      lines.add(text.substring(start, next));
      start = next;
    }
    var array = new JsonArray();
    lines.forEach(array::add);
    return array;
  }
}
