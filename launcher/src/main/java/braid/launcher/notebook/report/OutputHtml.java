package braid.launcher.notebook.report;

import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.stream.Collectors;

/// An output of a cell, in the richest form that is safe to pass on.
final class OutputHtml {
  /// Longest text that is shown whole; of a longer one, the beginning and the end.
  static final int MOST_LINES = 1000;

  private static final int LINES_AT_EACH_END = 300;
  private static final int MOST_CHARACTERS_A_LINE = 4000;

  private OutputHtml() {}

  static String of(JsonObject output) {
    return switch (text(output.get("output_type"))) {
      case "stream" -> {
        var name = text(output.get("name"));
        yield "<pre class=\"stream%s\">%s</pre>\n"
            .formatted(name.equals("stderr") ? " stderr" : "", shortened(text(output.get("text"))));
      }
      case "error" ->
          "<pre class=\"error\">%s</pre>\n"
              .formatted(
                  shortened(
                      output.get("traceback") instanceof JsonArray lines && !lines.isEmpty()
                          ? lines.asList().stream()
                              .map(OutputHtml::text)
                              .collect(Collectors.joining("\n"))
                          : text(output.get("ename")) + ": " + text(output.get("evalue"))));
      default -> output.get("data") instanceof JsonObject data ? shown(data) : "";
    };
  }

  private static String shown(JsonObject data) {
    var plain = text(data.get("text/plain"));
    if (data.has("text/html")) {
      return "<div class=\"rich\">" + SafeHtml.of(text(data.get("text/html"))) + "</div>\n";
    }
    if (data.has("image/svg+xml")) {
      return picture(Picture.svg(text(data.get("image/svg+xml"))), plain);
    }
    for (var type : new String[] {"image/png", "image/jpeg", "image/gif"}) {
      if (data.has(type)) {
        return picture(Picture.url(type, text(data.get(type))), plain);
      }
    }
    return data.has(MimeBundle.MARKDOWN)
        ? "<div class=\"rich\">" + Markdown.html(text(data.get(MimeBundle.MARKDOWN))) + "</div>\n"
        : "<pre>%s</pre>\n".formatted(shortened(plain));
  }

  private static String picture(String url, String alt) {
    return "<div class=\"picture\">" + Picture.html(url, alt) + "</div>\n";
  }

  private static String shortened(String text) {
    var lines = text.lines().toList();
    if (lines.size() <= MOST_LINES) {
      return Escape.printed(
          text.length() <= MOST_CHARACTERS_A_LINE
              ? text
              : lines.stream().map(OutputHtml::cut).collect(Collectors.joining("\n")));
    }
    int left = lines.size() - 2 * LINES_AT_EACH_END;
    return lines.stream()
            .limit(LINES_AT_EACH_END)
            .map(line -> Escape.printed(cut(line)))
            .collect(Collectors.joining("\n"))
        + "\n<span class=\"cut\">… %,d lines left out; the output notebook has them …</span>\n"
            .formatted(left)
        + lines.stream()
            .skip((long) LINES_AT_EACH_END + left)
            .map(line -> Escape.printed(cut(line)))
            .collect(Collectors.joining("\n"));
  }

  private static String cut(String line) {
    return line.length() <= MOST_CHARACTERS_A_LINE
        ? line
        : line.substring(0, MOST_CHARACTERS_A_LINE) + " …";
  }

  /// Joins a text that nbformat holds as one string or as a list of lines.
  static String text(JsonElement element) {
    return switch (element) {
      case null -> "";
      case JsonArray lines ->
          lines.asList().stream().map(OutputHtml::text).collect(Collectors.joining());
      default -> element.isJsonPrimitive() ? element.getAsString() : element.toString();
    };
  }
}
