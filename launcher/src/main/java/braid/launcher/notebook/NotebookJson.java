package braid.launcher.notebook;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.TreeMap;

/// JSON of a notebook, written as Jupyter writes it (one space of indentation, sorted keys, a final
/// newline), so that a notebook saved by Jupyter is reproduced byte for byte. Gson's own writer
/// escapes characters that Jupyter does not.
final class NotebookJson {
  private NotebookJson() {}

  static String write(JsonElement document) {
    var text = new StringBuilder();
    write(document, 0, text);
    return text.append('\n').toString();
  }

  private static void write(JsonElement element, int depth, StringBuilder text) {
    switch (element) {
      case JsonObject object -> {
        var separator = "{";
        for (var member : new TreeMap<>(object.asMap()).entrySet()) {
          startLine(text.append(separator), depth + 1);
          quote(member.getKey(), text);
          write(member.getValue(), depth + 1, text.append(": "));
          separator = ",";
        }
        end(text, object.isEmpty() ? "{}" : "}", object.isEmpty(), depth);
      }
      case JsonArray array -> {
        var separator = "[";
        for (var item : array) {
          startLine(text.append(separator), depth + 1);
          write(item, depth + 1, text);
          separator = ",";
        }
        end(text, array.isEmpty() ? "[]" : "]", array.isEmpty(), depth);
      }
      case JsonPrimitive string when string.isString() -> quote(string.getAsString(), text);
      default -> text.append(element);
    }
  }

  private static void end(StringBuilder text, String bracket, boolean empty, int depth) {
    if (!empty) {
      startLine(text, depth);
    }
    text.append(bracket);
  }

  private static void startLine(StringBuilder text, int depth) {
    text.append('\n').repeat(' ', depth);
  }

  private static void quote(String string, StringBuilder text) {
    text.append('"');
    for (int i = 0; i < string.length(); i++) {
      char c = string.charAt(i);
      switch (c) {
        case '"' -> text.append("\\\"");
        case '\\' -> text.append("\\\\");
        case '\n' -> text.append("\\n");
        case '\r' -> text.append("\\r");
        case '\t' -> text.append("\\t");
        case '\b' -> text.append("\\b");
        case '\f' -> text.append("\\f");
        default -> {
          if (c < ' ') {
            text.append("\\u%04x".formatted((int) c));
          } else {
            text.append(isUnpaired(string, i) ? '\ufffd' : c);
          }
        }
      }
    }
    text.append('"');
  }

  /// Returns true for an unpaired surrogate, which a cell may print and UTF-8 cannot hold.
  private static boolean isUnpaired(String string, int i) {
    char c = string.charAt(i);
    if (Character.isHighSurrogate(c)) {
      return i + 1 == string.length() || !Character.isLowSurrogate(string.charAt(i + 1));
    }
    return Character.isLowSurrogate(c)
        && (i == 0 || !Character.isHighSurrogate(string.charAt(i - 1)));
  }
}
