package braid.launcher.cell;

import braid.internal.json.RecordJson;
import braid.model.BraidException;
import braid.model.MimeBundle;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.ArrayList;
import java.util.List;

/// A bundle as Jupyter's `data`: JSON types hold JSON instead of its text; all others hold a
/// string. `problems` lists invalid content, which is sent as text.
public record DisplayContent(JsonObject data, List<String> problems) {
  public static DisplayContent of(MimeBundle bundle) {
    var data = new JsonObject();
    var problems = new ArrayList<String>();
    bundle
        .data()
        .forEach(
            (type, content) -> {
              if (isJson(type)) {
                try {
                  data.add(type, RecordJson.parse(type + " content", content));
                  return;
                } catch (BraidException e) {
                  problems.add(e.getMessage());
                }
              }
              data.add(type, new JsonPrimitive(content));
            });
    return new DisplayContent(data, List.copyOf(problems));
  }

  private static boolean isJson(String mimeType) {
    return mimeType.equals("application/json") || mimeType.endsWith("+json");
  }
}
