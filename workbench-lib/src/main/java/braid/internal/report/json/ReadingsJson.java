package braid.internal.report.json;

import braid.model.BraidException;
import braid.model.Reading;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/// What hardware was at, measurement by measurement. What it does not tell is left out.
public final class ReadingsJson {
  private static final String FORMAT = "braid.readings/1";
  private static final String READINGS = "readings";

  private ReadingsJson() {}

  /// As ranks tell each other.
  public static String write(List<Reading> readings) {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      json.beginObject().name("format").value(FORMAT);
      write(json, READINGS, readings);
      json.endObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  public static List<Reading> read(String json) {
    return read(JsonFields.document(READINGS, FORMAT, json).only("format", READINGS), READINGS);
  }

  static void write(JsonWriter json, String name, List<Reading> readings) throws IOException {
    json.name(name).beginArray();
    for (var reading : readings) {
      json.beginObject();
      known(json, "smClockMhz", reading.smClockMhz());
      known(json, "watts", reading.watts());
      known(json, "celsius", reading.celsius());
      if (!reading.heldBackBy().isEmpty()) {
        json.name("heldBackBy").beginArray();
        for (var reason : reading.heldBackBy()) {
          json.value(reason);
        }
        json.endArray();
      }
      json.endObject();
    }
    json.endArray();
  }

  private static void known(JsonWriter json, String name, int value) throws IOException {
    if (value != Reading.UNKNOWN) {
      json.name(name).value(value);
    }
  }

  static List<Reading> read(JsonFields fields, String name) {
    return fields.objects(name).stream().map(ReadingsJson::one).toList();
  }

  private static Reading one(JsonFields fields) {
    fields.only("smClockMhz", "watts", "celsius", "heldBackBy");
    try {
      return new Reading(
          known(fields, "smClockMhz"),
          known(fields, "watts"),
          known(fields, "celsius"),
          fields.has("heldBackBy") ? new TreeSet<>(fields.textList("heldBackBy")) : Set.of());
    } catch (BraidException e) {
      throw new BraidException(fields.what() + ": " + e.getMessage(), e);
    }
  }

  private static int known(JsonFields fields, String name) {
    return fields.has(name) ? fields.whole(name) : Reading.UNKNOWN;
  }
}
