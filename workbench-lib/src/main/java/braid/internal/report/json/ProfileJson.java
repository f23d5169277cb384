package braid.internal.report.json;

import braid.internal.json.RecordJson;
import braid.model.Activity;
import braid.model.BraidException;
import braid.model.HostLoad;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import com.google.gson.JsonElement;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

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

  /// Fields of a profile. Spans and activities are rows of numbers, some of which are indices into
  /// the lists of names.
  private record Saved(
      int rank,
      int size,
      SequencedMap<String, String> configuration,
      long clockErrorNanos,
      SequencedMap<String, Long> counters,
      List<Long> iterationNanos,
      List<Long> plainNanos,
      List<Long> startNanos,
      List<Stage> stages,
      List<String> streams,
      Optional<List<String>> labels,
      List<Activity.Kind> kinds,
      List<String> engines,
      List<List<Long>> spans,
      Optional<List<List<Long>>> activities,
      Optional<HostLoad> load,
      Optional<String> host) {}

  private record All(List<JsonElement> profiles) {}

  private static final RecordJson JSON =
      new RecordJson()
          .absent(
              Saved.class,
              Map.of(
                  // Profiles of Braid's first version have none of these.
                  "counters",
                  new LinkedHashMap<>(),
                  "plainNanos",
                  List.of(),
                  "startNanos",
                  List.of(),
                  "labels",
                  Optional.empty(),
                  "kinds",
                  List.of(),
                  "engines",
                  List.of(),
                  "activities",
                  Optional.empty(),
                  "load",
                  Optional.empty(),
                  "host",
                  Optional.empty()));

  private ProfileJson() {}

  public static Profile read(String json) {
    return read(WHAT, RecordJson.parse(WHAT, json));
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
    var all = JSON.read("profiles", RecordJson.document("profiles", SET_FORMAT, json), All.class);
    return all.profiles().stream().map(each -> read(WHAT, each)).toList();
  }

  private static Profile read(String place, JsonElement json) {
    var saved = JSON.read(place, RecordJson.formatted(place, Profile.FORMAT, json), Saved.class);
    var spans = new ArrayList<Span>();
    var unowned = new ArrayList<Activity>();
    // Earlier profiles have one engine per span, or none, and may have no labels.
    boolean labelled = saved.labels().isPresent();
    boolean oneEngine = saved.activities().isEmpty() && !saved.engines().isEmpty();
    var labels = saved.labels().orElse(List.of(""));
    var engines = saved.engines();
    var rows = saved.spans();
    int width = SPAN_WIDTH - (labelled ? 0 : 1) + (oneEngine ? 1 : 0);
    rows.forEach(row -> checkWidth("spans", row, width));
    var activities = new HashMap<Long, List<Activity>>();
    for (var row : saved.activities().orElse(List.of())) {
      checkWidth("activities", row, ACTIVITY_WIDTH);
      long span = row.getFirst();
      if (span < UNOWNED || span >= rows.size()) {
        throw new BraidException(
            "%s: an activity belongs to span %d, but there are %d"
                .formatted(WHAT, span, rows.size()));
      }
      var activity =
          new Activity(
              named(saved.kinds(), row.get(1), "kinds"),
              named(engines, row.get(2), "engines"),
              row.get(3),
              row.get(4),
              row.get(5));
      (span == UNOWNED ? unowned : activities.computeIfAbsent(span, _ -> new ArrayList<>()))
          .add(activity);
    }
    for (var row : rows) {
      var ran =
          oneEngine
              ? whole(row, named(engines, row.get(SPAN_WIDTH - 1), "engines"))
              : activities.getOrDefault((long) spans.size(), List.of());
      spans.add(
          new Span(
              number(row.get(0), "iteration"),
              number(row.get(1), "chunk"),
              named(saved.stages(), row.get(2), "stages"),
              named(saved.streams(), row.get(3), "streams"),
              row.get(4),
              row.get(5),
              row.get(6),
              row.get(7),
              ran,
              labelled ? named(labels, row.getLast(), "labels") : ""));
    }
    return new Profile(
        new Place(saved.rank(), saved.size()),
        saved.configuration(),
        saved.iterationNanos(),
        spans,
        saved.clockErrorNanos(),
        saved.counters(),
        saved.plainNanos(),
        saved.startNanos(),
        unowned,
        saved.load(),
        saved.host());
  }

  private static void checkWidth(String list, List<Long> row, int width) {
    if (row.size() != width) {
      throw new BraidException(
          "%s: `%s` must be rows of %d whole numbers but one is %s"
              .formatted(WHAT, list, width, row));
    }
  }

  /// Returns the only activity that an earlier profile has of a span: the longest one, of which it
  /// kept the engine.
  private static List<Activity> whole(List<Long> row, String engine) {
    if (engine.isEmpty()) {
      return List.of();
    }
    var kind =
        engine.startsWith("fill: ")
            ? Activity.Kind.FILL
            : engine.contains("(channel ") ? Activity.Kind.COPY : Activity.Kind.KERNEL;
    return List.of(new Activity(kind, engine, row.get(4), row.get(5), row.get(6)));
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
