package braid.launcher.notebook;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class NotebookTest {
  @TempDir Path directory;

  private static String resource(String name) throws IOException {
    try (var file = NotebookTest.class.getResourceAsStream(name)) {
      if (file == null) {
        throw new IOException("no resource " + name);
      }
      return new String(file.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private static String topLevel(String members) {
    return "{\"nbformat\": 4, \"nbformat_minor\": 5, \"metadata\": {}, " + members + "}";
  }

  /// Notebook written by nbformat 5.5, with attachments, ids, unknown fields and unusual number
  /// formats.
  @ParameterizedTest
  @ValueSource(strings = {"jupyter-4.2.ipynb", "jupyter-4.5.ipynb"})
  void aNotebookOfJupyterIsWrittenByteForByte(String name) throws IOException {
    var saved = resource(name);
    assertThat(Notebook.parse(saved, name).toJson()).isEqualTo(saved);
  }

  @Test
  void anEndlessFileIsRefused(@TempDir Path folder) throws IOException {
    assertThatThrownBy(() -> Notebook.read(Path.of("/dev/zero")))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "notebook must be a file but /dev/zero is a device or a socket; check the path");
    var large = folder.resolve("large.ipynb");
    try (var file = new RandomAccessFile(large.toFile(), "rw")) {
      file.setLength(8L << 30);
    }
    assertThatThrownBy(() -> Notebook.read(large))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "notebook must be a file but "
                + large
                + " has 8192 MiB, more than 256; check the path");
  }

  @Test
  void aNotebookKeepsEveryCharacterOfUtf8() {
    var json = topLevel("\"cells\": [], \"odd\": \"\\u0001 \\u007f \\ud83d\\ude00\"");
    assertThat(Notebook.parse(json, "odd.ipynb").toJson())
        .contains("\"odd\": \"\\u0001 \u007f \ud83d\ude00\"");
    assertThat(NotebookJson.write(new JsonPrimitive("half \ud83d of one")))
        .isEqualTo("\"half \ufffd of one\"\n");
  }

  @Test
  void aNotebookHasSourceAndTags() throws IOException {
    var notebook = Notebook.parse(resource("jupyter-4.5.ipynb"), "n");
    assertThat(notebook.cells()).hasSize(4);
    var parameters = notebook.cells().get(1);
    assertThat(parameters.isCode()).isTrue();
    assertThat(parameters.source()).isEqualTo("int m = 8192;\nint[] splits = {1, 2, 4};");
    assertThat(parameters.hasTag("parameters")).isTrue();
    assertThat(parameters.hasTag("skip-execution")).isFalse();
    assertThat(parameters.id()).contains("cell-1");
    assertThat(parameters.firstLine()).isEqualTo("int m = 8192;");
  }

  @Test
  void theFirstLineIsCodeWhereThereIsSome() {
    var notebook =
        Notebooks.of(
            new Notebooks.Code("// sizes\n\n  int m = 1;"), new Notebooks.Code("// only a remark"));
    assertThat(notebook.cells().get(0).firstLine()).isEqualTo("int m = 1;");
    assertThat(notebook.cells().get(1).firstLine()).isEqualTo("// only a remark");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{\"cells\": [|n.ipynb must be JSON but is not: line 1 column 12 ($.cells[0]): End of input;"
            + " correct that place",
        "` `|n.ipynb must hold a notebook but is empty; save it from Jupyter",
        "{} {}|n.ipynb must be JSON but is not: line 1 column 5 ($): not a JSON value; correct that place",
        "{\"cells\": [], \"cells\": []}|n.ipynb must be JSON but is not: line 1 column 22 ($.cells):"
            + " field `cells` is given twice; correct that place",
        "{'cells': 1}|n.ipynb must be JSON but is not: line 1 column 3 ($.): not a JSON value;"
            + " correct that place",
        "[]|n.ipynb must hold one JSON object but holds a list; use a notebook saved by Jupyter",
        "{}|n.ipynb: nbformat must be the number 4 but is missing; correct it, or save the notebook"
            + " from Jupyter",
        "{\"nbformat\": \"4\"}|n.ipynb: nbformat must be the number 4 but was \"4\"; correct it, or"
            + " save the notebook from Jupyter",
        "{\"nbformat\": 4}|n.ipynb: nbformat_minor must be a number but is missing; correct it, or"
            + " save the notebook from Jupyter",
        "{\"nbformat\": 3, \"nbformat_minor\": 0}|n.ipynb: nbformat must be 4 but was 3; convert"
            + " it: jupyter nbconvert --to notebook --nbformat 4 n.ipynb",
        "{\"nbformat\": 5, \"nbformat_minor\": 0}|n.ipynb: nbformat must be 4 but was 5; save it as"
            + " nbformat 4",
        "{\"nbformat\": 4, \"nbformat_minor\": 5, \"metadata\": {}}|n.ipynb: cells must be a list"
            + " but is missing; correct it, or save the notebook from Jupyter",
        "{\"nbformat\": 4, \"nbformat_minor\": 5, \"metadata\": []}|n.ipynb: metadata must be an"
            + " object but was a list; correct it, or save the notebook from Jupyter",
      })
  void aWrongDocumentIsExplained(String json, String message) {
    assertThatThrownBy(() -> Notebook.parse(json, "n.ipynb"))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{}|cells must be a list but was an object",
        "[7]|cells[0] must be an object but was 7",
        "[{}]|cells[0].cell_type must be code, markdown or raw but is missing",
        "[{\"cell_type\": \"heading\"}]|cells[0].cell_type must be code, markdown or raw but was"
            + " \"heading\"",
        "[{\"cell_type\": \"code\"}]|cells[0].source must be text or a list of texts but is missing",
        "[{\"cell_type\": \"code\", \"source\": [1]}]|cells[0].source must be text or a list of"
            + " texts but was a list",
        "[{\"cell_type\": \"code\", \"source\": \"\", \"outputs\": {}}]|cells[0].outputs must be a"
            + " list but was an object",
        "[{\"cell_type\": \"code\", \"source\": \"\", \"metadata\": null}]|cells[0].metadata must be"
            + " an object but was null",
        "[{\"cell_type\": \"code\", \"source\": \"\", \"metadata\": {\"tags\":"
            + " \"x\"}}]|cells[0].metadata.tags must be a list of texts but was \"x\"",
      })
  void aWrongCellIsNamed(String cells, String subject) {
    assertThatThrownBy(() -> Notebook.parse(topLevel("\"cells\": " + cells), "n.ipynb"))
        .isInstanceOf(BraidException.class)
        .hasMessage("n.ipynb: " + subject + "; correct it, or save the notebook from Jupyter");
  }

  @Test
  void anUnreadableFileHasItsReason() throws IOException {
    var missing = directory.resolve("missing.ipynb");
    assertThatThrownBy(() -> Notebook.read(missing))
        .isInstanceOf(BraidException.class)
        .hasMessage("notebook must be a file but " + missing + " does not exist; check the path");
    assertThatThrownBy(() -> Notebook.read(directory))
        .isInstanceOf(BraidException.class)
        .hasMessage("notebook must be a file but " + directory + " is a directory; check the path");
    var binary = Files.write(directory.resolve("binary.ipynb"), new byte[] {(byte) 0xff, 0});
    assertThatThrownBy(() -> Notebook.read(binary))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            binary + " must be UTF-8 text but is not; save it from Jupyter, which writes UTF-8");
  }

  private static Notebook withMetadata(String metadata) {
    return Notebook.parse(
        "{\"nbformat\": 4, \"nbformat_minor\": 5, \"cells\": [], \"metadata\": " + metadata + "}",
        "n.ipynb");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{}",
        "{\"kernelspec\": {\"name\": \"braid\"}, \"language_info\": {\"name\": \"python\"}}",
        "{\"kernelspec\": {\"name\": \"braid-8\"}}",
        "{\"kernelspec\": {\"name\": \"jjava\"}}",
        "{\"kernelspec\": {\"name\": \"x\", \"language\": \"Java\"}}",
        "{\"language_info\": {\"name\": \"java\"}}",
      })
  void aNotebookIsInJava(String metadata) {
    withMetadata(metadata).requireJava();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{\"kernelspec\": {\"name\": \"python3\", \"language\": \"python\"}}|python (kernel python3)",
        "{\"kernelspec\": {\"name\": \"python3\"}}|python3 (kernel python3)",
        "{\"language_info\": {\"name\": \"julia\"}}|julia",
      })
  void anotherLanguageIsRefusedByName(String metadata, String language) {
    assertThatThrownBy(() -> withMetadata(metadata).requireJava())
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "n.ipynb: language must be java but was "
                + language
                + "; choose the Braid kernel in Jupyter and save it");
  }

  @Test
  void aSavedNotebookIsWholeAndAlone() throws IOException {
    var file = directory.resolve("out.ipynb");
    var link = Files.createSymbolicLink(directory.resolve("link.ipynb"), file);
    Files.writeString(file, "old");
    Notebooks.of(new Notebooks.Code("1")).write(link);
    assertThat(link).isSymbolicLink();
    assertThat(Notebook.read(file).cells()).hasSize(1);
    try (var files = Files.list(directory)) {
      assertThat(files).containsExactlyInAnyOrder(file, link);
    }
  }

  @Test
  void theOldFileStaysIfTheNewOneCannotBeWritten() throws IOException {
    var notebook = Notebooks.of(new Notebooks.Code("1"));
    var unreachable = directory.resolve("none").resolve("out.ipynb");
    assertThatThrownBy(() -> notebook.write(unreachable)).isInstanceOf(IOException.class);
    try (var files = Files.list(directory)) {
      assertThat(files).isEmpty();
    }
  }
}
