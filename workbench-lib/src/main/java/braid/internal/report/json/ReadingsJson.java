package braid.internal.report.json;

import braid.model.Reading;
import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Readings of the hardware, one per measurement. A number that the hardware does not report is
/// left out.
public final class ReadingsJson {
  private static final String FORMAT = "braid.readings/1";
  private static final String READINGS = "readings";
  private static final Gson GSON = new Gson();

  private static final Map<String, Object> ABSENT =
      Map.of(
          "smClockMhz",
          Reading.UNKNOWN,
          "watts",
          Reading.UNKNOWN,
          "celsius",
          Reading.UNKNOWN,
          "heldBackBy",
          Set.of());

  private ReadingsJson() {}

  /// As ranks exchange them.
  public static String write(List<Reading> readings) {
    var json = new JsonObject();
    json.addProperty("format", FORMAT);
    json.add(READINGS, tree(readings));
    return json.toString();
  }

  public static List<Reading> read(String json) {
    return read(JsonFields.document(READINGS, FORMAT, json).only("format", READINGS), READINGS);
  }

  static JsonArray tree(List<Reading> readings) {
    var all = GSON.toJsonTree(readings).getAsJsonArray();
    for (var one : all) {
      var fields = one.getAsJsonObject();
      ABSENT.forEach(
          (name, unknown) -> {
            if (fields.get(name).equals(GSON.toJsonTree(unknown))) {
              fields.remove(name);
            }
          });
    }
    return all;
  }

  static List<Reading> read(JsonFields fields, String name) {
    return fields.objects(name).stream()
        .map(one -> one.only(JsonFields.components(Reading.class)).record(Reading.class, ABSENT))
        .toList();
  }
}
