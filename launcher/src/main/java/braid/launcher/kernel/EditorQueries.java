package braid.launcher.kernel;

import braid.launcher.cell.DisplayContent;
import braid.launcher.editing.Completions;
import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import braid.launcher.session.Session;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Locale;

/// Answers editors' queries about code with the front's compiler, without the ranks. Jupyter counts
/// characters by code point, Java by UTF-16 unit.
final class EditorQueries {
  private final LazySession session;

  EditorQueries(LazySession session) {
    this.session = session;
  }

  JsonObject complete(Message request) throws MalformedMessage {
    var code = request.text("code");
    var found = session().assistant().complete(code, cursor(request, code));
    var matches = new JsonArray();
    found.replacements().forEach(matches::add);
    var content = new JsonObject();
    content.add("matches", matches);
    content.addProperty("cursor_start", code.codePointCount(0, found.start()));
    content.addProperty("cursor_end", code.codePointCount(0, found.end()));
    content.add("metadata", kinds(found, content));
    return content;
  }

  /// Returns the kind of each suggestion, in the format of Jupyter's own kernel: front ends show an
  /// icon for it.
  private static JsonObject kinds(Completions found, JsonObject content) {
    var typed = new JsonArray();
    for (var item : found.items()) {
      var one = new JsonObject();
      one.add("start", content.get("cursor_start"));
      one.add("end", content.get("cursor_end"));
      one.addProperty("text", item.text());
      one.addProperty("type", item.kind().name().toLowerCase(Locale.ROOT));
      typed.add(one);
    }
    var metadata = new JsonObject();
    metadata.add("_jupyter_types_experimental", typed);
    return metadata;
  }

  JsonObject inspect(Message request) throws MalformedMessage {
    var code = request.text("code");
    int detail = request.number("detail_level", 0);
    if (detail < 0 || detail > 1) {
      throw new MalformedMessage("detail_level must be 0 or 1 but was " + detail);
    }
    var found = session().assistant().inspect(code, cursor(request, code), detail);
    var content = new JsonObject();
    content.addProperty("found", found.isPresent());
    content.add(
        "data", found.map(bundle -> DisplayContent.of(bundle).data()).orElseGet(JsonObject::new));
    content.add("metadata", new JsonObject());
    return content;
  }

  JsonObject isComplete(Message request) throws MalformedMessage {
    var completeness = session().assistant().completeness(request.text("code"));
    var content = new JsonObject();
    content.addProperty("status", completeness.status().name().toLowerCase(Locale.ROOT));
    content.addProperty("indent", completeness.indent());
    return content;
  }

  private Session session() {
    return session.get().join();
  }

  private static int cursor(Message request, String code) throws MalformedMessage {
    int points = code.codePointCount(0, code.length());
    int cursor = request.number("cursor_pos", points);
    if (cursor < 0 || cursor > points) {
      throw new MalformedMessage(
          "cursor_pos must be 0.." + points + " (characters of the code) but was " + cursor);
    }
    return code.offsetByCodePoints(0, cursor);
  }
}
