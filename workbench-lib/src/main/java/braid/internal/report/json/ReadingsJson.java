package braid.internal.report.json;

import braid.internal.json.RecordJson;
import braid.model.Reading;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Readings of the hardware, one per measurement. A number that the hardware does not report is
/// left out.
public record ReadingsJson(List<Reading> readings) {
  private static final String FORMAT = "braid.readings/1";

  static final Map<String, Object> UNKNOWN =
      Map.of(
          "smClockMhz",
          Reading.UNKNOWN,
          "watts",
          Reading.UNKNOWN,
          "celsius",
          Reading.UNKNOWN,
          "heldBackBy",
          Set.of());

  private static final RecordJson JSON = new RecordJson().leavingOut(Reading.class, UNKNOWN);

  /// As ranks exchange them.
  public static String write(List<Reading> readings) {
    return JSON.write(FORMAT, new ReadingsJson(readings)).toString();
  }

  public static List<Reading> read(String json) {
    var document = RecordJson.document("readings", FORMAT, json);
    return JSON.read("readings", document, ReadingsJson.class).readings();
  }
}
