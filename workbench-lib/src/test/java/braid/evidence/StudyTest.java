package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.Configuration.Named;
import braid.model.GemmSpec;
import braid.model.HardwareReading;
import braid.model.HostLoad;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class StudyTest {
  private static final int[] SPLITS = {1, 2, 4, 8, 16, 32};
  private static final SyntheticStudy MACHINE = new SyntheticStudy(103e6, 0.005, 12, 7);

  private static Study<Overlap> study() {
    return MACHINE.of(
        SyntheticStudy.overlaps(SPLITS, 1, 2), SyntheticStudy.model(75e6, 28e6, 0.6e6));
  }

  private static Study<Named> steps(long... others) {
    var problem = new LinkedHashMap<String, String>();
    problem.put("steps", "backward");
    problem.put("backend", "host");
    var trials = new ArrayList<Study.Trial<Named>>();
    for (int i = 0; i < others.length; i++) {
      trials.add(
          new Study.Trial<>(new Named("way " + (i + 1)), Collections.nCopies(12, others[i])));
    }
    return new Study<>(
        problem,
        4,
        1,
        Collections.nCopies(12, 100_000_000L),
        Collections.nCopies(12, 100_000_000L),
        trials,
        List.of(),
        new Named("plain"),
        Optional.empty(),
        0,
        List.of(),
        List.of(),
        Optional.empty());
  }

  @Test
  void stepsHaveTheNamesThatTheyWereGiven() {
    var study = steps(80_000_000, 90_000_000);
    var first = study.configuration("way 1");
    assertThat(study.best()).isEqualTo(first).hasToString("way 1");
    assertThat(study.simplest()).isEqualTo(first);
    assertThat(study.fastest()).isEqualTo(first);
    assertThat(study.ties()).isEmpty();
    assertThat(study.medianNanos(study.configuration("way 2"))).isEqualTo(90e6);
    assertThat(study.medianNanos(study.configuration("plain"))).isEqualTo(100e6);
    assertThat(study.excess(first, study.configuration("way 2")).value())
        .isCloseTo(-1.0 / 9, within(1e-12));
    assertThat(study.excess(study.reference(), first).value()).isCloseTo(0.25, within(1e-12));
    assertThat(study.headline())
        .startsWith("way 1: 80.0 ms, 20.0% less than plain's 100 ms (")
        .doesNotContain("unfused");
    assertThat(study.finding()).isEqualTo("way 1: 20.0% less time than plain (20.0% to 20.0%)");
    assertThat(study.setting()).isEqualTo("backward, 4 ranks; host backend");
    var table = study.table();
    assertThat(table.stringColumn("step").asList()).containsExactly("plain", "way 1", "way 2");
    assertThat(table.doubleColumn("vs reference %").asDoubleArray())
        .containsExactly(new double[] {0, -20, -10}, within(1e-9));
    assertThat(table.stringColumn("verdict").asList())
        .containsExactly("reference", "best", "better");
    assertThat(study.charts()).containsOnlyKeys("configurations");
    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);

    var slower = steps(130_000_000);
    assertThat(slower.best()).isEqualTo(slower.reference()).hasToString("plain");
    assertThat(slower.headline()).startsWith("no step beats plain (100 ms): 1 slower; noise ±0.0%");
    assertThat(slower.finding()).isEqualTo("No step beats plain: 1 slower");

    assertThatThrownBy(study::heatmap).hasMessageStartingWith("a heat map shows splits");
    assertThatThrownBy(() -> study.configuration("way 3"))
        .hasMessageStartingWith("a configuration must be one of this study's 2 but was way 3");
  }

  @Test
  void stepsAreComparedAcrossStudiesByNameAndReference() {
    var comparison = Comparison.of(steps(80_000_000, 90_000_000), steps(80_000_000, 120_000_000));
    assertThat(comparison.rows())
        .extracting(row -> row.configuration() + " " + row.verdict())
        .containsExactly("plain SAME", "way 1 SAME", "way 2 SLOW");
    var other = steps(80_000_000);
    var renamed =
        new Study<>(
            other.problem(),
            other.ranks(),
            other.seed(),
            other.unfusedFirst(),
            other.unfusedAgain(),
            other.trials(),
            List.of(),
            new Named("simple"),
            Optional.empty(),
            0,
            List.of(),
            List.of(),
            Optional.empty());
    assertThatThrownBy(() -> Comparison.of(other, renamed))
        .hasMessageContaining("reference: plain and simple");
  }

  @Test
  void studiesOfSeveralShapesAreOneTable() {
    var table =
        Study.compared(
            List.of(
                ofShape(64, Overlap.pipelined(2), Overlap.ring()),
                ofShape(128, Overlap.pipelined(2))));
    assertThat(table.columnNames()).startsWith("m", "method").doesNotContain("n", "pattern");
    assertThat(table.intColumn("m").asList()).containsExactly(64, 64, 128);
    assertThat(table.stringColumn("method").asList())
        .containsExactly("pipelined", "ring", "pipelined");
    // 100 ms unfused, and as many nanoseconds less as rows.
    assertThat(table.doubleColumn("median ms").asList())
        .containsExactly(100 - 64e-6, 100 - 64e-6, 100 - 128e-6);
    assertThat(table.doubleColumn("vs unfused %").getDouble(2)).isCloseTo(-128e-6, within(1e-9));
    assertThatThrownBy(() -> Study.compared(List.of()))
        .hasMessage("a table of studies needs 1 or more of them but has none");
  }

  private static Study<Overlap> ofShape(int m, Overlap... overlaps) {
    return new Study<>(
        GemmSpec.allGatherGemm(m, 64, 64).columns(),
        2,
        1,
        Collections.nCopies(12, 100_000_000L),
        Collections.nCopies(12, 100_000_000L),
        List.of(overlaps).stream()
            .map(tuning -> new Study.Trial<>(tuning, Collections.nCopies(12, 100_000_000L - m)))
            .toList(),
        Overlap.unfused());
  }

  @Test
  void aStudyFindsTheBestAndNamesIt() {
    var study = study();

    assertThat(study.best().streams()).isEqualTo(2);
    assertThat(study.best().splits()).isIn(8, 16);
    assertThat(study.noise()).isBetween(0.0, 0.02);
    assertThat(study.ties())
        .doesNotContain(study.best(), Overlap.pipelined(1), Overlap.pipelined(32));
    assertThat(study.headline())
        .startsWith(study.best().splits() + " splits, 2 streams: 8")
        .contains("less than unfused's 103 ms (")
        .contains("with 96% confidence")
        .doesNotContain("\n");
  }

  /// Reported case: times of 10 to 13 ms, one disturbed round of 8, and a noise of ±747.8%.
  @Test
  void oneDisturbedRoundDoesNotMakeTheNoise() {
    var first = List.of(10_100L, 12_200L, 11_000L, 10_600L, 12_900L, 11_700L, 10_400L, 11_300L);
    var again = List.of(10_400L, 12_000L, 11_400L, 10_200L, 12_500L, 11_900L, 97_000L, 11_200L);
    var study =
        new Study<>(
            GemmSpec.allGatherGemm(64, 64, 64).columns(),
            2,
            1,
            first,
            again,
            List.of(new Study.Trial<>(Overlap.pipelined(2), first)),
            Overlap.unfused());
    assertThat(study.noise()).isLessThan(0.06);
  }

  @Test
  void anUndecidedStudySaysWhatWouldDecide() {
    var noisy =
        new SyntheticStudy(103e6, 0.06, 24, 7)
            .of(SyntheticStudy.overlaps(SPLITS, 1), SyntheticStudy.model(75e6, 28e6, 0.6e6));
    assertThat(noisy.undecided()).isNotEmpty();
    assertThat(noisy.advice().orElseThrow())
        .matches(
            "about \\d+ rounds would decide between \\d+ splits and .*, and 24 were measured;"
                + " raise the budget or quiet the machine");
    assertThat(noisy.headline()).endsWith("; " + noisy.advice().orElseThrow());

    var quiet =
        new SyntheticStudy(103e6, 0.001, 24, 7)
            .of(SyntheticStudy.overlaps(SPLITS, 1), SyntheticStudy.model(75e6, 28e6, 0.6e6));
    assertThat(quiet.precision()).isBetween(0.0, 0.01);
    assertThat(quiet.undecided()).isEmpty();
    assertThat(quiet.advice()).isEmpty();
  }

  @Test
  void aStudyNamesTooFewRoundsOnce() {
    var few =
        new SyntheticStudy(103e6, 0.001, 6, 7)
            .of(SyntheticStudy.overlaps(SPLITS, 1), SyntheticStudy.model(75e6, 28e6, 0.6e6));
    assertThat(few.best()).isEqualTo(Overlap.unfused());
    assertThat(few.ties()).isEmpty();
    assertThat(few.undecided()).hasSize(SPLITS.length);
    assertThat(few.finding()).startsWith("Too few rounds to decide: ");
    assertThat(few.headline()).startsWith("undecided: ").containsOnlyOnce("too few rounds");
    // 21 pairs share 5%, so 2 / 2^n must be at most 0.24%.
    assertThat(few.advice())
        .contains(
            "too few rounds to call anything better: 6 of the 10 that 6 configurations need;"
                + " measure more");
  }

  @Test
  void aStudyWithoutAWinnerAdvisesAgainstOverlap() {
    var study =
        MACHINE.of(SyntheticStudy.overlaps(SPLITS, 1), tuning -> 103e6 + 1e6 * tuning.splits());

    assertThat(study.best()).isEqualTo(Overlap.unfused());
    assertThat(study.headline())
        .startsWith("no overlap beats unfused (103 ms): ")
        .contains("slower");
    assertThat(study.table().stringColumn("verdict").get(0)).isEqualTo("reference, best");
    assertThat(study.saved().getLast().value()).isNegative();
  }

  @Test
  void theTableHasTheReferenceAndEveryConfiguration() {
    var study = study();
    var table = study.table();

    assertThat(table.rowCount()).isEqualTo(1 + study.trials().size());
    assertThat(table.columnNames())
        .containsExactly(
            "method",
            "splits",
            "streams",
            "transport",
            "verdict",
            "median ms",
            "p10 ms",
            "p90 ms",
            "vs unfused %",
            "from %",
            "to %");
    assertThat(table.stringColumn("method").get(0)).isEqualTo("unfused");
    for (int row = 1; row < table.rowCount(); row++) {
      var trial = study.trials().get(row - 1);
      assertThat(table.intColumn("splits").get(row)).isEqualTo(trial.configuration().splits());
      assertThat(table.doubleColumn("median ms").get(row)).isEqualTo(trial.medianNanos() / 1e6);
      assertThat(table.doubleColumn("vs unfused %").get(row))
          .isBetween(
              table.doubleColumn("from %").getDouble(row),
              table.doubleColumn("to %").getDouble(row));
    }
    assertThat(table.stringColumn("verdict").asList().stream().filter("best"::equals)).hasSize(1);
    assertThat(
            table.stringColumn("verdict").asList().stream()
                .filter(v -> v.endsWith("equal to best")))
        .hasSize(study.ties().size());
  }

  @Test
  void aStudyEqualsItsJson() {
    var study = study();
    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
  }

  private static final List<Overlap> OF_EVERY_OPTION =
      List.of(
          Overlap.pipelined(4),
          Overlap.ring(2).streams(3).over(Transport.WORKERS).workers(7),
          Overlap.bulk().over(Transport.WORKERS),
          Overlap.direct(3).order(ChunkOrder.RANK_ORDER).priority(Priority.GEMM),
          Overlap.pipelined(4).boundaries(0, 100, 101, 900).replay(),
          Overlap.pipelined(4).priority(Priority.EQUAL).outputInSymmetricMemory(),
          Overlap.pipelined(4).order(ChunkOrder.PREVIOUS_FIRST));

  @Test
  void everyOptionComesBackFromItsJson() {
    var study = MACHINE.of(OF_EVERY_OPTION, _ -> 80e6);

    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
    assertThat(Study.fromJson(study.toJson()).cast(Overlap.class).trials())
        .extracting(Study.Trial::configuration)
        .isEqualTo(OF_EVERY_OPTION);
  }

  @Test
  void aStudyOfTheFirstVersionIsReadAsItWas() {
    var old =
        """
        {"format":"braid.study/1","problem":{"m":"8"},"ranks":2,"seed":7,
         "unfusedNanos":[100,101],"unfusedAgainNanos":[101,100],"trials":[
          {"method":"DIRECT","splits":3,"streams":2,"transport":"COPY_ENGINE","nanos":[90,91]}]}
        """;

    assertThat(Study.fromJson(old).cast(Overlap.class).trials())
        .containsExactly(new Study.Trial<>(Overlap.direct(3).streams(2), List.of(90L, 91L)));
  }

  @Test
  void varyingOptionsAreFoundEvenIfTheFirstIsDefault() {
    var study = MACHINE.of(OF_EVERY_OPTION, tuning -> tuning.replayed() ? 70e6 : 90e6);

    assertThat(study.varying())
        .containsExactlyInAnyOrder(
            "method",
            "splits",
            "streams",
            "transport",
            "workers",
            "order",
            "priority",
            "boundaries",
            "replayed",
            "output in");
    assertThat(study.best()).isEqualTo(OF_EVERY_OPTION.get(4));
    assertThat(study.headline())
        .startsWith("pipelined, 3 splits, boundaries 0-100-101-900, replayed: 7");
    assertThat(study.table().columnNames()).contains("replayed", "boundaries", "output in");
    assertThat(study.charts()).containsOnlyKeys("configurations", "heatmap");
  }

  /// Reads a study of three rounds: unfused, and two configurations.
  private static Study<Overlap> read(
      HardwareReading unfused, HardwareReading first, HardwareReading second) {
    var times = List.of(100L, 101L, 102L);
    return new Study<>(
        GemmSpec.allGatherGemm(2048, 2048, 2048).columns(),
        2,
        7,
        times,
        times,
        List.of(
            new Study.Trial<>(Overlap.pipelined(2), times, Collections.nCopies(3, first)),
            new Study.Trial<>(Overlap.pipelined(4), times, Collections.nCopies(3, second))),
        Collections.nCopies(6, unfused),
        Overlap.unfused(),
        Optional.empty(),
        0,
        List.of(),
        List.of(),
        Optional.empty());
  }

  private static HardwareReading at(int mhz, String... heldBackBy) {
    return new HardwareReading(mhz, 650, 61, Set.of(heldBackBy));
  }

  @Test
  void readingsOfTheHardwareStandBesideTheTimes() {
    var study =
        read(
            at(1905),
            at(1890, "power cap"),
            new HardwareReading(1890, HardwareReading.UNKNOWN, 64, Set.of()));
    var table = study.table();

    assertThat(table.columnNames())
        .endsWith("to %", "SM clock MHz", "power W", "temperature C", "throttled by");
    assertThat(table.intColumn("SM clock MHz").asList()).containsExactly(1905, 1890, 1890);
    assertThat(table.intColumn("power W").isMissing(2)).isTrue();
    assertThat(table.intColumn("temperature C").asList()).containsExactly(61, 61, 64);
    assertThat(table.stringColumn("throttled by").asList())
        .containsExactly("nothing", "power cap (3 of 3)", "nothing");
    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
    assertThat(Study.fromJson(study.toJson()).doubts()).isEqualTo(study.doubts());
  }

  @Test
  void missingReadingsHaveNoColumn() {
    var onlyClocks =
        new HardwareReading(
            1905,
            HardwareReading.UNKNOWN,
            HardwareReading.UNKNOWN,
            Set.of("clocks set by application"));
    assertThat(read(onlyClocks, onlyClocks, onlyClocks).table().columnNames())
        .endsWith("to %", "SM clock MHz", "throttled by");
    var nothing = read(HardwareReading.NONE, HardwareReading.NONE, HardwareReading.NONE);
    assertThat(nothing.table().columnNames()).endsWith("to %");
    assertThat(nothing.toJson()).doesNotContain("eadings");
    assertThat(nothing.unfusedReadings()).isEmpty();
    assertThat(nothing.doubts()).isEmpty();
    assertThat(Study.fromJson(nothing.toJson())).isEqualTo(nothing);
  }

  @Test
  void clocksThatDifferMakeAComparisonDoubtful() {
    var study = read(at(1980), at(1965), at(1755));
    assertThat(study.doubts())
        .containsExactly("SM clocks differed by 11.4% (1755 MHz at 4 splits, 1980 MHz at unfused)");
    assertThat(study.headline())
        .endsWith("; doubtful: " + study.doubts().getFirst())
        .doesNotContain("\n");
    assertThat(read(at(1980), at(1950), at(1935)).doubts()).isEmpty();
    assertThat(read(at(1980), at(1950), at(1935)).headline()).doesNotContain("doubtful");
    assertThat(read(HardwareReading.NONE, at(1980), HardwareReading.NONE).doubts()).isEmpty();
  }

  @Test
  void beingHeldBackMakesAComparisonDoubtfulAndAChosenClockDoesNot() {
    var study =
        read(
            at(1905, "clocks set by application"),
            at(1905, "power cap"),
            at(1905, "hardware thermal slowdown", "power cap", "clocks set by application"));
    assertThat(study.doubts())
        .containsExactly(
            "the GPUs were throttled in 6 of 12 measurements (hardware thermal slowdown, power cap)");
    assertThat(study.headline()).endsWith("; doubtful: " + study.doubts().getFirst());
    var chosen = at(1905, "clocks set by application");
    assertThat(read(chosen, chosen, chosen).doubts()).isEmpty();
  }

  @Test
  void otherProcessesMakeAComparisonDoubtfulOnce() {
    var load = new HostLoad(1.82, 2, 15.2);
    var study = loaded(Optional.of(load));
    assertThat(study.doubts()).containsExactly(load.toString());
    assertThat(study.headline())
        .endsWith("; doubtful: load 15 on 2 cores: other processes kept 1.8 of them busy");
    assertThat(study.display().text()).containsOnlyOnce("other processes");
    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
    var quiet = loaded(Optional.of(new HostLoad(0.5, 2, 15)));
    assertThat(quiet.doubts()).isEmpty();
    assertThat(quiet.headline()).doesNotContain("doubtful");
    assertThat(Study.fromJson(quiet.toJson())).isEqualTo(quiet);
    assertThat(loaded(Optional.empty()).toJson()).doesNotContain("load");
  }

  private static Study<Overlap> loaded(Optional<HostLoad> load) {
    var study = study();
    return new Study<>(
        study.problem(),
        study.ranks(),
        study.seed(),
        study.unfusedFirst(),
        study.unfusedAgain(),
        study.trials(),
        List.of(),
        study.reference(),
        Optional.empty(),
        0,
        List.of(),
        List.of(),
        load);
  }

  @Test
  void aReadingMustBelongToATime() {
    var times = List.of(100L, 101L, 102L);
    var trial = new Study.Trial<>(Overlap.pipelined(2), times, List.of(at(1905), at(1905)));
    var problem = GemmSpec.allGatherGemm(2048, 2048, 2048).columns();
    assertThatThrownBy(
            () -> new Study<>(problem, 2, 7, times, times, List.of(trial), Overlap.unfused()))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("a study needs a reading of the hardware for each time or none but")
        .hasMessageContaining("has 2 of pipelined");
    var silent = new Study.Trial<>(Overlap.pipelined(2), times);
    assertThatThrownBy(
            () ->
                new Study<>(
                    problem,
                    2,
                    7,
                    times,
                    times,
                    List.of(silent),
                    List.of(at(1905)),
                    Overlap.unfused(),
                    Optional.empty(),
                    0,
                    List.of(),
                    List.of(),
                    Optional.empty()))
        .hasMessageContaining("has 1 of the unfused reference for 6 times");
    var json = read(at(1905), at(1905), at(1905)).toJson();
    assertThatThrownBy(() -> Study.fromJson(json.replace("\"watts\":650", "\"watts\":-650")))
        .hasMessageContaining("power in watts must be 0 or more, or -1 for unknown, but was -650");
  }

  @Test
  void damagedJsonIsAOneLineError() {
    var json = study().toJson();
    assertThatThrownBy(() -> Study.fromJson(json.replace("PIPELINED", "MAGIC")))
        .hasMessage(
            "study.trials[0].method must be one of PIPELINED, DIRECT, RING, DOUBLING, TWO_LEVEL, BULK, UNFUSED but was"
                + " \"MAGIC\"");
    assertThatThrownBy(() -> Study.fromJson(json.replace("\"workers\":0", "\"workers\":3")))
        .hasMessage(
            "study.trials[0]: workers must be 0 over copy_engine but were 3; call over(WORKERS) first");
    assertThatThrownBy(() -> Study.fromJson(json.replace("\"replayed\":false", "\"replayed\":0")))
        .hasMessage("study.trials[0].replayed must be true or false but was 0");
    assertThatThrownBy(() -> Study.fromJson(json.replace("\"ranks\":4,", "")))
        .hasMessage("study: field `ranks` is missing");
    assertThatThrownBy(() -> Study.fromJson(json.substring(9)))
        .isInstanceOf(BraidException.class)
        .hasMessageMatching("study[^\\n]*");
  }

  @Test
  void impossibleMeasurementsAreRefused() {
    var study = study();
    var trials = new ArrayList<>(study.trials());
    trials.add(trials.getFirst());
    assertThatThrownBy(() -> with(study, trials)).hasMessageContaining("once but twice pipelined");
    var shorter = List.of(new Study.Trial<>(Overlap.pipelined(2), List.of(1L)));
    assertThatThrownBy(() -> with(study, shorter)).hasMessageContaining("needs 12 times");
    assertThatThrownBy(() -> with(study, List.of()))
        .hasMessageContaining("at least 1 configuration");
  }

  private static Study<Overlap> with(Study<Overlap> study, List<Study.Trial<Overlap>> trials) {
    return new Study<>(
        study.problem(),
        4,
        study.seed(),
        study.unfusedFirst(),
        study.unfusedAgain(),
        trials,
        Overlap.unfused());
  }
}
