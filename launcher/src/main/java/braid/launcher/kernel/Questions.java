package braid.launcher.kernel;

import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import braid.launcher.kernel.output.DisplayContent;
import braid.launcher.session.Session;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Locale;

/// What editors ask about code; answered by the front's own compiler, no rank is asked. Jupyter
/// counts characters by code point, Java by UTF-16 unit.
final class Questions {
  private final LazySession session;

  Questions(LazySession session) {
    this.session = session;
  }

  JsonObject complete(Message request) throws MalformedMessage {
    var code = request.text("code");
    var found = session().complete(code, cursor(request, code));
    var matches = new JsonArray();
    found.replacements().forEach(matches::add);
    var content = new JsonObject();
    content.add("matches", matches);
    content.addProperty("cursor_start", code.codePointCount(0, found.start()));
    content.addProperty("cursor_end", code.codePointCount(0, found.end()));
    content.add("metadata", new JsonObject());
    return content;
  }

  JsonObject inspect(Message request) throws MalformedMessage {
    var code = request.text("code");
    var found = session().inspect(code, cursor(request, code));
    var content = new JsonObject();
    content.addProperty("found", found.isPresent());
    content.add(
        "data", found.map(bundle -> DisplayContent.of(bundle).data()).orElseGet(JsonObject::new));
    content.add("metadata", new JsonObject());
    return content;
  }

  JsonObject isComplete(Message request) throws MalformedMessage {
    var completeness = session().completeness(request.text("code"));
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
