package braid.launcher.notebook;

import braid.internal.json.RecordJson;
import braid.launcher.InputFile;
import braid.model.BraidException;
import braid.natives.WholeFile;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// A notebook of nbformat 4. Unknown content is preserved everywhere.
public final class Notebook {
  /// First minor version whose cells have ids.
  private static final int MINOR_WITH_CELL_IDS = 5;

  private static final int MOST_MEBIBYTES = 256;

  private final String name;
  private final JsonObject document;
  private final List<NotebookCell> cells = new ArrayList<>();

  private Notebook(String name, JsonObject document) {
    this.name = name;
    this.document = document;
    require(document.get("nbformat"), "nbformat", "the number 4", Notebook::isNumber);
    require(document.get("nbformat_minor"), "nbformat_minor", "a number", Notebook::isNumber);
    requireNbformat4();
    require(document.get("metadata"), "metadata", "an object", JsonElement::isJsonObject);
    require(document.get("cells"), "cells", "a list", JsonElement::isJsonArray);
    var elements = document.getAsJsonArray("cells");
    for (int i = 0; i < elements.size(); i++) {
      var place = "cells[" + i + "]";
      require(elements.get(i), place, "an object", JsonElement::isJsonObject);
      cells.add(new NotebookCell(this, place, elements.get(i).getAsJsonObject()));
    }
  }

  /// @throws BraidException if the file does not exist or is not a notebook of nbformat 4
  public static Notebook read(Path file) {
    try {
      return parse(InputFile.read(file, MOST_MEBIBYTES), file.toString());
    } catch (NoSuchFileException e) {
      throw new BraidException(
          "notebook must be a file but " + file + " does not exist; check the path", e);
    } catch (CharacterCodingException e) {
      throw new BraidException(
          file + " must be UTF-8 text but is not; save it from Jupyter, which writes UTF-8", e);
    } catch (IOException e) {
      throw new BraidException(
          "notebook must be a file but " + file + " " + InputFile.reason(e) + "; check the path",
          e);
    }
  }

  /// Parses a notebook; `name` identifies it in messages.
  public static Notebook parse(String json, String name) {
    if (json.isBlank()) {
      throw new BraidException(name + " must hold a notebook but is empty; save it from Jupyter");
    }
    var document = RecordJson.parse(name, json);
    if (!document.isJsonObject()) {
      throw new BraidException(
          name
              + " must hold one JSON object but holds "
              + NotebookCell.kind(document)
              + "; use a notebook saved by Jupyter");
    }
    return new Notebook(name, document.getAsJsonObject());
  }

  private void requireNbformat4() {
    var version = document.get("nbformat").getAsString();
    if (!version.equals("4")) {
      var remedy =
          version.equals("3") || version.equals("2")
              ? "convert it: jupyter nbconvert --to notebook --nbformat 4 " + name
              : "save it as nbformat 4";
      throw new BraidException(name + ": nbformat must be 4 but was " + version + "; " + remedy);
    }
  }

  void require(
      @Nullable JsonElement element, String place, String expected, Predicate<JsonElement> rule) {
    if (element == null || !rule.test(element)) {
      throw new BraidException(
          "%s: %s must be %s but %s; correct it, or save the notebook from Jupyter"
              .formatted(
                  name,
                  place,
                  expected,
                  element == null ? "is missing" : "was " + NotebookCell.kind(element)));
    }
  }

  private static boolean isNumber(JsonElement element) {
    return element.isJsonPrimitive() && element.getAsJsonPrimitive().isNumber();
  }

  public String name() {
    return name;
  }

  /// All cells, in order.
  public List<NotebookCell> cells() {
    return List.copyOf(cells);
  }

  /// Code cells that are not blank, in order.
  public List<NotebookCell> codeCells() {
    return cells.stream().filter(cell -> cell.isCode() && !cell.source().isBlank()).toList();
  }

  public JsonObject metadata() {
    return document.getAsJsonObject("metadata");
  }

  /// papermill's section of the metadata, created if missing.
  public JsonObject papermill() {
    return NotebookCell.section(metadata(), NotebookCell.PAPERMILL);
  }

  /// Language of the notebook, by its kernelspec or else its language_info; empty if neither names
  /// one, as in a notebook that no kernel has opened.
  public Optional<String> language() {
    var kernel = kernelName().orElse("").toLowerCase(Locale.ROOT);
    if (kernel.startsWith("braid")) {
      return Optional.of("java");
    }
    return text("kernelspec", "language")
        .or(() -> text("language_info", "name"))
        .or(() -> kernelName().filter(k -> !kernel.contains("java")))
        .map(language -> language.toLowerCase(Locale.ROOT));
  }

  private Optional<String> kernelName() {
    return text("kernelspec", "name");
  }

  private Optional<String> text(String section, String key) {
    if (metadata().get(section) instanceof JsonObject object
        && object.get(key) instanceof JsonPrimitive value) {
      return Optional.of(value.getAsString());
    }
    return Optional.empty();
  }

  /// @throws BraidException if it has another language, which the message names
  public void requireJava() {
    var language = language().orElse("java");
    if (!language.equals("java") && !language.equals("braid")) {
      throw new BraidException(
          "%s: language must be java but was %s%s; choose the Braid kernel in Jupyter and save it"
              .formatted(name, language, kernelName().map(k -> " (kernel " + k + ")").orElse("")));
    }
  }

  /// Inserts a new code cell at `index`.
  NotebookCell insertCode(int index, String source, String id) {
    var cell = new JsonObject();
    cell.addProperty("cell_type", "code");
    cell.add("execution_count", JsonNull.INSTANCE);
    cell.add("outputs", new JsonArray());
    return insert(index, cell, source, id);
  }

  /// Removes the Markdown cells with a tag.
  public void withoutRemark(String tag) {
    if (cells.removeIf(cell -> cell.isMarkdown() && cell.hasTag(tag))) {
      store();
    }
  }

  /// Sets the text of the Markdown cell with a tag, which is added after the title if there is
  /// none.
  public void remark(String tag, String text) {
    var tagged = cells.stream().filter(cell -> cell.isMarkdown() && cell.hasTag(tag)).findFirst();
    if (tagged.isPresent()) {
      tagged.get().source(text);
      return;
    }
    var cell = new JsonObject();
    cell.addProperty("cell_type", "markdown");
    boolean titled = !cells.isEmpty() && cells.getFirst().isMarkdown();
    var tags = new JsonArray();
    tags.add(tag);
    insert(titled ? 1 : 0, cell, text, tag).metadata().add("tags", tags);
  }

  private NotebookCell insert(int index, JsonObject cell, String source, String id) {
    cell.add("metadata", new JsonObject());
    cell.addProperty("source", source);
    if (document.get("nbformat_minor").getAsInt() >= MINOR_WITH_CELL_IDS) {
      cell.addProperty("id", unusedId(id));
    }
    var added = new NotebookCell(this, "cells[" + index + "]", cell);
    added.source(source);
    cells.add(index, added);
    store();
    return added;
  }

  private void store() {
    var elements = new JsonArray();
    cells.forEach(cell -> elements.add(cell.json()));
    document.add("cells", elements);
  }

  private String unusedId(String wanted) {
    var used = cells.stream().map(NotebookCell::id).flatMap(Optional::stream).toList();
    var id = wanted;
    for (int i = 2; used.contains(id); i++) {
      id = wanted + "-" + i;
    }
    return id;
  }

  public String toJson() {
    return NotebookJson.write(document);
  }

  /// Saves the notebook atomically.
  public void write(Path file) throws IOException {
    WholeFile.write(file, toJson());
  }
}
