package braid.launcher.notebook.run;

import braid.launcher.JavaLanguage;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.concurrent.TimeUnit;

/// Metadata of a run in its notebook: papermill's keys, for its readers, the times that Jupyter
/// records, and the kernelspec that opens the result with the Braid kernel.
final class RunRecord {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSSSSxxx").withZone(ZoneOffset.UTC);

  private RunRecord() {}

  private static JsonObject section(JsonObject metadata, String name) {
    if (metadata.get(name) instanceof JsonObject section) {
      return section;
    }
    var section = new JsonObject();
    metadata.add(name, section);
    return section;
  }

  static void notebookStarted(Notebook notebook, Path output, Instant start) {
    var record = notebook.papermill();
    if (!record.has("parameters")) {
      record.add("parameters", new JsonObject());
    }
    record.addProperty("input_path", notebook.name());
    record.addProperty("output_path", output.toString());
    record.addProperty("start_time", TIME.format(start));
    record.add("end_time", JsonNull.INSTANCE);
    record.add("duration", JsonNull.INSTANCE);
    record.add("exception", JsonNull.INSTANCE);
    describeKernel(notebook.metadata());
  }

  static void notebookEnded(Notebook notebook, Instant start, Instant end, boolean failed) {
    ended(notebook.papermill(), start, end, failed);
  }

  private static void ended(JsonObject record, Instant start, Instant end, boolean failed) {
    record.addProperty("end_time", TIME.format(end));
    record.addProperty("duration", seconds(Duration.between(start, end)));
    record.addProperty("exception", failed);
  }

  private static double seconds(Duration duration) {
    return TimeUnit.NANOSECONDS.toMicros(duration.toNanos()) / 1e6;
  }

  static void cellWaits(NotebookCell cell, CellResult.Status status) {
    cell.metadata().remove("execution");
    var record = cell.papermill();
    record.add("start_time", JsonNull.INSTANCE);
    record.add("end_time", JsonNull.INSTANCE);
    record.add("duration", JsonNull.INSTANCE);
    record.add("exception", JsonNull.INSTANCE);
    record.addProperty("status", status.word());
  }

  static void cellStarted(NotebookCell cell, Instant start) {
    var record = cell.papermill();
    record.addProperty("start_time", TIME.format(start));
    record.addProperty("status", "running");
  }

  static void cellEnded(NotebookCell cell, CellResult run, Instant start, Instant end) {
    var record = cell.papermill();
    ended(record, start, end, run.failure().isPresent());
    record.addProperty("status", run.status().word());
    var execution = section(cell.metadata(), "execution");
    execution.addProperty("iopub.status.busy", TIME.format(start));
    execution.addProperty("iopub.execute_input", TIME.format(start));
    execution.addProperty("shell.execute_reply", TIME.format(end));
    execution.addProperty("iopub.status.idle", TIME.format(end));
  }

  private static void describeKernel(JsonObject metadata) {
    var kernel = section(metadata, "kernelspec");
    putIfAbsent(kernel, "name", "braid");
    putIfAbsent(kernel, "display_name", "Braid");
    putIfAbsent(kernel, "language", "java");
    var language = section(metadata, "language_info");
    JavaLanguage.json().asMap().forEach(language::add);
  }

  private static void putIfAbsent(JsonObject object, String key, String value) {
    if (!object.has(key)) {
      object.addProperty(key, value);
    }
  }
}
