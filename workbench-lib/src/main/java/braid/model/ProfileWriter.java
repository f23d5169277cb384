package braid.model;

import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Writes a profile as JSON. Each span is a row of nine integers and each activity one of six, in
/// which stage, stream, label, kind and engine are indices into lists of names. So a profile of ten
/// thousand spans stays under a megabyte, or two with an activity each.
final class ProfileWriter {
  /// Index of the span of an activity that belongs to none.
  private static final int UNOWNED = -1;

  private ProfileWriter() {}

  static String write(Profile profile) {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      write(json, profile);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  private static void write(JsonWriter json, Profile profile) throws IOException {
    var stages = new LinkedHashMap<String, Integer>();
    var streams = new LinkedHashMap<String, Integer>();
    var engines = new LinkedHashMap<String, Integer>();
    var labels = new LinkedHashMap<String, Integer>();
    var kinds = new LinkedHashMap<String, Integer>();
    for (var span : profile.spans()) {
      stages.putIfAbsent(span.stage().name(), stages.size());
      streams.putIfAbsent(span.stream(), streams.size());
      labels.putIfAbsent(span.label(), labels.size());
      span.activities().forEach(each -> name(each, kinds, engines));
    }
    profile.unowned().forEach(each -> name(each, kinds, engines));
    json.beginObject();
    json.name("format").value(Profile.FORMAT);
    json.name("rank").value(profile.place().rank());
    json.name("size").value(profile.place().size());
    if (profile.host().isPresent()) {
      json.name("host").value(profile.host().get());
    }
    json.name("configuration").beginObject();
    for (var column : profile.configuration().entrySet()) {
      json.name(column.getKey()).value(column.getValue());
    }
    json.endObject();
    json.name("clockErrorNanos").value(profile.clockErrorNanos());
    json.name("counters").beginObject();
    for (var counter : profile.counters().entrySet()) {
      json.name(counter.getKey()).value(counter.getValue());
    }
    json.endObject();
    times(json, "iterationNanos", profile.iterationNanos());
    times(json, "plainNanos", profile.plainNanos());
    times(json, "startNanos", profile.startNanos());
    if (profile.load().isPresent()) {
      var load = profile.load().get();
      json.name("load").beginObject();
      json.name("others").value(load.others());
      json.name("cores").value(load.cores());
      json.name("average").value(load.average());
      json.endObject();
    }
    names(json, "stages", stages);
    names(json, "streams", streams);
    names(json, "labels", labels);
    names(json, "kinds", kinds);
    names(json, "engines", engines);
    json.name("spans").beginArray();
    for (var s : profile.spans()) {
      json.beginArray();
      json.value(s.iteration()).value(s.chunk());
      json.value(stages.get(s.stage().name())).value(streams.get(s.stream()));
      json.value(s.startNanos()).value(s.endNanos()).value(s.bytes()).value(s.flops());
      json.value(labels.get(s.label()));
      json.endArray();
    }
    json.endArray();
    json.name("activities").beginArray();
    for (int span = 0; span < profile.spans().size(); span++) {
      for (var activity : profile.spans().get(span).activities()) {
        activity(json, span, activity, kinds, engines);
      }
    }
    for (var activity : profile.unowned()) {
      activity(json, UNOWNED, activity, kinds, engines);
    }
    json.endArray();
    json.endObject();
  }

  private static void name(
      Activity activity, Map<String, Integer> kinds, Map<String, Integer> engines) {
    kinds.putIfAbsent(activity.kind().name(), kinds.size());
    engines.putIfAbsent(activity.engine(), engines.size());
  }

  private static void activity(
      JsonWriter json,
      int span,
      Activity activity,
      Map<String, Integer> kinds,
      Map<String, Integer> engines)
      throws IOException {
    json.beginArray();
    json.value(span).value(kinds.get(activity.kind().name()));
    json.value(engines.get(activity.engine()));
    json.value(activity.startNanos()).value(activity.endNanos()).value(activity.bytes());
    json.endArray();
  }

  private static void times(JsonWriter json, String field, List<Long> nanos) throws IOException {
    json.name(field).beginArray();
    for (var each : nanos) {
      json.value(each);
    }
    json.endArray();
  }

  private static void names(JsonWriter json, String field, Map<String, Integer> names)
      throws IOException {
    json.name(field).beginArray();
    for (var name : names.keySet()) {
      json.value(name);
    }
    json.endArray();
  }
}
