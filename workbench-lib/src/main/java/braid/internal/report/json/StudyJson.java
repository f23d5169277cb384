package braid.internal.report.json;

import braid.Overlap;
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
    List<Trial> trials) {
  public static final String MIME = "application/vnd.braid.study+json";
  static final String FORMAT = "braid.study/1";

  /// One configuration and its time in each round.
  public record Trial(Overlap overlap, List<Long> nanos) {}

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
        json.endObject();
      }
      json.endArray();
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
                "trials");
    var trials =
        fields.objects("trials").stream()
            .map(t -> t.only(OverlapJson.fieldsAnd("nanos")))
            .map(t -> new Trial(OverlapJson.read(t), t.wholes("nanos")))
            .toList();
    return new StudyJson(
        fields.texts("problem"),
        fields.whole("ranks"),
        fields.wholeLong("seed"),
        fields.wholes("unfusedNanos"),
        fields.wholes("unfusedAgainNanos"),
        trials);
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
