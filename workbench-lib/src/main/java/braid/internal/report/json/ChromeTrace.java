package braid.internal.report.json;

import braid.internal.report.value.Caveats;
import braid.model.Activity;
import braid.model.Profile;
import braid.model.Span;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// Profiles of all ranks in the JSON form of the trace event format, which Perfetto and
/// chrome://tracing open: one process per rank, one thread per stream, one complete event (`X`) per
/// span. The first thread of a rank has its iterations, and the last one the activities that belong
/// to no step, if there are any.
///
/// Times are microseconds on the ranks' common clock, written as decimals so that no nanosecond is
/// lost. Viewers drop spans before 0. If a span starts earlier, by the clocks' error, all are
/// shifted, and `otherData` holds the shift.
public final class ChromeTrace {
  /// Not 0: Perfetto treats thread 0 of process 0 as the idle thread.
  private static final int ITERATIONS_THREAD = 1;

  private static final int FIRST_STREAM_THREAD = 2;
  private static final String ITERATIONS = "iterations";

  private ChromeTrace() {}

  /// @param ofRanks in the order of ranks
  /// @param streams all streams in display order
  public static String write(List<Profile> ofRanks, List<String> streams) {
    long earliest =
        ofRanks.stream()
            .flatMapToLong(
                profile ->
                    LongStream.concat(
                        profile.startNanos().stream().mapToLong(Long::longValue),
                        Stream.concat(
                                profile.spans().stream().map(Span::startNanos),
                                profile.unowned().stream().map(Activity::startNanos))
                            .mapToLong(Long::longValue)))
            .min()
            .orElse(0);
    long movedNanos = Math.max(0, -earliest);
    var out = new StringWriter();
    try (var json = new JsonWriter(out)) {
      json.setStrictness(Strictness.STRICT);
      json.beginObject();
      json.name("displayTimeUnit").value("ms");
      otherData(json, ofRanks, movedNanos);
      json.name("traceEvents").beginArray();
      for (var profile : ofRanks) {
        var own = new ArrayList<>(streams);
        own.retainAll(profile.spans().stream().map(Span::stream).distinct().toList());
        if (!profile.unowned().isEmpty()) {
          own.add(Profile.NO_STEP);
        }
        names(json, profile, own);
        iterations(json, profile, movedNanos);
        // Viewers nest events that overlap. Of two with one start the shorter comes first.
        var spans =
            profile.spans().stream()
                .sorted(
                    Comparator.comparingLong(Span::startNanos).thenComparingLong(Span::endNanos))
                .toList();
        for (var span : spans) {
          span(
              json,
              profile.place().rank(),
              FIRST_STREAM_THREAD + own.indexOf(span.stream()),
              span,
              movedNanos);
        }
        for (var activity : profile.unowned()) {
          complete(
              json,
              activity.engine(),
              Profile.NO_STEP,
              profile.place().rank(),
              FIRST_STREAM_THREAD + own.size() - 1);
          times(json, activity.startNanos(), activity.endNanos(), movedNanos);
          json.endObject();
        }
      }
      json.endArray();
      json.endObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toString();
  }

  private static void otherData(JsonWriter json, List<Profile> ofRanks, long movedNanos)
      throws IOException {
    json.name("otherData").beginObject();
    json.name("producer").value("braid");
    json.name("clock").value("the ranks' common clock, from the start of the profile");
    json.name("clockErrorNanos")
        .value(ofRanks.stream().mapToLong(Profile::clockErrorNanos).max().orElse(0));
    json.name("movedNanos").value(movedNanos);
    json.name("configuration").beginObject();
    for (var column : ofRanks.getFirst().configuration().entrySet()) {
      json.name(column.getKey()).value(column.getValue());
    }
    json.endObject();
    json.name("counters").beginObject();
    for (var profile : ofRanks) {
      json.name("rank " + profile.place().rank()).beginObject();
      for (var counter : profile.counters().entrySet()) {
        json.name(counter.getKey()).value(counter.getValue());
      }
      json.endObject();
    }
    json.endObject();
    json.endObject();
  }

  private static void names(JsonWriter json, Profile profile, List<String> streams)
      throws IOException {
    int rank = profile.place().rank();
    metadata(json, "process_name", rank, ITERATIONS_THREAD);
    json.name("name").value("rank " + rank).endObject().endObject();
    metadata(json, "process_labels", rank, ITERATIONS_THREAD);
    json.name("labels")
        .value(
            "clock within ±"
                + micros(profile.clockErrorNanos())
                + " µs"
                + (Caveats.timesCount(profile.configuration()) ? "" : "; " + Caveats.SHARED))
        .endObject()
        .endObject();
    metadata(json, "process_sort_index", rank, ITERATIONS_THREAD);
    json.name("sort_index").value(rank).endObject().endObject();
    thread(json, rank, ITERATIONS_THREAD, ITERATIONS);
    for (int stream = 0; stream < streams.size(); stream++) {
      thread(json, rank, FIRST_STREAM_THREAD + stream, streams.get(stream));
    }
  }

  private static void thread(JsonWriter json, int rank, int thread, String name)
      throws IOException {
    metadata(json, "thread_name", rank, thread);
    json.name("name").value(name).endObject().endObject();
    metadata(json, "thread_sort_index", rank, thread);
    json.name("sort_index").value(thread).endObject().endObject();
  }

  /// Begins a metadata event; its argument and two ends follow.
  private static void metadata(JsonWriter json, String name, int rank, int thread)
      throws IOException {
    json.beginObject();
    json.name("ph").value("M");
    json.name("name").value(name);
    json.name("pid").value(rank);
    json.name("tid").value(thread);
    json.name("args").beginObject();
  }

  /// Writes an iteration: its wall time on the rank, or, if the profile does not have its begin,
  /// the time from its first span to the end of its last.
  private static void iterations(JsonWriter json, Profile profile, long movedNanos)
      throws IOException {
    for (int iteration = 0; iteration < profile.iterations(); iteration++) {
      int wanted = iteration;
      var spans = profile.spans().stream().filter(s -> s.iteration() == wanted).toList();
      if (spans.isEmpty()) {
        continue;
      }
      long wall = profile.iterationNanos().get(iteration);
      long start = profile.begin(iteration).orElseThrow();
      long last = spans.stream().mapToLong(Span::endNanos).max().orElseThrow();
      long end = profile.startNanos().isEmpty() ? last : start + wall;
      int rank = profile.place().rank();
      complete(json, "iteration " + iteration, "iteration", rank, ITERATIONS_THREAD);
      times(json, start, end, movedNanos);
      json.name("args").beginObject();
      json.name("iteration").value(iteration);
      json.name("wall µs").value(micros(wall));
      json.endObject().endObject();
    }
  }

  private static void span(JsonWriter json, int rank, int thread, Span span, long movedNanos)
      throws IOException {
    var stage = span.stage().name().toLowerCase(Locale.ROOT);
    complete(json, span.chunk() < 0 ? stage : stage + " " + span.chunk(), stage, rank, thread);
    times(json, span.startNanos(), span.endNanos(), movedNanos);
    json.name("args").beginObject();
    json.name("iteration").value(span.iteration());
    json.name("stage").value(stage);
    if (!span.label().isEmpty()) {
      json.name("step").value(span.label());
    }
    if (span.chunk() >= 0) {
      json.name("chunk").value(span.chunk());
    }
    if (!span.engine().isEmpty()) {
      json.name("engine").value(span.engine());
    }
    rate(json, "bytes", span.bytes(), "GB/s", span.nanos());
    rate(json, "flops", span.flops(), "GFLOP/s", span.nanos());
    json.endObject().endObject();
  }

  /// Billions per second equal units per nanosecond.
  private static void rate(JsonWriter json, String name, long amount, String rate, long nanos)
      throws IOException {
    if (amount > 0) {
      json.name(name).value(amount);
      if (nanos > 0) {
        json.name(rate)
            .value(
                BigDecimal.valueOf(amount)
                    .divide(BigDecimal.valueOf(nanos), 3, RoundingMode.HALF_UP));
      }
    }
  }

  private static void complete(JsonWriter json, String name, String category, int rank, int thread)
      throws IOException {
    json.beginObject();
    json.name("ph").value("X");
    json.name("name").value(name);
    json.name("cat").value(category);
    json.name("pid").value(rank);
    json.name("tid").value(thread);
  }

  private static void times(JsonWriter json, long start, long end, long movedNanos)
      throws IOException {
    json.name("ts").value(micros(start + movedNanos));
    json.name("dur").value(micros(end - start));
  }

  private static BigDecimal micros(long nanos) {
    return BigDecimal.valueOf(nanos, 3);
  }
}
