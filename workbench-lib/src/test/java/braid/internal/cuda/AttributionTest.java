package braid.internal.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import braid.internal.work.Work;
import braid.model.Activity;
import braid.model.Span;
import braid.model.Stage;
import braid.natives.profiling.Cupti;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class AttributionTest {
  private static final long ORIGIN = 1_000_000;
  private static final int BYTES = 64;

  private final Attribution.Track comm = new Attribution.Track("comm");
  private final Attribution.Track gemm = new Attribution.Track("gemm");
  private final TreeMap<Long, Integer> turns = new TreeMap<>(Map.of(at(0), 0));
  private final List<Attribution.Operation> operations = new ArrayList<>();
  private final List<Cupti.Activity> activities = new ArrayList<>();

  private static long at(long nanos) {
    return ORIGIN + nanos;
  }

  private void enqueue(long id, Attribution.Track track, int group, Stage stage) {
    enqueue(id, track, group, null, stage);
  }

  private void enqueue(
      long id, Attribution.Track track, int group, @Nullable Integer iteration, Stage stage) {
    var work = new Work(3, () -> "operation " + id, () -> stage + " " + id);
    operations.add(new Attribution.Operation(id, track, group, iteration, work, stage, BYTES, 0));
  }

  private static Cupti.Correlation owner(long id) {
    return new Cupti.Correlation(id, id, 0, 0);
  }

  private void kernel(long id, long from, long to, String name) {
    activities.add(new Cupti.Kernel(owner(id), at(from), at(to), 7, name, 24));
  }

  private void copy(long id, long from, long to) {
    activities.add(new Cupti.Copy(owner(id), at(from), at(to), 7, 16, "copy engine", 10));
  }

  private void fill(long id, long from, long to) {
    activities.add(new Cupti.Fill(owner(id), at(from), at(to), 7, 4, "SMs"));
  }

  private Attribution.Result result() {
    var byStart = new ArrayList<>(activities);
    byStart.sort(Comparator.comparingLong(Cupti.Activity::startNanos));
    return Attribution.of(ORIGIN, turns, operations, byStart);
  }

  private List<Span> spans(Attribution.Track track) {
    return result().spans().getOrDefault(track, List.of());
  }

  @Test
  void anOperationInFlightIsOneSpanOfTheIterationThatEnqueuedIt() {
    turns.put(at(15), 1);
    turns.put(at(35), 2);
    enqueue(1, gemm, 1, 0, Stage.GEMM);
    enqueue(2, gemm, 2, 1, Stage.GEMM);
    kernel(1, 10, 30, "product");
    kernel(1, 31, 34, "sum of parts");
    kernel(2, 36, 60, "product");
    kernel(2, 61, 64, "sum of parts");
    assertThat(spans(gemm))
        .extracting(Span::iteration, Span::startNanos, Span::endNanos)
        .containsExactly(tuple(0, 10L, 34L), tuple(1, 36L, 64L));
  }

  @Test
  void aSpanKeepsEveryActivityOfItsOperation() {
    enqueue(1, comm, 1, Stage.COPY);
    fill(1, 10, 12);
    copy(1, 20, 90);
    kernel(1, 30, 40, "sync");
    copy(1, 35, 60);
    assertThat(spans(comm))
        .containsExactly(
            new Span(
                0,
                3,
                Stage.COPY,
                "comm",
                10,
                90,
                BYTES,
                0,
                List.of(
                    new Activity(Activity.Kind.FILL, "fill: SMs", 10, 12, 4),
                    new Activity(Activity.Kind.COPY, "copy engine", 20, 90, 16),
                    new Activity(Activity.Kind.KERNEL, "sync <<<24>>>", 30, 40, 0),
                    new Activity(Activity.Kind.COPY, "copy engine", 35, 60, 16)),
                "COPY 1"));
    assertThat(result().unowned()).isEmpty();
  }

  @Test
  void theOnlyKernelOfAnOperationMovesItsBytes() {
    enqueue(1, comm, 1, Stage.COPY);
    kernel(1, 10, 20, "copy");
    assertThat(spans(comm))
        .flatExtracting(Span::activities)
        .containsExactly(new Activity(Activity.Kind.KERNEL, "copy <<<24>>>", 10, 20, BYTES));
  }

  @Test
  void activitiesOfNoOperationAreKeptApart() {
    enqueue(1, comm, 1, Stage.COPY);
    copy(1, 10, 20);
    kernel(-1, 12, 15, "of nobody");
    kernel(77, 16, 18, "of an earlier profile");
    assertThat(spans(comm)).flatExtracting(Span::activities).hasSize(1);
    assertThat(result().unowned())
        .containsExactly(
            new Activity(Activity.Kind.KERNEL, "of nobody <<<24>>>", 12, 15, 0),
            new Activity(Activity.Kind.KERNEL, "of an earlier profile <<<24>>>", 16, 18, 0));
  }

  @Test
  void activitiesBeforeAnyIterationAreKeptApart() {
    turns.clear();
    enqueue(1, comm, 1, Stage.COPY);
    copy(1, 10, 20);
    assertThat(result().spans()).isEmpty();
    assertThat(result().unowned()).hasSize(1);
  }

  @Test
  void anErrorOfTheClocksLosesNoActivity() {
    enqueue(1, comm, 1, Stage.COPY);
    copy(1, -5, 20);
    assertThat(spans(comm)).extracting(Span::startNanos).containsExactly(-5L);
  }

  /// Each collective has its own turn.
  @Test
  void anIterationKeepsAllOfItsCollectives() {
    turns.put(at(10_000), 0);
    turns.put(at(20_000), 1);
    for (int group = 1; group <= 3; group++) {
      enqueue(0, comm, group, Stage.WAIT);
      enqueue(group, comm, group, Stage.COPY);
      copy(group, 10_000L * (group - 1) + 5_000, 10_000L * (group - 1) + 6_000);
    }
    assertThat(spans(comm))
        .extracting(Span::iteration, Span::stage, Span::startNanos, Span::endNanos)
        .containsExactly(
            tuple(0, Stage.WAIT, 0L, 5_000L),
            tuple(0, Stage.COPY, 5_000L, 6_000L),
            tuple(0, Stage.WAIT, 10_000L, 15_000L),
            tuple(0, Stage.COPY, 15_000L, 16_000L),
            tuple(1, Stage.WAIT, 20_000L, 25_000L),
            tuple(1, Stage.COPY, 25_000L, 26_000L));
  }

  /// Two graphs, for odd and even steps, replayed in turns.
  @Test
  void aReplayHasTheWaitsOfItsOwnGraph() {
    turns.put(at(10_000), 1);
    turns.put(at(20_000), 2);
    for (int graph = 1; graph <= 2; graph++) {
      enqueue(0, gemm, graph, Stage.WAIT);
      enqueue(graph, gemm, graph, Stage.GEMM);
    }
    kernel(1, 5_000, 6_000, "multiply");
    kernel(2, 15_000, 16_000, "multiply");
    kernel(1, 25_000, 26_000, "multiply");
    assertThat(spans(gemm))
        .extracting(Span::iteration, Span::label)
        .containsExactly(
            tuple(0, "WAIT 0"),
            tuple(0, "GEMM 1"),
            tuple(1, "WAIT 0"),
            tuple(1, "GEMM 2"),
            tuple(2, "WAIT 0"),
            tuple(2, "GEMM 1"));
  }

  /// Links of a chain have streams of the same names.
  @Test
  void streamsOfOneNameKeepTheirOwnSpans() {
    var other = new Attribution.Track("comm");
    enqueue(1, comm, 1, Stage.COPY);
    enqueue(2, other, 1, Stage.COPY);
    copy(1, 10, 20);
    copy(2, 30, 40);
    assertThat(spans(comm)).extracting(Span::label).containsExactly("COPY 1");
    assertThat(spans(other)).extracting(Span::label).containsExactly("COPY 2");
  }

  @Test
  void c2EveryActivityIsInExactlyOnePlace() {
    long seed = System.nanoTime();
    var random = new SplittableRandom(seed);
    for (int group = 1; group <= 20; group++) {
      turns.put(at(100L * group), group / 3);
      for (int i = 0; i < 5; i++) {
        boolean waits = random.nextInt(4) == 0;
        var track = random.nextBoolean() ? comm : gemm;
        enqueue(waits ? 0 : 5L * group + i, track, group, waits ? Stage.WAIT : Stage.COPY);
      }
    }
    var names = new HashMap<String, Integer>();
    for (int i = 0; i < 300; i++) {
      long from = random.nextLong(-50, 2_500);
      var name = "kernel " + i;
      kernel(random.nextInt(-1, 110), from, from + random.nextInt(200), name);
      names.put(name + " <<<24>>>", 1);
    }
    var found = new HashMap<String, Integer>();
    var result = result();
    Stream.concat(
            result.spans().values().stream().flatMap(List::stream).map(Span::activities),
            Stream.of(result.unowned()))
        .flatMap(List::stream)
        .forEach(each -> found.merge(each.engine(), 1, Integer::sum));
    assertThat(found).as("seed %d", seed).isEqualTo(names);
  }
}
