package braid.internal.report.json;

import braid.model.HardwareReading;
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
          HardwareReading.UNKNOWN,
          "watts",
          HardwareReading.UNKNOWN,
          "celsius",
          HardwareReading.UNKNOWN,
          "heldBackBy",
          Set.of());

  private ReadingsJson() {}

  /// As ranks exchange them.
  public static String write(List<HardwareReading> readings) {
    var json = new JsonObject();
    json.addProperty("format", FORMAT);
    json.add(READINGS, tree(readings));
    return json.toString();
  }

  public static List<HardwareReading> read(String json) {
    return read(JsonFields.document(READINGS, FORMAT, json).only("format", READINGS), READINGS);
  }

  static JsonArray tree(List<HardwareReading> readings) {
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

  static List<HardwareReading> read(JsonFields fields, String name) {
    return fields.objects(name).stream()
        .map(
            one ->
                one.only(JsonFields.components(HardwareReading.class))
                    .record(HardwareReading.class, ABSENT))
        .toList();
  }
}
