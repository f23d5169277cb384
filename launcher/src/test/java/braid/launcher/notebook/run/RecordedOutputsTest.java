package braid.launcher.notebook.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.model.MimeBundle;
import com.google.gson.JsonParser;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class RecordedOutputsTest {
  private final Notebook notebook = Notebooks.of(new Code("1"), new Code("2"));
  private final RecordedOutputs recorded = new RecordedOutputs(new RunProgress() {});
  private final NotebookCell first = notebook.cells().get(0);
  private final NotebookCell second = notebook.cells().get(1);

  private static void is(NotebookCell cell, String outputs) {
    assertThat(cell.outputs()).isEqualTo(JsonParser.parseString(outputs));
  }

  @Test
  void mergesAStreamUntilSomethingElseComes() {
    var shown = recorded.of(first);
    shown.stdout("a");
    shown.stdout("b\nc");
    shown.stderr("e\n");
    shown.stdout("d\n");
    shown.display(MimeBundle.text("x"), "");
    shown.stdout("f\n");
    shown.end();
    is(
        first,
        """
        [{"output_type": "stream", "name": "stdout", "text": ["ab\\n", "c"]},
         {"output_type": "stream", "name": "stderr", "text": ["e\\n"]},
         {"output_type": "stream", "name": "stdout", "text": ["d\\n"]},
         {"output_type": "display_data", "data": {"text/plain": ["x"]}, "metadata": {}},
         {"output_type": "stream", "name": "stdout", "text": ["f\\n"]}]
        """);
    assertThat(shown.printed()).isEqualTo("ab\nce\nd\nf\n");
  }

  @Test
  void anUpdateReachesEveryEarlierOutputOfThatId() {
    var shown = recorded.of(first);
    shown.display(MimeBundle.text("1 of 2"), "bar");
    shown.display(MimeBundle.text("other"), "");
    shown.end();
    var later = recorded.of(second);
    later.display(MimeBundle.text("1 of 2"), "bar");
    later.update(MimeBundle.text("2 of 2"), "bar");
    later.update(MimeBundle.text("of nobody"), "unknown");
    later.end();
    var updated =
        "{\"output_type\": \"display_data\", \"data\": {\"text/plain\": [\"2 of 2\"]}, \"metadata\":"
            + " {}}";
    is(
        first,
        "["
            + updated
            + ", {\"output_type\": \"display_data\", \"data\": {\"text/plain\": [\"other\"]},"
            + " \"metadata\": {}}]");
    is(second, "[" + updated + "]");
  }

  @Test
  void eachKindOfContentIsKeptAsByJupyter() {
    var shown = recorded.of(first);
    shown.display(
        MimeBundle.text("t")
            .with(MimeBundle.HTML, "<b>\n</b>")
            .with(MimeBundle.SVG, "<svg/>")
            .with(MimeBundle.PNG, new byte[] {1, 2})
            .with("application/json", "{\"a\": [1]}"),
        "");
    is(
        first,
        """
        [{"output_type": "display_data", "metadata": {}, "data": {
          "text/plain": ["t"], "text/html": ["<b>\\n", "</b>"], "image/svg+xml": ["<svg/>"],
          "image/png": "AQI=", "application/json": {"a": [1]}}}]
        """);
  }

  @Test
  void contentThatIsNotJsonIsRecordedAsTextAndNamed() {
    var shown = recorded.of(first);
    shown.display(MimeBundle.text("t").with("application/json", "{a: 1}"), "");
    shown.end();
    is(
        first,
        """
        [{"output_type": "stream", "name": "stderr", "text": [
           "application/json content must be JSON but is not: line 1 column 3 ($.): not a JSON value; correct that place\\n"]},
         {"output_type": "display_data", "metadata": {}, "data": {
           "text/plain": ["t"], "application/json": "{a: 1}"}}]
        """);
  }

  @Test
  void outputsAfterTheEndAreDropped() {
    var shown = recorded.of(first);
    shown.end();
    shown.stdout("late");
    shown.display(MimeBundle.text("late"), "id");
    is(first, "[]");
  }

  @Test
  void hasNobodyToAsk() {
    var shown = recorded.of(first);
    assertThatThrownBy(() -> shown.readLine("size? "))
        .isInstanceOf(IOException.class)
        .hasMessage(
            "the cell asked \"size?\" but a headless run has no input; make it a" + " parameter");
  }
}
