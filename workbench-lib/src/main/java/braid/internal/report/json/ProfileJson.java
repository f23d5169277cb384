package braid.internal.report.json;

import braid.model.BraidException;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;

/// Reads profiles, and writes and reads those of all ranks as one document.
public final class ProfileJson {
  static final String SET_FORMAT = "braid.profiles/1";

  /// Numbers per span.
  private static final int SPAN_WIDTH = 10;

  private static final String WHAT = "profile";

  private ProfileJson() {}

  public static Profile read(String json) {
    return read(JsonFields.document(WHAT, Profile.FORMAT, json));
  }

  /// Writes the profiles of all ranks as one document.
  public static String writeAll(List<Profile> profiles) {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      json.beginObject().name("format").value(SET_FORMAT).name("profiles").beginArray();
      for (var profile : profiles) {
        json.jsonValue(profile.toJson());
      }
      json.endArray().endObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  public static List<Profile> readAll(String json) {
    var set = JsonFields.document("profiles", SET_FORMAT, json).only("format", "profiles");
    return set.objects("profiles").stream().map(ProfileJson::read).toList();
  }

  private static Profile read(JsonFields fields) {
    fields.only(
        "format",
        "rank",
        "size",
        "configuration",
        "clockErrorNanos",
        "counters",
        "iterationNanos",
        "plainNanos",
        "startNanos",
        "stages",
        "streams",
        "engines",
        "labels",
        "spans");
    if (!fields.text("format").equals(Profile.FORMAT)) {
      throw new BraidException(
          WHAT
              + ": field `format` must be \""
              + Profile.FORMAT
              + "\" but was "
              + fields.text("format"));
    }
    var stages = fields.listOf("stages", Stage.values());
    var streams = fields.textList("streams");
    var spans = new ArrayList<Span>();
    // Earlier profiles have no labels, and those of Braid's first version no engines.
    boolean labelled = fields.has("labels");
    boolean tells = fields.has("engines");
    var labels = labelled ? fields.textList("labels") : List.of("");
    var engines = tells ? fields.textList("engines") : List.of("");
    for (var row : fields.rows("spans", SPAN_WIDTH - (labelled ? 0 : 1) - (tells ? 0 : 1))) {
      spans.add(
          new Span(
              number(row[0], "iteration"),
              number(row[1], "chunk"),
              named(stages, row[2], "stages"),
              named(streams, row[3], "streams"),
              row[4],
              row[5],
              row[6],
              row[7],
              tells ? named(engines, row[8], "engines") : "",
              labelled ? named(labels, row[9], "labels") : ""));
    }
    return new Profile(
        new Place(fields.whole("rank"), fields.whole("size")),
        fields.texts("configuration"),
        fields.wholes("iterationNanos"),
        spans,
        fields.wholeLong("clockErrorNanos"),
        // Profiles of Braid's first version have no counters.
        fields.has("counters") ? fields.counts("counters") : new LinkedHashMap<>(),
        // They have no times without profiling either.
        fields.has("plainNanos") ? fields.wholes("plainNanos") : List.of(),
        fields.has("startNanos") ? fields.wholes("startNanos") : List.of());
  }

  private static int number(long value, String name) {
    if (value != (int) value) {
      throw new BraidException(
          WHAT + ": a span's " + name + " must fit in 32 bits but was " + value);
    }
    return (int) value;
  }

  private static <T> T named(List<T> names, long index, String list) {
    if (index < 0 || index >= names.size()) {
      throw new BraidException(
          "%s: a span names entry %d of `%s`, which has %d"
              .formatted(WHAT, index, list, names.size()));
    }
    return names.get((int) index);
  }
}
