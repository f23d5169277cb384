package braid.launcher.kernel.output;

import braid.model.MimeBundle;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import java.util.ArrayList;
import java.util.List;

/// A bundle as Jupyter's `data`: JSON types hold JSON instead of its text; all others hold a
/// string. `problems` lists invalid content, which is sent as text.
public record DisplayContent(JsonObject data, List<String> problems) {
  private static final Gson STRICT = new GsonBuilder().setStrictness(Strictness.STRICT).create();

  public static DisplayContent of(MimeBundle bundle) {
    var data = new JsonObject();
    var problems = new ArrayList<String>();
    bundle
        .data()
        .forEach(
            (type, content) -> {
              if (isJson(type)) {
                try {
                  data.add(type, STRICT.fromJson(content, JsonElement.class));
                  return;
                } catch (JsonParseException e) {
                  problems.add(type + " content must be JSON but is not: " + e.getMessage());
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
