package braid.internal.report.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import braid.LocalRanks;
import braid.Pipeline;
import braid.evidence.ProfileSet;
import braid.evidence.SyntheticReduction;
import braid.model.Activity;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;

/// The trace has the form that its format demands, and holds everything measured.
class ChromeTraceTest {
  private static final ProfileSet SET = new SyntheticReduction(3, 2, 4, 2, 12_345, 6_789).set();

  private static JsonObject strictly(String json) throws IOException {
    try (var reader = new JsonReader(new StringReader(json))) {
      reader.setStrictness(Strictness.STRICT);
      var trace = JsonParser.parseReader(reader).getAsJsonObject();
      assertThat(reader.peek()).isEqualTo(JsonToken.END_DOCUMENT);
      return trace;
    }
  }

  private static List<JsonObject> events(JsonObject trace, String phase) {
    return trace.getAsJsonArray("traceEvents").asList().stream()
        .map(JsonElement::getAsJsonObject)
        .filter(event -> event.get("ph").getAsString().equals(phase))
        .toList();
  }

  private static long nanos(JsonObject event, String field) {
    return event.get(field).getAsBigDecimal().multiply(BigDecimal.valueOf(1000)).longValueExact();
  }

  private static long whole(JsonObject args, String name) {
    return args.has(name) ? args.get(name).getAsLong() : 0;
  }

  @Test
  void everySpanComesBackToTheNanosecond() throws IOException {
    var trace = strictly(SET.chromeTrace());
    var streams = new HashMap<List<Integer>, String>();
    for (var event : events(trace, "M")) {
      if (event.get("name").getAsString().equals("thread_name")) {
        streams.put(
            List.of(event.get("pid").getAsInt(), event.get("tid").getAsInt()),
            event.getAsJsonObject("args").get("name").getAsString());
      }
    }
    var read = new HashMap<Integer, List<Span>>();
    for (var event : events(trace, "X")) {
      int rank = event.get("pid").getAsInt();
      var args = event.getAsJsonObject("args");
      if (event.get("cat").getAsString().equals("iteration")) {
        continue;
      }
      var stage = Stage.valueOf(args.get("stage").getAsString().toUpperCase(Locale.ROOT));
      int chunk = args.has("chunk") ? args.get("chunk").getAsInt() : -1;
      assertThat(event.get("name").getAsString())
          .isEqualTo(args.get("stage").getAsString() + (chunk < 0 ? "" : " " + chunk));
      read.computeIfAbsent(rank, _ -> new ArrayList<>())
          .add(
              new Span(
                  args.get("iteration").getAsInt(),
                  chunk,
                  stage,
                  streams.getOrDefault(List.of(rank, event.get("tid").getAsInt()), "unnamed"),
                  nanos(event, "ts"),
                  nanos(event, "ts") + nanos(event, "dur"),
                  whole(args, "bytes"),
                  whole(args, "flops")));
    }

    assertThat(read).hasSize(SET.ranks());
    for (var profile : SET.profiles()) {
      assertThat(read.get(profile.place().rank()))
          .containsExactlyInAnyOrderElementsOf(profile.spans());
    }
  }

  @Test
  void ranksAreProcessesAndStreamsAreThreadsInOrder() throws IOException {
    var trace = strictly(SET.chromeTrace());
    var names = new LinkedHashMap<Integer, List<String>>();
    var seen = new HashSet<List<Object>>();
    for (var event : events(trace, "M")) {
      int rank = event.get("pid").getAsInt();
      int thread = event.get("tid").getAsInt();
      var args = event.getAsJsonObject("args");
      var name = event.get("name").getAsString();
      assertThat(seen.add(List.of(rank, thread, name))).as("said once").isTrue();
      assertThat(thread).as("Perfetto takes thread 0 for another").isPositive();
      switch (name) {
        case "process_name" -> assertThat(args.get("name").getAsString()).isEqualTo("rank " + rank);
        case "process_sort_index" -> assertThat(args.get("sort_index").getAsInt()).isEqualTo(rank);
        case "process_labels" ->
            assertThat(args.get("labels").getAsString()).isEqualTo("clock within ±0.80%d µs", rank);
        case "thread_name" ->
            names.computeIfAbsent(rank, _ -> new ArrayList<>()).add(args.get("name").getAsString());
        default -> {
          assertThat(name).isEqualTo("thread_sort_index");
          assertThat(args.get("sort_index").getAsInt()).isEqualTo(thread);
        }
      }
    }

    assertThat(names.keySet()).containsExactly(0, 1, 2);
    assertThat(names.values())
        .containsOnly(List.of("iterations", "gemm-0", "gemm-1", "comm", "comm-gather", "reduce"));
  }

  @Test
  void iterationsAreMarkedOnAThreadOfTheirOwn() throws IOException {
    var marks =
        events(strictly(SET.chromeTrace()), "X").stream()
            .filter(event -> event.get("cat").getAsString().equals("iteration"))
            .toList();

    assertThat(marks).hasSize(SET.ranks() * SET.iterations());
    for (var mark : marks) {
      int iteration = mark.getAsJsonObject("args").get("iteration").getAsInt();
      var profile = SET.profiles().get(mark.get("pid").getAsInt());
      var own = profile.spans().stream().filter(s -> s.iteration() == iteration).toList();
      assertThat(mark.get("name").getAsString()).isEqualTo("iteration " + iteration);
      assertThat(nanos(mark, "ts"))
          .isEqualTo(own.stream().mapToLong(Span::startNanos).min().orElseThrow());
      assertThat(nanos(mark, "ts") + nanos(mark, "dur"))
          .isEqualTo(own.stream().mapToLong(Span::endNanos).max().orElseThrow());
      assertThat(nanos(mark.getAsJsonObject("args"), "wall µs"))
          .isEqualTo(profile.iterationNanos().get(iteration));
    }
  }

  @Test
  void aTraceHasTheDocumentedFormat() throws IOException {
    var trace = strictly(SET.chromeTrace());

    assertThat(trace.keySet())
        .containsExactlyInAnyOrder("displayTimeUnit", "otherData", "traceEvents");
    assertThat(trace.get("displayTimeUnit").getAsString()).isIn("ms", "ns");
    assertThat(trace.getAsJsonArray("traceEvents").size())
        .isEqualTo(events(trace, "M").size() + events(trace, "X").size());
    for (var event : events(trace, "X")) {
      assertThat(event.keySet())
          .isEqualTo(Set.of("ph", "name", "cat", "pid", "tid", "ts", "dur", "args"));
      assertThat(nanos(event, "ts")).isNotNegative();
      assertThat(nanos(event, "dur")).isNotNegative();
    }
  }

  @Test
  void eventsOfAThreadFollowEachOther() throws IOException {
    assertThat(assertFollowing(SET)).hasSize(3 * 6);
  }

  /// Viewers need it: what overlaps on one thread is drawn as if one had called the other.
  @Test
  void eventsOfAThreadFollowEachOtherInRealMeasurements() throws IOException {
    for (var tuning :
        List.of(Overlap.pipelined(3).streams(2), Overlap.ring().over(Transport.WORKERS))) {
      var profiles = new ConcurrentLinkedQueue<Profile>();
      LocalRanks.run(
          3,
          world -> {
            var spec = GemmSpec.gemmAllReduce(48, 32, 24);
            try (var pipeline = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
              profiles.add(pipeline.profile(4));
            }
          });
      var threads = assertFollowing(ProfileSet.of(List.copyOf(profiles)));
      assertThat(threads).as("iterations, and streams").hasSizeGreaterThanOrEqualTo(3 * 3);
    }
  }

  /// The last end on each thread.
  private static Map<List<Integer>, Long> assertFollowing(ProfileSet set) throws IOException {
    var end = new HashMap<List<Integer>, Long>();
    for (var event : events(strictly(set.chromeTrace()), "X")) {
      var thread = List.of(event.get("pid").getAsInt(), event.get("tid").getAsInt());
      assertThat(nanos(event, "ts"))
          .as(() -> "start of " + event)
          .isGreaterThanOrEqualTo(end.getOrDefault(thread, Long.MIN_VALUE));
      end.put(thread, nanos(event, "ts") + nanos(event, "dur"));
    }
    return end;
  }

  @Test
  void metadataSayHowFarClocksMayBeApart() throws IOException {
    var other = strictly(SET.chromeTrace()).getAsJsonObject("otherData");

    assertThat(other.get("clockErrorNanos").getAsLong()).isEqualTo(SET.clockErrorNanos());
    assertThat(other.get("movedNanos").getAsLong()).isZero();
    assertThat(other.getAsJsonObject("configuration").get("splits").getAsString()).isEqualTo("4");
    assertThat(other.getAsJsonObject("counters").getAsJsonObject("rank 2").get("plans reused"))
        .hasToString("2");
  }

  @Test
  void ratesAreArgumentsAndWhatIsBeforeTheStartMovesAll() throws IOException {
    var spans =
        List.of(
            new Span(0, -1, Stage.WAIT, "a \"b\"\n", -1_500, -1_500, 0, 0),
            new Span(0, 0, Stage.COPY, "a \"b\"\n", -1_500, 500, 5_000, 0),
            new Span(0, 1, Stage.GEMM, "g", 0, 3_000, 0, 10_000),
            new Span(0, 2, Stage.COPY, "g", 3_000, 3_000, 7, 0));
    var set =
        ProfileSet.of(
            List.of(
                new Profile(new Place(0, 1), new LinkedHashMap<>(), List.of(9L), spans, 2_000)));
    var trace = strictly(set.chromeTrace());
    var events =
        events(trace, "X").stream()
            .filter(event -> !event.get("cat").getAsString().equals("iteration"))
            .toList();
    var moved = trace.getAsJsonObject("otherData").get("movedNanos").getAsLong();

    assertThat(moved).isEqualTo(1_500);
    assertThat(events.stream().map(e -> nanos(e, "ts"))).containsExactly(0L, 0L, 1_500L, 4_500L);
    assertThat(events.get(0).getAsJsonObject("args").keySet())
        .containsExactly("iteration", "stage");
    assertThat(events.get(1).getAsJsonObject("args").get("GB/s").getAsDouble())
        .isEqualTo(2.5, within(1e-9));
    assertThat(events.get(2).getAsJsonObject("args").get("GFLOP/s").getAsDouble())
        .isEqualTo(3.333, within(1e-9));
    assertThat(events.get(3).getAsJsonObject("args").keySet())
        .as("no rate of what took no time")
        .containsExactly("iteration", "stage", "chunk", "bytes");
  }

  @Test
  void activitiesOfNoStepHaveAThreadOfTheirOwn() throws IOException {
    var kernel = new Activity(Activity.Kind.KERNEL, "a kernel <<<24>>>", -500, 1_500, 0);
    var profile =
        new Profile(
            new Place(0, 1),
            new LinkedHashMap<>(),
            List.of(9L),
            List.of(new Span(0, 0, Stage.COPY, "comm", 0, 500, 1, 0)),
            0,
            new LinkedHashMap<>(),
            List.of(),
            List.of(),
            List.of(kernel),
            Optional.empty(),
            Optional.empty());
    var trace = strictly(ProfileSet.of(List.of(profile)).chromeTrace());
    var event = events(trace, "X").getLast();
    assertThat(event.get("name").getAsString()).isEqualTo("a kernel <<<24>>>");
    assertThat(event.get("cat").getAsString()).isEqualTo("no step");
    assertThat(nanos(event, "ts")).as("all are shifted").isZero();
    assertThat(nanos(event, "dur")).isEqualTo(2_000);
    assertThat(events(trace, "M"))
        .filteredOn(each -> each.get("tid").equals(event.get("tid")))
        .filteredOn(each -> each.get("name").getAsString().equals("thread_name"))
        .extracting(each -> each.getAsJsonObject("args").get("name").getAsString())
        .containsExactly("no step");
  }
}
