package braid.internal.report.json;

import braid.internal.json.RecordJson;
import braid.model.HardwareReading;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Readings of the hardware, one per measurement. A number that the hardware does not report is
/// left out.
public record ReadingsJson(List<HardwareReading> readings) {
  private static final String FORMAT = "braid.readings/1";

  static final Map<String, Object> UNKNOWN =
      Map.of(
          "smClockMhz",
          HardwareReading.UNKNOWN,
          "watts",
          HardwareReading.UNKNOWN,
          "celsius",
          HardwareReading.UNKNOWN,
          "heldBackBy",
          Set.of());

  private static final RecordJson JSON =
      new RecordJson().leavingOut(HardwareReading.class, UNKNOWN);

  /// As ranks exchange them.
  public static String write(List<HardwareReading> readings) {
    return JSON.write(FORMAT, new ReadingsJson(readings)).toString();
  }

  public static List<HardwareReading> read(String json) {
    var document = RecordJson.document("readings", FORMAT, json);
    return JSON.read("readings", document, ReadingsJson.class).readings();
  }
}
