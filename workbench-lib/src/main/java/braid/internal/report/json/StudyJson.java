package braid.internal.report.json;

import braid.model.Overlap;
import braid.model.Reading;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// What of a study is kept as JSON: every time that was measured, none that was computed from them.
public record StudyJson(
    SequencedMap<String, String> problem,
    int ranks,
    long seed,
    List<Long> unfusedFirst,
    List<Long> unfusedAgain,
    List<Trial> trials,
    List<Reading> unfusedReadings) {
  public static final String MIME = "application/vnd.braid.study+json";
  static final String FORMAT = "braid.study/1";
  private static final String READINGS = "readings";
  private static final String UNFUSED_READINGS = "unfusedReadings";

  /// One configuration, its time in each round, and what the hardware was at then.
  public record Trial(Overlap overlap, List<Long> nanos, List<Reading> readings) {}

  public String write() {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      json.beginObject();
      json.name("format").value(FORMAT);
      texts(json, "problem", problem);
      json.name("ranks").value(ranks);
      json.name("seed").value(seed);
      numbers(json, "unfusedNanos", unfusedFirst);
      numbers(json, "unfusedAgainNanos", unfusedAgain);
      json.name("trials").beginArray();
      for (var trial : trials) {
        json.beginObject();
        OverlapJson.write(json, trial.overlap());
        numbers(json, "nanos", trial.nanos());
        readings(json, READINGS, trial.readings());
        json.endObject();
      }
      json.endArray();
      readings(json, UNFUSED_READINGS, unfusedReadings);
      json.endObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  public static StudyJson read(String json) {
    var fields =
        JsonFields.document("study", FORMAT, json)
            .only(
                "format",
                "problem",
                "ranks",
                "seed",
                "unfusedNanos",
                "unfusedAgainNanos",
                "trials",
                UNFUSED_READINGS);
    var trials =
        fields.objects("trials").stream()
            .map(t -> t.only(OverlapJson.fieldsAnd("nanos", READINGS)))
            .map(t -> new Trial(OverlapJson.read(t), t.wholes("nanos"), readings(t, READINGS)))
            .toList();
    return new StudyJson(
        fields.texts("problem"),
        fields.whole("ranks"),
        fields.wholeLong("seed"),
        fields.wholes("unfusedNanos"),
        fields.wholes("unfusedAgainNanos"),
        trials,
        readings(fields, UNFUSED_READINGS));
  }

  /// Where the hardware told nothing there are none, as in studies of Braid's first version.
  private static List<Reading> readings(JsonFields fields, String name) {
    return fields.has(name) ? ReadingsJson.read(fields, name) : List.of();
  }

  private static void readings(JsonWriter json, String name, List<Reading> readings)
      throws IOException {
    if (!readings.isEmpty()) {
      ReadingsJson.write(json, name, readings);
    }
  }

  private static void texts(JsonWriter json, String name, Map<String, String> values)
      throws IOException {
    json.name(name).beginObject();
    for (var value : values.entrySet()) {
      json.name(value.getKey()).value(value.getValue());
    }
    json.endObject();
  }

  private static void numbers(JsonWriter json, String name, List<Long> values) throws IOException {
    json.name(name).beginArray();
    for (var value : values) {
      json.value(value);
    }
    json.endArray();
  }
}
