package braid.launcher.notebook.check;

import braid.evidence.Comparison;
import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/// Kinds of a cell's outputs, without anything that may differ in another run or on another
/// machine: numbers, text, and the order of two streams. Progress displays are left out, because
/// they depend on how long the work takes.
///
/// @param streams stdout, stderr or both
/// @param displays MIME types of each display, in order
/// @param results MIME types of the result; empty without a result
/// @param errors class of the failure; empty if the cell succeeded
/// @param tables columns of each table, in order, except those that depend on a verdict
record OutputShape(
    Set<String> streams,
    List<String> displays,
    List<String> results,
    List<String> errors,
    List<String> tables) {
  static OutputShape of(JsonArray outputs) {
    var shape =
        new OutputShape(
            new TreeSet<>(),
            new ArrayList<>(),
            new ArrayList<>(),
            new ArrayList<>(),
            new ArrayList<>());
    for (var element : outputs) {
      if (element instanceof JsonObject output) {
        shape.add(output);
      }
    }
    return shape;
  }

  /// Returns an output as it is recorded: without evidence for programs, which fills files and
  /// which no page shows; empty for progress.
  static Optional<JsonObject> lasting(JsonObject output) {
    if (!(output.get("data") instanceof JsonObject data)) {
      return Optional.of(output);
    }
    if (data.has(MimeBundle.PROGRESS)) {
      return Optional.empty();
    }
    var copy = output.deepCopy();
    copy.getAsJsonObject("data").keySet().removeIf(OutputShape::isEvidence);
    return Optional.of(copy);
  }

  private static boolean isEvidence(String mimeType) {
    return mimeType.startsWith("application/vnd.braid.");
  }

  private void add(JsonObject full) {
    lasting(full).ifPresent(this::addLasting);
  }

  private void addLasting(JsonObject output) {
    switch (text(output.get("output_type"))) {
      case "stream" -> {
        streams.add(text(output.get("name")));
        columns(TableHeads.printed(text(output.get("text"))));
      }
      case "display_data" -> displays.add(kinds(output));
      case "execute_result" -> results.add(kinds(output));
      case "error" -> errors.add(text(output.get("ename")));
      default -> {}
    }
    if (output.get("data") instanceof JsonObject data) {
      columns(
          data.has("text/html")
              ? TableHeads.html(text(data.get("text/html")))
              : TableHeads.printed(text(data.get("text/plain"))));
    }
  }

  private void columns(List<List<String>> heads) {
    for (var head : heads) {
      tables.add(
          head.stream()
              .filter(name -> !Comparison.BESIDE_COLUMNS.contains(name))
              .collect(Collectors.joining(", ")));
    }
  }

  private static String kinds(JsonObject output) {
    return output.get("data") instanceof JsonObject data
        ? String.join(" + ", new TreeSet<>(data.keySet()))
        : "nothing";
  }

  /// Returns the text of an element: nbformat stores a string or a list of lines.
  private static String text(JsonElement element) {
    return switch (element) {
      case null -> "";
      case JsonArray lines ->
          lines.asList().stream().map(OutputShape::text).collect(Collectors.joining());
      default -> element.isJsonPrimitive() ? element.getAsString() : element.toString();
    };
  }

  /// Returns the differences of another shape from this expected one.
  List<Difference> differences(String cell, OutputShape got) {
    var found = new ArrayList<Difference>();
    if (!errors.equals(got.errors)) {
      found.add(new Difference(cell, "failure", outcome(errors), outcome(got.errors)));
      if (!got.errors.isEmpty()) {
        return found; // missing outputs follow from the failure
      }
    }
    if (!streams.equals(got.streams)) {
      found.add(new Difference(cell, "printed text", words(streams), words(got.streams)));
    }
    if (displays.size() != got.displays.size()) {
      found.add(
          new Difference(
              cell, "number of displays", "" + displays.size(), "" + got.displays.size()));
    } else {
      each(cell, "display", displays, got.displays, found);
    }
    if (results.isEmpty() || got.results.isEmpty()) {
      if (results.size() != got.results.size()) {
        found.add(new Difference(cell, "result", words(results), words(got.results)));
      }
    } else {
      each(cell, "result", results, got.results, found);
    }
    if (tables.size() != got.tables.size()) {
      found.add(
          new Difference(cell, "number of tables", "" + tables.size(), "" + got.tables.size()));
    } else {
      each(cell, "columns of table", tables, got.tables, found);
    }
    return found;
  }

  private static void each(
      String cell, String aspect, List<String> expected, List<String> got, List<Difference> found) {
    for (int i = 0; i < Math.min(expected.size(), got.size()); i++) {
      if (!expected.get(i).equals(got.get(i))) {
        var number = expected.size() == 1 ? "" : " " + (i + 1);
        found.add(new Difference(cell, aspect + number, expected.get(i), got.get(i)));
      }
    }
  }

  private static String outcome(List<String> errors) {
    return errors.isEmpty() ? "none" : String.join(", ", errors);
  }

  private static String words(Iterable<String> kinds) {
    var words = String.join(" and ", kinds);
    return words.isEmpty() ? "none" : words;
  }
}
