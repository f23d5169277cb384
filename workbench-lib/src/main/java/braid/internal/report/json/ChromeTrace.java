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
      fields(json, "displayTimeUnit", "ms");
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
    fields(
        json,
        "producer",
        "braid",
        "clock",
        "the ranks' common clock, from the start of the profile",
        "clockErrorNanos",
        ofRanks.stream().mapToLong(Profile::clockErrorNanos).max().orElse(0),
        "movedNanos",
        movedNanos);
    json.name("configuration").beginObject();
    for (var column : ofRanks.getFirst().configuration().entrySet()) {
      fields(json, column.getKey(), column.getValue());
    }
    json.endObject().name("counters").beginObject();
    for (var profile : ofRanks) {
      json.name(profile.rankName()).beginObject();
      for (var counter : profile.counters().entrySet()) {
        fields(json, counter.getKey(), counter.getValue());
      }
      json.endObject();
    }
    json.endObject().endObject();
  }

  /// Writes names and values in turn.
  private static void fields(JsonWriter json, Object... all) throws IOException {
    for (int i = 0; i < all.length; i += 2) {
      json.name((String) all[i]);
      var _ =
          all[i + 1] instanceof Number number
              ? json.value(number)
              : json.value((String) all[i + 1]);
    }
  }

  private static void names(JsonWriter json, Profile profile, List<String> streams)
      throws IOException {
    int rank = profile.place().rank();
    metadata(json, "process_name", rank, ITERATIONS_THREAD, "name", profile.rankName());
    var clock = "clock within ±" + micros(profile.clockErrorNanos()) + " µs";
    boolean counts = Caveats.timesCount(profile.configuration());
    metadata(
        json,
        "process_labels",
        rank,
        ITERATIONS_THREAD,
        "labels",
        clock + (counts ? "" : "; " + Caveats.SHARED));
    metadata(json, "process_sort_index", rank, ITERATIONS_THREAD, "sort_index", rank);
    thread(json, rank, ITERATIONS_THREAD, ITERATIONS);
    for (int stream = 0; stream < streams.size(); stream++) {
      thread(json, rank, FIRST_STREAM_THREAD + stream, streams.get(stream));
    }
  }

  private static void thread(JsonWriter json, int rank, int thread, String name)
      throws IOException {
    metadata(json, "thread_name", rank, thread, "name", name);
    metadata(json, "thread_sort_index", rank, thread, "sort_index", thread);
  }

  private static void metadata(JsonWriter json, String name, int rank, int thread, Object... args)
      throws IOException {
    json.beginObject();
    fields(json, "ph", "M", "name", name, "pid", rank, "tid", thread);
    json.name("args").beginObject();
    fields(json, args);
    json.endObject().endObject();
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
      fields(json, "iteration", iteration, "wall µs", micros(wall));
      json.endObject().endObject();
    }
  }

  private static void span(JsonWriter json, int rank, int thread, Span span, long movedNanos)
      throws IOException {
    var stage = span.stage().name().toLowerCase(Locale.ROOT);
    complete(json, span.chunk() < 0 ? stage : stage + " " + span.chunk(), stage, rank, thread);
    times(json, span.startNanos(), span.endNanos(), movedNanos);
    json.name("args").beginObject();
    fields(json, "iteration", span.iteration(), "stage", stage);
    if (!span.label().isEmpty()) {
      fields(json, "step", span.label());
    }
    if (span.chunk() >= 0) {
      fields(json, "chunk", span.chunk());
    }
    if (!span.engine().isEmpty()) {
      fields(json, "engine", span.engine());
    }
    rate(json, "bytes", span.bytes(), "GB/s", span.nanos());
    rate(json, "flops", span.flops(), "GFLOP/s", span.nanos());
    json.endObject().endObject();
  }

  /// Billions per second equal units per nanosecond.
  private static void rate(JsonWriter json, String name, long amount, String rate, long nanos)
      throws IOException {
    if (amount > 0) {
      fields(json, name, amount);
      if (nanos > 0) {
        var exact = BigDecimal.valueOf(amount);
        fields(json, rate, exact.divide(BigDecimal.valueOf(nanos), 3, RoundingMode.HALF_UP));
      }
    }
  }

  private static void complete(JsonWriter json, String name, String category, int rank, int thread)
      throws IOException {
    json.beginObject();
    fields(json, "ph", "X", "name", name, "cat", category, "pid", rank, "tid", thread);
  }

  private static void times(JsonWriter json, long start, long end, long movedNanos)
      throws IOException {
    fields(json, "ts", micros(start + movedNanos), "dur", micros(end - start));
  }

  private static BigDecimal micros(long nanos) {
    return BigDecimal.valueOf(nanos, 3);
  }
}
