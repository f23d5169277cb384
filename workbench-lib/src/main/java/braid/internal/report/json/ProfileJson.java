package braid.internal.report.json;

import braid.model.Activity;
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
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;

/// Reads profiles, and writes and reads those of all ranks as one document.
public final class ProfileJson {
  static final String SET_FORMAT = "braid.profiles/1";

  /// Numbers per span.
  private static final int SPAN_WIDTH = 9;

  /// Numbers per activity.
  private static final int ACTIVITY_WIDTH = 6;

  /// Index of the span of an activity that belongs to none.
  private static final long UNOWNED = -1;

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
        "labels",
        "kinds",
        "engines",
        "spans",
        "activities");
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
    var unowned = new ArrayList<Activity>();
    // Earlier profiles have one engine per span, or none, and may have no labels.
    boolean complete = fields.has("activities");
    boolean labelled = fields.has("labels");
    boolean oneEngine = !complete && fields.has("engines");
    var labels = labelled ? fields.textList("labels") : List.of("");
    var engines = complete || oneEngine ? fields.textList("engines") : List.<String>of();
    var rows = fields.rows("spans", SPAN_WIDTH - (labelled ? 0 : 1) + (oneEngine ? 1 : 0));
    var activities = new HashMap<Long, List<Activity>>();
    if (complete) {
      var kinds = fields.listOf("kinds", Activity.Kind.values());
      for (var row : fields.rows("activities", ACTIVITY_WIDTH)) {
        if (row[0] < UNOWNED || row[0] >= rows.size()) {
          throw new BraidException(
              "%s: an activity belongs to span %d, but there are %d"
                  .formatted(WHAT, row[0], rows.size()));
        }
        var activity =
            new Activity(
                named(kinds, row[1], "kinds"),
                named(engines, row[2], "engines"),
                row[3],
                row[4],
                row[5]);
        (row[0] == UNOWNED ? unowned : activities.computeIfAbsent(row[0], _ -> new ArrayList<>()))
            .add(activity);
      }
    }
    for (var row : rows) {
      var ran =
          oneEngine
              ? whole(row, named(engines, row[SPAN_WIDTH - 1], "engines"))
              : activities.getOrDefault((long) spans.size(), List.of());
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
              ran,
              labelled ? named(labels, row[row.length - 1], "labels") : ""));
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
        fields.has("startNanos") ? fields.wholes("startNanos") : List.of(),
        unowned);
  }

  /// Returns the only activity that an earlier profile has of a span: the longest one, of which it
  /// kept the engine.
  private static List<Activity> whole(long[] row, String engine) {
    if (engine.isEmpty()) {
      return List.of();
    }
    var kind =
        engine.startsWith("fill: ")
            ? Activity.Kind.FILL
            : engine.contains("(channel ") ? Activity.Kind.COPY : Activity.Kind.KERNEL;
    return List.of(new Activity(kind, engine, row[4], row[5], row[6]));
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
