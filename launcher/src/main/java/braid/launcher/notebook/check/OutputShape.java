package braid.launcher.notebook.check;

import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/// What kinds of output a cell has, without anything that another run or machine may have
/// otherwise: no number, no text, no order of what is printed to two streams at once. Displays of
/// progress are left out, because they depend on how long the work takes.
///
/// @param streams stdout, stderr or both
/// @param displays the MIME types of each display, in order
/// @param results those of the result; none where there is no result
/// @param errors the class of the failure; none where it succeeded
/// @param tables the columns of each table, in order
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

  private void add(JsonObject output) {
    if (output.get("data") instanceof JsonObject data && data.has(MimeBundle.PROGRESS)) {
      return;
    }
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
    heads.forEach(head -> tables.add(String.join(", ", head)));
  }

  private static String kinds(JsonObject output) {
    return output.get("data") instanceof JsonObject data
        ? String.join(" + ", new TreeSet<>(data.keySet()))
        : "nothing";
  }

  /// nbformat has text as one text or as a list of lines.
  private static String text(JsonElement element) {
    return switch (element) {
      case null -> "";
      case JsonArray lines ->
          lines.asList().stream().map(OutputShape::text).collect(Collectors.joining());
      default -> element.isJsonPrimitive() ? element.getAsString() : element.toString();
    };
  }

  /// How another shape differs from this one, the expected one.
  List<Difference> differences(String cell, OutputShape got) {
    var found = new ArrayList<Difference>();
    if (!errors.equals(got.errors)) {
      found.add(new Difference(cell, "failure", outcome(errors), outcome(got.errors)));
      if (!got.errors.isEmpty()) {
        return found; // what it no longer came to show follows from that
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
      String cell, String what, List<String> expected, List<String> got, List<Difference> found) {
    for (int i = 0; i < Math.min(expected.size(), got.size()); i++) {
      if (!expected.get(i).equals(got.get(i))) {
        var number = expected.size() == 1 ? "" : " " + (i + 1);
        found.add(new Difference(cell, what + number, expected.get(i), got.get(i)));
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
