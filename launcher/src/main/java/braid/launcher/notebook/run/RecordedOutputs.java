package braid.launcher.notebook.run;

import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cell.DisplayContent;
import braid.launcher.notebook.NotebookCell;
import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Writes the outputs of cells in the format of nbformat: consecutive text of one stream becomes
/// one output, and an update applies to every earlier output with its display id, in any cell.
final class RecordedOutputs {
  /// Longer text is saved as one string, as nbformat allows: as lines, for instance empty ones, it
  /// would take twenty times its size.
  private static final int MAX_LINES_CHARS = 1 << 20;

  private final Map<String, List<JsonObject>> displayed = new HashMap<>();
  private final RunProgress progress;

  RecordedOutputs(RunProgress progress) {
    this.progress = progress;
  }

  /// Outputs of one cell. After `end`, later output is dropped.
  final class OfCell implements CellOutput {
    private final JsonArray outputs;
    private final StringBuilder printed = new StringBuilder();
    private final StringBuilder stream = new StringBuilder();
    private String streamName = "";
    private boolean closed;

    private OfCell(JsonArray outputs) {
      this.outputs = outputs;
    }

    @Override
    public void stdout(String text) {
      print("stdout", text);
    }

    @Override
    public void stderr(String text) {
      print("stderr", text);
    }

    private synchronized void print(String name, String text) {
      if (closed || text.isEmpty()) {
        return;
      }
      if (!streamName.equals(name)) {
        endStream();
        streamName = name;
      }
      stream.append(text);
      printed.append(text);
      progress.cellPrinted(text);
    }

    @Override
    public void notice(String line) {
      progress.cellNoted(line);
    }

    /// Adds the text as one output when its stream ends, so that many small pieces cost no more
    /// than one.
    private void endStream() {
      if (!stream.isEmpty()) {
        var output = output("stream");
        output.addProperty("name", streamName);
        var text = stream.toString();
        output.add(
            "text",
            text.length() > MAX_LINES_CHARS ? new JsonPrimitive(text) : NotebookCell.lines(text));
        outputs.add(output);
      }
      stream.setLength(0);
      streamName = "";
    }

    @Override
    public synchronized void display(MimeBundle bundle, String displayId) {
      if (closed) {
        return;
      }
      var data = data(bundle);
      var output = output("display_data");
      output.add("data", data);
      output.add("metadata", new JsonObject());
      outputs.add(output);
      if (!displayId.isEmpty()) {
        displayed.computeIfAbsent(displayId, id -> new ArrayList<>()).add(output);
      }
      if (!bundle.data().containsKey(MimeBundle.PROGRESS)) {
        log(bundle);
      }
      report(bundle);
    }

    /// Returns the data of a bundle as Jupyter saves it: text as lines, JSON as JSON.
    private JsonObject data(MimeBundle bundle) {
      var display = DisplayContent.of(bundle);
      display.problems().forEach(problem -> print("stderr", problem + "\n"));
      endStream();
      var data = display.data();
      data.asMap()
          .replaceAll(
              (type, content) ->
                  isText(type) ? NotebookCell.lines(content.getAsString()) : content);
      return data;
    }

    /// Progress in words, without its bar.
    private void report(MimeBundle bundle) {
      if (bundle.data().containsKey(MimeBundle.PROGRESS)) {
        progress.cellProgressed(bundle.text().replaceFirst("^\\[[^]]*] ", ""));
      }
    }

    @Override
    public synchronized void update(MimeBundle bundle, String displayId) {
      if (!closed && displayed.containsKey(displayId)) {
        var data = data(bundle);
        displayed.getOrDefault(displayId, List.of()).forEach(output -> output.add("data", data));
        report(bundle);
      }
    }

    @Override
    public String readLine(String prompt) throws IOException {
      throw new IOException(
          "the cell asked \"%s\" but a headless run has no input; make it a parameter"
              .formatted(prompt.strip()));
    }

    private void log(MimeBundle bundle) {
      var text = bundle.text();
      progress.cellPrinted(text.isEmpty() || text.endsWith("\n") ? text : text + "\n");
    }

    synchronized void result(MimeBundle bundle, int executionCount) {
      var data = data(bundle);
      log(bundle);
      var output = output("execute_result");
      output.add("data", data);
      output.addProperty("execution_count", executionCount);
      output.add("metadata", new JsonObject());
      outputs.add(output);
    }

    synchronized void failure(CellFailure failure) {
      endStream();
      var output = output("error");
      output.addProperty("ename", failure.name());
      output.addProperty("evalue", failure.message());
      var traceback = new JsonArray();
      failure.traceback().forEach(traceback::add);
      output.add("traceback", traceback);
      outputs.add(output);
    }

    /// Text of both streams so far.
    synchronized String printed() {
      return printed.toString();
    }

    synchronized void end() {
      endStream();
      closed = true;
    }
  }

  OfCell of(NotebookCell cell) {
    return new OfCell(cell.clearOutputs());
  }

  private static JsonObject output(String type) {
    var output = new JsonObject();
    output.addProperty("output_type", type);
    return output;
  }

  private static boolean isText(String type) {
    return type.startsWith("text/")
        || type.equals(MimeBundle.SVG)
        || type.equals("application/javascript");
  }
}
