package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.internal.report.chart.ChartImage;
import braid.internal.report.json.ProfileJson;
import braid.model.BraidException;
import braid.model.HostLoad;
import braid.model.MimeBundle;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProfileSetTest {
  /// Copies of 10 ns each, and GEMMs of 10 ns each that start when their copy is complete: all four
  /// copies but the first run beside a GEMM, all four GEMMs but the last beside a copy.
  private static final SyntheticProfiles LOCKSTEP = new SyntheticProfiles(2, 3, 4, 1, 10, 10);

  @Test
  void bothMeasuresOfOverlapAreExact() {
    var stages = LOCKSTEP.set().stages();

    assertThat(stages.doubleColumn("iteration ms").get(0)).isEqualTo(50e-6, within(1e-15));
    assertThat(stages.doubleColumn("gemm ms").get(0)).isEqualTo(40e-6, within(1e-15));
    assertThat(stages.doubleColumn("copy %").get(0)).isEqualTo(80, within(1e-9));
    assertThat(stages.doubleColumn("overlapped ms").get(0)).isEqualTo(30e-6, within(1e-15));
    assertThat(stages.doubleColumn("idle ms").get(0)).isZero();
    // (40 + 40 - 50) / min(40, 40) and 30 / 40
    assertThat(stages.doubleColumn("saved ÷ savable").get(0)).isEqualTo(0.75, within(1e-12));
    assertThat(stages.doubleColumn("overlapped ÷ communication").get(0))
        .isEqualTo(0.75, within(1e-12));
  }

  @Test
  void theUnfusedRunsTimesChargeOverlapForSlowingBothDown() {
    var unfused = new SyntheticProfiles(2, 1, 1, 1, 30, 35).set();
    var stages = LOCKSTEP.set().stages(unfused);

    // (35 + 30 - 50) / min(35, 30)
    assertThat(stages.doubleColumn("saved ÷ savable").get(0)).isEqualTo(0.5, within(1e-12));
  }

  @Test
  void theFirstStartOfAStageIsAShareOfTheIteration() {
    var spans =
        List.of(
            new Span(0, 0, Stage.GEMM, "math", 100, 140, 0, 1),
            new Span(0, 1, Stage.COPY, "comm", 130, 200, 8, 0),
            new Span(0, 0, Stage.COPY, "comm", 125, 130, 8, 0),
            new Span(1, 0, Stage.COPY, "comm", 300, 350, 8, 0),
            new Span(1, 0, Stage.GEMM, "math", 310, 400, 0, 1));
    var set = ProfileSet.of(List.of(profile(0, 1, List.of(100L, 100L), spans)));
    // 25 of 100 in the first iteration, 0 of 100 in the second.
    assertThat(set.firstStart(Stage.COPY)).isEqualTo(0.125, within(1e-12));
    assertThat(set.firstStart(Stage.GEMM)).isEqualTo(0.05, within(1e-12));
    assertThat(set.firstStart(Stage.REDUCE)).isEqualTo(1);
  }

  @Test
  void withNothingToOverlapTheRatiosAreMissing() {
    var gemm = new Span(0, -1, Stage.GEMM, "compute", 0, 80, 0, 1);
    var stages = ProfileSet.of(List.of(profile(0, 1, List.of(100L), List.of(gemm)))).stages();

    assertThat(stages.doubleColumn("saved ÷ savable").isMissing(0)).isTrue();
    assertThat(stages.doubleColumn("overlapped ÷ communication").isMissing(0)).isTrue();
    assertThat(stages.doubleColumn("idle ms").get(0)).isEqualTo(20e-6, within(1e-15));
  }

  @Test
  void profilingStatesItsCost() {
    var first = plain(0, List.of(110L, 150L, 120L), List.of(90L, 100L));
    var second = plain(1, List.of(130L, 140L, 110L), List.of(100L, 60L));
    assertThat(first.cost()).hasValue(120 / 95.0);
    assertThat(ProfileJson.readAll(ProfileJson.writeAll(List.of(first)))).containsExactly(first);

    // Slowest ranks: 130, 150, 120 with profiling, 100 and 100 without.
    var set = ProfileSet.of(List.of(first, second));
    assertThat(set.cost()).hasValue(1.3);
    assertThat(set.headline()).as("inside the noise of 3 and 2 iterations").doesNotContain("÷");
    assertThat(LOCKSTEP.set().cost()).isEmpty();
    assertThat(LOCKSTEP.set().headline()).doesNotContain("profiling");
  }

  /// Reported case: "with profiling ÷ without: 0.65".
  @Test
  void aCostInsideTheNoiseIsNotPrinted() {
    var noisy = List.of(100L, 310L, 90L, 280L, 120L, 95L, 260L, 105L);
    var slower = noisy.stream().map(nanos -> nanos + 30).toList();
    var faster = noisy.stream().map(nanos -> Math.round(0.65 * nanos)).toList();
    for (var profiled : List.of(slower, faster)) {
      var set = ProfileSet.of(List.of(plain(0, profiled, noisy), plain(1, profiled, noisy)));
      assertThat(set.cost()).isPresent();
      assertThat(set.headline()).doesNotContain("÷");
    }
    var steady = List.of(100L, 101L, 102L, 99L, 98L, 100L, 103L, 97L);
    var profiled = steady.stream().map(nanos -> nanos + 30).toList();
    var set = ProfileSet.of(List.of(plain(0, profiled, steady), plain(1, profiled, steady)));
    assertThat(set.headline()).endsWith("; with profiling ÷ without: 1.30");
  }

  /// Reported case: −22.57 of a communication that takes a thousandth of the iteration.
  @Test
  void aRatioToNothingSavableIsMissing() {
    var gemm = new Span(0, 0, Stage.GEMM, "gemm", 0, 900_000, 0, 1);
    var copy = new Span(0, 0, Stage.COPY, "comm", 900_000, 909_000, 1, 0);
    var other = profile(1, 2, List.of(1_112_000L), List.of(gemm, copy));
    var set =
        ProfileSet.of(List.of(profile(0, 2, List.of(1_112_000L), List.of(gemm, copy)), other));
    assertThat(set.stages().doubleColumn("saved ÷ savable").isMissing(0)).isTrue();
    assertThat(set.overview().doubleColumn("saved ÷ savable").isMissing(0)).isTrue();
    var longer = new Span(0, 0, Stage.COPY, "comm", 900_000, 930_000, 1, 0);
    var counted =
        ProfileSet.of(
            List.of(
                profile(0, 2, List.of(1_112_000L), List.of(gemm, longer)),
                profile(1, 2, List.of(1_112_000L), List.of(gemm, longer))));
    assertThat(counted.stages().doubleColumn("saved ÷ savable").get(0))
        .isEqualTo(-182 / 30.0, within(1e-9));
  }

  /// Reported case: an overlapped time of 2.294e-16 ms, which is the rounding of a difference.
  @Test
  void roundingIsNoTime() {
    var spans = new ArrayList<Span>();
    long index = 0;
    for (int i = 0; i < 7; i++) {
      spans.add(new Span(i, 0, Stage.GEMM, "gemm", index, index + 1_000_003 + i, 0, 1));
      index += 1_000_003 + i;
      spans.add(new Span(i, 0, Stage.COPY, "comm", index, index + 333_331 + i, 1, 0));
      index += 333_331 + i;
    }
    var nanos = Collections.nCopies(7, index / 7 + 1);
    var set = ProfileSet.of(List.of(profile(0, 2, nanos, spans), profile(1, 2, nanos, spans)));
    assertThat(set.stages().doubleColumn("overlapped ms").get(0)).isZero();
    assertThat(set.overview().doubleColumn("overlapped ÷ communication").get(0)).isZero();
  }

  @Test
  void attentionIsCalledAttention() {
    var attend = new Span(0, 0, Stage.ATTENTION, "attend-0", 0, 80_000, 0, 1);
    var copy = new Span(0, 0, Stage.COPY, "comm", 60_000, 95_000, 1, 0);
    var set =
        ProfileSet.of(
            List.of(
                profile(0, 2, List.of(100_000L), List.of(attend, copy)),
                profile(1, 2, List.of(100_000L), List.of(attend, copy))));
    assertThat(set.stages().columnNames())
        .contains("attention ms")
        .noneMatch(n -> n.contains("gemm"));
    assertThat(set.overview().columnNames()).contains("attention ms");
    assertThat(set.overview().doubleColumn("exposed ms").get(0)).isEqualTo(0.015, within(1e-12));
    assertThat(set.stages().doubleColumn("overlapped ms").get(0)).isEqualTo(0.02, within(1e-12));
    assertThat(set.chromeTrace()).contains("\"cat\":\"attention\"");
    for (var chart : List.of(set.breakdown(), set.timeline())) {
      assertThat(ChartImage.svg(chart)).contains("attention").doesNotContain("GEMM");
    }
    assertThat(set.display().text()).contains("no attention does").doesNotContain("GEMM");
    var both =
        ProfileSet.of(
            List.of(
                profile(
                    0,
                    1,
                    List.of(100_000L),
                    List.of(attend, new Span(0, 0, Stage.GEMM, "g", 80_000, 90_000, 0, 1)))));
    assertThat(both.overview().columnNames()).contains("compute ms");
  }

  private static Profile plain(int rank, List<Long> nanos, List<Long> plainNanos) {
    return new Profile(
        new Place(rank, 2),
        new LinkedHashMap<>(),
        nanos,
        List.of(),
        0,
        new LinkedHashMap<>(),
        plainNanos,
        List.of(),
        List.of(),
        Optional.empty(),
        Optional.empty());
  }

  @Test
  void reducingIsCommunication() {
    var spans =
        List.of(
            new Span(0, 0, Stage.GEMM, "gemm-0", 0, 50, 0, 1),
            new Span(0, 0, Stage.COPY, "comm", 40, 60, 1, 0),
            new Span(0, 0, Stage.REDUCE, "reduce", 55, 80, 1, 0),
            new Span(0, 0, Stage.WAIT, "comm", 0, 40, 0, 0),
            new Span(0, 0, Stage.SIGNAL, "reduce", 80, 81, 0, 0));
    var stages =
        ProfileSet.of(
                List.of(profile(0, 2, List.of(100L), spans), profile(1, 2, List.of(100L), spans)))
            .stages();

    assertThat(stages.doubleColumn("reduce ms").get(0)).isEqualTo(25e-6, within(1e-15));
    assertThat(stages.doubleColumn("overlapped ms").get(0)).isEqualTo(10e-6, within(1e-15));
    assertThat(stages.doubleColumn("idle ms").get(0)).isEqualTo(20e-6, within(1e-15));
    // Copying and reducing together take 40..80, of which 40..50 beside the GEMM.
    assertThat(stages.doubleColumn("overlapped ÷ communication").get(0))
        .isEqualTo(10.0 / 40, within(1e-12));
    // (50 + 40 - 100) / min(50, 40)
    assertThat(stages.doubleColumn("saved ÷ savable").get(0)).isEqualTo(-0.25, within(1e-12));
  }

  @Test
  void copiesWithinARankAreWorkButNoCommunication() {
    var spans =
        List.of(
            new Span(0, 0, Stage.GEMM, "gemm-0", 0, 50, 0, 1),
            new Span(0, 0, Stage.COPY, "comm", 40, 60, 1, 0),
            new Span(0, 0, Stage.LOCAL, "finish", 30, 90, 1, 0));
    var own = profile(0, 2, List.of(100L), spans);
    var stages = ProfileSet.of(List.of(own, profile(1, 2, List.of(100L), spans))).stages();

    assertThat(stages.doubleColumn("local ms").get(0)).isEqualTo(60e-6, within(1e-15));
    assertThat(stages.doubleColumn("idle ms").get(0)).isEqualTo(10e-6, within(1e-15));
    assertThat(stages.doubleColumn("overlapped ÷ communication").get(0))
        .isEqualTo(10.0 / 20, within(1e-12));
  }

  @Test
  void oneRankAloneCommunicatesNothing() {
    var spans =
        List.of(
            new Span(0, 0, Stage.GEMM, "gemm-0", 0, 50, 0, 1),
            new Span(0, 0, Stage.COPY, "comm", 40, 60, 1, 0),
            new Span(0, 0, Stage.REDUCE, "reduce", 60, 80, 1, 0));
    var set = ProfileSet.of(List.of(profile(0, 1, List.of(100L), spans)));
    var stages = set.stages();

    assertThat(stages.doubleColumn("overlapped ÷ communication").isMissing(0)).isTrue();
    assertThat(stages.doubleColumn("saved ÷ savable").isMissing(0)).isTrue();
    assertThat(stages.doubleColumn("overlapped ms").get(0)).isZero();
    assertThat(stages.doubleColumn("reduce ms").get(0)).isEqualTo(20e-6, within(1e-15));
    assertThat(stages.doubleColumn("idle ms").get(0)).isEqualTo(20e-6, within(1e-15));
    assertThat(set.breakdown().getTitle().getText())
        .isEqualTo("Nothing is communicated; 20% is idle");
  }

  @Test
  void countersAreATableBelowTheStages() {
    var set = new SyntheticReduction(3, 2, 2, 1, 10, 10).set();
    var counters = set.counters();

    assertThat(counters.columnNames())
        .containsExactly(
            "rank",
            "rendezvous",
            "buffers allocated",
            "buffers reused",
            "plans made",
            "plans reused",
            "replays");
    assertThat(counters.longColumn("plans reused").asList()).containsExactly(0L, 1L, 2L);
    assertThat(set.tables()).containsOnlyKeys("stages", "counters", "spans");
    assertThat(counters.stringColumn("rank").asList()).containsExactly("0", "1", "2");
    assertThat(set.display().text()).contains("profiles.latest().stages(), .counters(), ");
    assertThat(LOCKSTEP.set().tables()).containsOnlyKeys("stages", "spans");
    assertThat(LOCKSTEP.set().display().text()).doesNotContain("counters()");
  }

  @Test
  void theDisplayLeadsWithTheBreakdownAndExposedCommunication() {
    var set = new SyntheticReduction(3, 2, 2, 1, 10, 10).set();
    var html = set.display().data().getOrDefault(MimeBundle.HTML, "");

    assertThat(html)
        .containsSubsequence(
            set.headline().substring(0, 20),
            "<img",
            "exposed ms",
            "iteration ms",
            "<img",
            "exposed:");
    assertThat(html).doesNotContain("integer", "wait ms");
    assertThat(set.charts().sequencedKeySet()).containsExactly("breakdown", "timeline");
    assertThat(set.overview().columnNames())
        .startsWith("rank", "exposed ms", "iteration ms", "gemm ms", "communication ms", "idle ms");
    assertThat(set.headline())
        .startsWith("GEMM → all-reduce, 8192×8192×2048 fp32: pipelined, 2 splits: ")
        .doesNotContain("=");
  }

  @Test
  void ranksWithTheSameNumbersShareARow() {
    var same = List.of(new Span(0, 0, Stage.GEMM, "gemm", 0, 50, 0, 1));
    var other = List.of(new Span(0, 0, Stage.GEMM, "gemm", 0, 60, 0, 1));
    var profiles = new ArrayList<Profile>();
    for (int rank = 0; rank < 6; rank++) {
      profiles.add(profile(rank, 6, List.of(100L), rank == 1 ? other : same));
    }
    var overview = ProfileSet.of(profiles).overview();

    assertThat(overview.stringColumn("rank").asList()).containsExactly("0, 2 to 5", "1");
    assertThat(overview.doubleColumn("gemm ms").get(0)).isEqualTo(50e-6, within(1e-15));
    assertThat(overview.doubleColumn("gemm ms").get(1)).isEqualTo(60e-6, within(1e-15));
  }

  /// Two iterations of two ranks: 10 and 30 exposed on rank 0, 20 and 5 on rank 1.
  @Test
  void exposedCommunicationIsThatOfTheRankWithTheMost() {
    var zero =
        List.of(
            new Span(0, 0, Stage.COPY, "comm", 0, 40, 1, 0),
            new Span(0, 0, Stage.GEMM, "gemm", 10, 90, 0, 1),
            new Span(1, 0, Stage.COPY, "comm", 100, 130, 1, 0),
            new Span(1, 0, Stage.GEMM, "gemm", 130, 190, 0, 1));
    var one =
        List.of(
            new Span(0, 0, Stage.REDUCE, "comm", 60, 80, 1, 0),
            new Span(0, 0, Stage.GEMM, "gemm", 0, 60, 0, 1),
            new Span(1, 0, Stage.COPY, "comm", 100, 130, 1, 0),
            new Span(1, 0, Stage.GEMM, "gemm", 105, 190, 0, 1));
    var nanos = List.of(100L, 100L);
    var set = ProfileSet.of(List.of(profile(0, 2, nanos, zero), profile(1, 2, nanos, one)));

    assertThat(set.exposedNanos()).isEqualTo((20 + 30) / 2.0);
    assertThat(set.overview().doubleColumn("exposed ms").get(0)).isEqualTo(20e-6, within(1e-15));
    assertThat(set.overview().doubleColumn("exposed ms").get(1)).isEqualTo(12.5e-6, within(1e-15));
  }

  @Test
  void configurationsHaveNamesThatDiffer() {
    var four = new SyntheticProfiles(2, 3, 4, 1, 10, 10).set();
    var eight = new SyntheticProfiles(2, 3, 8, 1, 10, 10).set();
    var table = ProfileSet.compared(List.of(four, eight, four));

    assertThat(table.stringColumn("configuration").asList())
        .containsExactly("4 splits, run 1", "8 splits", "4 splits, run 2");
    assertThat(table.columnNames())
        .containsSubsequence("configuration", "splits", "exposed ms", "median ms", "GB/s");
    var shown = Evidence.overview(List.of(four, eight, four));
    var html = shown.data().getOrDefault(MimeBundle.HTML, "");
    assertThat(html).containsSubsequence("2 configurations; least", "<img", "4 splits", "8 splits");
    assertThat(html).containsSubsequence("configuration", "exposed ms", "median ms", "GB/s");
    assertThat(Evidence.overview(List.of()).text()).isEqualTo("nothing has been measured yet");
  }

  @Test
  void aCounterThatOneRankLacksIsMissingThere() {
    var counted = new LinkedHashMap<String, Long>();
    counted.put("rendezvous", 5L);
    var one = profile(0, 2, List.of(1L), List.of());
    var other =
        new Profile(
            new Place(1, 2),
            one.configuration(),
            List.of(1L),
            List.of(),
            0,
            counted,
            List.of(),
            List.of(),
            List.of(),
            Optional.empty(),
            Optional.empty());
    var column = ProfileSet.of(List.of(one, other)).counters().longColumn("rendezvous");

    assertThat(column.isMissing(0)).isTrue();
    assertThat(column.get(1)).isEqualTo(5);
  }

  @Test
  void otherProcessesMakeAProfileDoubtful() {
    assertThat(loaded(new HostLoad(1.82, 2, 15.2)).headline())
        .containsOnlyOnce("; doubtful: load 15 on 2 cores: other processes kept 1.8 of them busy");
    assertThat(loaded(new HostLoad(0.5, 2, 15)).headline()).doesNotContain("doubtful");
  }

  /// Returns a set of which rank 0 has the load, written and read again.
  private static ProfileSet loaded(HostLoad load) {
    var first =
        new Profile(
            new Place(0, 2),
            new LinkedHashMap<>(),
            List.of(1L),
            List.of(),
            0,
            new LinkedHashMap<>(),
            List.of(),
            List.of(),
            List.of(),
            Optional.of(load),
            Optional.empty());
    var set = ProfileSet.of(List.of(first, profile(1, 2, List.of(1L), List.of())));
    var read = ProfileJson.readAll(ProfileJson.writeAll(set.profiles()));
    assertThat(read).isEqualTo(set.profiles());
    return ProfileSet.of(read);
  }

  @Test
  void aTraceIsSavedWholeOrNotAtAll(@TempDir Path directory) throws IOException {
    var set = LOCKSTEP.set();
    var file = directory.resolve("trace.json");

    assertThat(set.saveChromeTrace(file)).isEqualTo(file);
    assertThat(set.saveChromeTrace(file)).as("again, in its place").isEqualTo(file);
    assertThat(file).hasContent(set.chromeTrace());
    assertThatThrownBy(() -> set.saveChromeTrace(directory.resolve("none/trace.json")))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("the trace could not be saved in " + directory)
        .hasMessageMatching("[^\\n]*");
    assertThatThrownBy(() -> set.saveChromeTrace(directory)).isInstanceOf(BraidException.class);
    try (var files = Files.list(directory)) {
      assertThat(files).containsExactly(file);
    }
  }

  @Test
  void anIterationLastsAsLongAsItsSlowestRank() {
    var set =
        ProfileSet.of(
            List.of(
                profile(1, 2, List.of(10L, 40L, 30L), List.of()),
                profile(0, 2, List.of(20L, 10L, 30L), List.of())));

    assertThat(set.slowestNanos(0)).isEqualTo(20);
    assertThat(set.slowestNanos(1)).isEqualTo(40);
    assertThat(set.summary().medianNanos()).isEqualTo(30);
    assertThat(set.summary().p10Nanos()).isEqualTo(22, within(1e-9));
    assertThat(set.summary().p90Nanos()).isEqualTo(38, within(1e-9));
    assertThat(set.medianIteration()).isEqualTo(2);
    assertThatThrownBy(() -> set.slowestNanos(3)).hasMessage("iteration must be 0..2 but was 3");
    assertThatThrownBy(set::timeline).hasMessageContaining("needs spans");
    assertThat(set.display().text()).contains("30");
  }

  @Test
  void aRowForEverySpanWithTheConfiguration() {
    var run = new SyntheticProfiles(2, 3, 4, 2, 10, 20);
    var table = run.set().table();

    int spans = run.set().profiles().stream().mapToInt(p -> p.spans().size()).sum();
    assertThat(table.rowCount()).isEqualTo(spans);
    assertThat(table.columnNames())
        .containsExactly(
            "rank",
            "iteration",
            "chunk",
            "stage",
            "stream",
            "start ms",
            "ms",
            "bytes",
            "flops",
            "engine",
            "pattern",
            "m",
            "n",
            "k",
            "dtype",
            "method",
            "splits",
            "streams");
    var gemms = table.where(table.stringColumn("stage").isEqualTo("gemm"));
    assertThat(gemms.rowCount()).isEqualTo(2 * 3 * 4);
    assertThat(gemms.longColumn("flops").asList()).containsOnly(2_000L);
    assertThat(table.intColumn("splits").asList()).containsOnly(4);
  }

  @Test
  void gapsAndMixturesAreRefused() {
    var whole = new SyntheticProfiles(4, 2, 4, 1, 10, 10);
    var other = new SyntheticProfiles(4, 2, 8, 1, 10, 10);
    var longer = new SyntheticProfiles(4, 3, 4, 1, 10, 10);
    var p = List.of(whole.profile(0), whole.profile(1), whole.profile(2));

    assertThatThrownBy(() -> ProfileSet.of(List.of())).hasMessageContaining("has none");
    assertThatThrownBy(() -> ProfileSet.of(p))
        .hasMessage("a profile set needs one profile of each rank 0..3 but rank 3 has 0");
    assertThatThrownBy(() -> ProfileSet.of(List.of(p.get(0), p.get(1), p.get(1), p.get(2))))
        .hasMessage("a profile set needs one profile of each rank 0..3 but rank 1 has 2");
    assertThatThrownBy(() -> ProfileSet.of(List.of(p.get(0), p.get(1), p.get(2), other.profile(3))))
        .hasMessage("profiles of one set must agree in `splits` but rank 0 has 4 and rank 3 has 8");
    assertThatThrownBy(
            () -> ProfileSet.of(List.of(p.get(0), p.get(1), p.get(2), longer.profile(3))))
        .hasMessage(
            "profiles of one set must agree in iterations but rank 0 has 2 and rank 3 has 3");
  }

  private static Profile profile(int rank, int size, List<Long> nanos, List<Span> spans) {
    return new Profile(new Place(rank, size), new LinkedHashMap<>(), nanos, spans, 0);
  }
}
