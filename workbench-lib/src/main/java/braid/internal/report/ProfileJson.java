package braid.internal.report;

import braid.BraidException;
import braid.Place;
import braid.Profile;
import braid.Span;
import braid.Stage;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// A profile as JSON. A span is a row of eight whole numbers, its stage and stream being indices
/// into two lists of names: a profile of ten thousand spans stays under a megabyte.
public final class ProfileJson {
  public static final String MIME = "application/vnd.braid.profile+json";
  static final String FORMAT = "braid.profile/1";
  static final String SET_FORMAT = "braid.profiles/1";

  private static final String WHAT = "profile";
  private static final int SPAN_WIDTH = 8;

  private ProfileJson() {}

  public static String write(Profile profile) {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      write(profile, json);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  public static Profile read(String json) {
    return read(JsonFields.document(WHAT, FORMAT, json));
  }

  /// The profiles of all ranks, in one document.
  public static String writeAll(List<Profile> profiles) {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      json.beginObject().name("format").value(SET_FORMAT).name("profiles").beginArray();
      for (var profile : profiles) {
        write(profile, json);
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

  private static void write(Profile profile, JsonWriter json) throws IOException {
    var stages = new LinkedHashMap<String, Integer>();
    var streams = new LinkedHashMap<String, Integer>();
    for (var span : profile.spans()) {
      stages.putIfAbsent(span.stage().name(), stages.size());
      streams.putIfAbsent(span.stream(), streams.size());
    }
    json.beginObject();
    json.name("format").value(FORMAT);
    json.name("rank").value(profile.place().rank());
    json.name("size").value(profile.place().size());
    json.name("configuration").beginObject();
    for (var column : profile.configuration().entrySet()) {
      json.name(column.getKey()).value(column.getValue());
    }
    json.endObject();
    json.name("clockErrorNanos").value(profile.clockErrorNanos());
    json.name("iterationNanos").beginArray();
    for (var nanos : profile.iterationNanos()) {
      json.value(nanos);
    }
    json.endArray();
    names(json, "stages", stages);
    names(json, "streams", streams);
    json.name("spans").beginArray();
    for (var s : profile.spans()) {
      json.beginArray();
      json.value(s.iteration()).value(s.chunk());
      json.value(stages.get(s.stage().name())).value(streams.get(s.stream()));
      json.value(s.startNanos()).value(s.endNanos()).value(s.bytes()).value(s.flops());
      json.endArray();
    }
    json.endArray();
    json.endObject();
  }

  private static void names(JsonWriter json, String field, Map<String, Integer> names)
      throws IOException {
    json.name(field).beginArray();
    for (var name : names.keySet()) {
      json.value(name);
    }
    json.endArray();
  }

  private static Profile read(JsonFields fields) {
    fields.only(
        "format",
        "rank",
        "size",
        "configuration",
        "clockErrorNanos",
        "iterationNanos",
        "stages",
        "streams",
        "spans");
    if (!fields.text("format").equals(FORMAT)) {
      throw new BraidException(
          WHAT + ": field `format` must be \"" + FORMAT + "\" but was " + fields.text("format"));
    }
    var stages = fields.listOf("stages", Stage.values());
    var streams = fields.textList("streams");
    var spans = new ArrayList<Span>();
    for (var row : fields.rows("spans", SPAN_WIDTH)) {
      spans.add(
          new Span(
              number(row[0], "iteration"),
              number(row[1], "chunk"),
              named(stages, row[2], "stages"),
              named(streams, row[3], "streams"),
              row[4],
              row[5],
              row[6],
              row[7]));
    }
    return new Profile(
        new Place(fields.whole("rank"), fields.whole("size")),
        fields.texts("configuration"),
        fields.wholes("iterationNanos"),
        spans,
        fields.wholeLong("clockErrorNanos"));
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
