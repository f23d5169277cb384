package braid.internal.report.json;

import braid.model.Place;
import braid.model.Span;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Writes a profile as JSON, from its parts: a profile writes itself, so its writer must not need
/// it. A span is a row of nine whole numbers, its stage, stream and engine being indices into lists
/// of names: a profile of ten thousand spans stays under a megabyte.
public final class ProfileWriter {
  public static final String MIME = "application/vnd.braid.profile+json";
  static final String FORMAT = "braid.profile/1";
  static final int SPAN_WIDTH = 9;

  private ProfileWriter() {}

  public static String write(
      Place place,
      SequencedMap<String, String> configuration,
      List<Long> iterationNanos,
      List<Span> spans,
      long clockErrorNanos,
      SequencedMap<String, Long> counters,
      List<Long> plainNanos) {
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      write(
          json, place, configuration, iterationNanos, spans, clockErrorNanos, counters, plainNanos);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  static void write(
      JsonWriter json,
      Place place,
      SequencedMap<String, String> configuration,
      List<Long> iterationNanos,
      List<Span> spans,
      long clockErrorNanos,
      SequencedMap<String, Long> counters,
      List<Long> plainNanos)
      throws IOException {
    var stages = new LinkedHashMap<String, Integer>();
    var streams = new LinkedHashMap<String, Integer>();
    var engines = new LinkedHashMap<String, Integer>();
    for (var span : spans) {
      stages.putIfAbsent(span.stage().name(), stages.size());
      streams.putIfAbsent(span.stream(), streams.size());
      engines.putIfAbsent(span.engine(), engines.size());
    }
    json.beginObject();
    json.name("format").value(FORMAT);
    json.name("rank").value(place.rank());
    json.name("size").value(place.size());
    json.name("configuration").beginObject();
    for (var column : configuration.entrySet()) {
      json.name(column.getKey()).value(column.getValue());
    }
    json.endObject();
    json.name("clockErrorNanos").value(clockErrorNanos);
    json.name("counters").beginObject();
    for (var counter : counters.entrySet()) {
      json.name(counter.getKey()).value(counter.getValue());
    }
    json.endObject();
    times(json, "iterationNanos", iterationNanos);
    times(json, "plainNanos", plainNanos);
    names(json, "stages", stages);
    names(json, "streams", streams);
    names(json, "engines", engines);
    json.name("spans").beginArray();
    for (var s : spans) {
      json.beginArray();
      json.value(s.iteration()).value(s.chunk());
      json.value(stages.get(s.stage().name())).value(streams.get(s.stream()));
      json.value(s.startNanos()).value(s.endNanos()).value(s.bytes()).value(s.flops());
      json.value(engines.get(s.engine()));
      json.endArray();
    }
    json.endArray();
    json.endObject();
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
