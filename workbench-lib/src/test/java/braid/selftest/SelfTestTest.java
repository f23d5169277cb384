package braid.selftest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.Capabilities;
import braid.LocalRanks;
import braid.TensorView;
import braid.internal.selftest.CommunicationCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Sweep;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec.Pattern;
import braid.model.MemoryKind;
import braid.model.SelfCheck;
import braid.selftest.SelfTest.Outcome;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Reports of a self-test, the same on all ranks.
///
/// Isolated, since OpenBLAS has one number of threads per process: gradients are equal to the last
/// bit only while no other class sets it.
@Isolated
class SelfTestTest {
  private static final List<String> PATTERNS =
      Stream.of(Pattern.values()).map(Pattern::toString).toList();

  /// Runs a self-test and returns the reports by rank.
  private static List<SelfTest.Report> reports(int ranks, Consumer<SelfTest> setup) {
    var reports = Collections.synchronizedList(new ArrayList<SelfTest.Report>());
    LocalRanks.run(
        ranks,
        world -> {
          var test = SelfTest.on(world);
          setup.accept(test);
          reports.add(test.run());
          // The group is still usable.
          assertThat(world.gather((long) world.rank())).hasSize(ranks);
        });
    return reports;
  }

  private static SelfTest.Report report(int ranks, Consumer<SelfTest> setup) {
    var reports = reports(ranks, setup);
    assertThat(reports).hasSize(ranks).allMatch(reports.getFirst()::equals);
    return reports.getFirst();
  }

  private static List<SelfTest.Row> rows(SelfTest.Report report, Outcome outcome) {
    return report.rows().stream().filter(row -> row.outcome() == outcome).toList();
  }

  @Test
  void everyWayThatThereIsIsRightOnTheHost() {
    var report = report(3, test -> test.quick().dtypes(DType.BF16, DType.FP8_E4M3));
    assertThat(report.allRight()).as(report.toString()).isTrue();
    assertThat(report.summary()).startsWith("self-test on host, 3 ranks: ").contains(" 0 wrong");
    var right = rows(report, Outcome.OK);
    var supported =
        PipelineCases.possible(Capabilities.host(), 3).stream()
            .filter(Capabilities.Row::supported)
            .count();
    assertThat(right)
        .filteredOn(row -> row.configuration().method().equals("one-shot"))
        .extracting(
            row -> row.configuration().subject() + " over " + row.configuration().transport())
        .containsExactlyInAnyOrder(
            "all-reduce over copy_engine",
            "all-reduce over copy_engine",
            "all-reduce over workers",
            "all-reduce over workers",
            "all-reduce over one_kernel",
            "all-reduce over one_kernel");
    assertThat(right)
        .filteredOn(row -> row.configuration().subject().equals("attention"))
        .extracting(row -> row.configuration().method())
        .containsExactlyInAnyOrder("ring", "ring-exchange", "all-gather-kv", "ulysses", "unfused");
    assertThat(right)
        .filteredOn(row -> PATTERNS.contains(row.configuration().subject()))
        .hasSize((int) (2 * supported));
    assertThat(right)
        .extracting(row -> row.configuration().subject())
        .contains("all-reduce", "send");
    assertThat(rows(report, Outcome.NOT_AVAILABLE))
        .extracting(SelfTest.Row::result)
        .contains(
            "not available: memory kind nccl needs CUDA but the backend is host; use native or auto",
            "not available: needs several groups of several ranks but there are 3; run on 4 ranks")
        .anyMatch(
            result -> result.contains("its multiplication needs all communicated data first"));
    assertThat(report.table().rowCount()).isEqualTo(report.rows().size());
    assertThat(report.display().text()).startsWith(report.summary());
  }

  @Test
  void c2TheHostRecordsNoUnitsAndNamesTheReason() {
    var report = report(2, test -> test.quick().dtypes(DType.FP32).kinds(MemoryKind.NATIVE));
    assertThat(report.rows())
        .filteredOn(row -> row.configuration().subject().startsWith(CommunicationCase.WHAT))
        .singleElement()
        .satisfies(
            row -> {
              assertThat(row.configuration().memory()).isEqualTo("native");
              assertThat(row.result())
                  .startsWith(
                      "not available: only a GPU records which kernels and copy engines ran");
            });
  }

  @Test
  void eachWayIsToldAsSoonAsItIsKnown() {
    var heard = Collections.synchronizedList(new ArrayList<SelfTest.Row>());
    var report = report(1, test -> test.quick().dtypes(DType.FP32).each(heard::add));
    assertThat(heard).isEqualTo(report.rows());
  }

  @Test
  void onlyNamedSubjectsAreTested() {
    var begun = Collections.synchronizedList(new ArrayList<String>());
    var report =
        report(
            2,
            test ->
                test.quick()
                    .dtypes(DType.FP32)
                    .only("scatter", "barrier")
                    .beginning(text -> begun.add(text)));
    assertThat(rows(report, Outcome.OK))
        .isNotEmpty()
        .allMatch(row -> row.configuration().subject().matches(".*(scatter|barrier).*"));
    int cases = report.rows().stream().mapToInt(SelfTest.Row::cases).sum();
    assertThat(begun)
        .as("on both ranks")
        .hasSize(2 * cases)
        .anyMatch(text -> text.matches("gemm-reduce-scatter, ring, .*native, fp32 \\(case .*"));
    assertThatThrownBy(() -> report(1, test -> test.only(" ")))
        .hasMessageContaining("subjects must be 1 or more texts");
  }

  @Test
  void aRankAloneIsTestedToo() {
    var report = report(1, test -> test.quick().dtypes(DType.FP32));
    assertThat(report.allRight()).as(report.toString()).isTrue();
  }

  @Test
  void aResultThatIsWrongOnOneRankIsWrong() {
    var report =
        report(
            2,
            test ->
                test.quick()
                    .dtypes(DType.BF16)
                    .kinds(MemoryKind.NATIVE)
                    .altering(result -> spoilOnRank1(result)));
    assertThat(report.allRight()).isFalse();
    assertThat(rows(report, Outcome.OK)).isEmpty();
    var wrong = rows(report, Outcome.WRONG);
    assertThat(wrong)
        .isNotEmpty()
        .allMatch(row -> row.result().startsWith("wrong: rank 1: "))
        .allMatch(row -> row.result().contains("must be"))
        .allMatch(row -> row.result().contains("but was 100.0 (case "));
    assertThat(report.summary()).contains("; first: Configuration[subject=all-gather-gemm");
    assertThat(report.table().getString(0, "result")).startsWith("wrong: ");
  }

  @Test
  void randomProgramsFollowFixedCases() {
    var report = report(3, test -> test.quick().random(12, 42).dtypes(DType.BF16, DType.FP8_E5M2));
    assertThat(report.allRight()).as(report.toString()).isTrue();
    var row = report.rows().getLast();
    assertThat(row.configuration().subject()).isEqualTo("random programs");
    assertThat(row.configuration().memory()).isEqualTo("native");
    assertThat(row.cases()).isEqualTo(12);
    assertThat(row.result())
        .startsWith("ok (12 cases; seed 42: ")
        .containsPattern("\\d+ pipelines, \\d+ collectives, .* drawn again");
  }

  /// Each wrong program has a row, and the others still run.
  @Test
  void aWrongProgramPrintsItsSeed() {
    var report =
        report(
            2,
            test ->
                test.quick()
                    .kinds(MemoryKind.NATIVE)
                    .dtypes(DType.FP32)
                    .random(8, 100)
                    .altering(result -> spoilOnRank1(result)));
    var wrong =
        rows(report, Outcome.WRONG).stream()
            .filter(row -> row.configuration().subject().equals("random programs"))
            .toList();
    assertThat(wrong)
        .hasSizeGreaterThan(3)
        .extracting(SelfTest.Row::said)
        .allMatch(
            said -> said.matches("rank [01]: .* must be .*, again by --random 1 --seed 10\\d: .*"));
    int right =
        rows(report, Outcome.OK).stream()
            .filter(row -> row.configuration().subject().equals("random programs"))
            .mapToInt(SelfTest.Row::cases)
            .sum();
    assertThat(wrong.size() + right).isEqualTo(8);
  }

  @Test
  void aWholeSelfTestHasRandomProgramsAndAQuickOneHasNone() {
    int ranks = Sweep.times(1, 2);
    var whole = report(ranks, test -> test.kinds(MemoryKind.NATIVE).dtypes(DType.FP16));
    assertThat(whole.allRight()).as(whole.toString()).isTrue();
    assertThat(rows(whole, Outcome.OK))
        .filteredOn(row -> PATTERNS.contains(row.configuration().subject()))
        .isNotEmpty()
        .allMatch(row -> row.cases() >= 2);
    assertThat(whole.rows().getLast().cases()).isEqualTo(SelfTest.DEFAULT_RANDOM_PROGRAMS);
    var quick = report(1, test -> test.quick().dtypes(DType.FP32));
    assertThat(quick.rows())
        .extracting(row -> row.configuration().subject())
        .isNotEmpty()
        .doesNotContain("random programs");
  }

  private static void spoilOnRank1(TensorView result) {
    if (Thread.currentThread().getName().equals("rank-1")) {
      result.set(100, new long[result.shape().size()]);
    }
  }

  @Test
  void aRankThatBreaksOffKeepsNobodyWaiting() {
    var broken = new AtomicInteger();
    var report =
        report(
            3,
            test ->
                test.quick()
                    .dtypes(DType.FP32)
                    .kinds(MemoryKind.NATIVE)
                    .altering(
                        _ -> {
                          if (Thread.currentThread().getName().equals("rank-1")
                              && broken.getAndIncrement() == 0) {
                            throw new IllegalStateException("a kernel is missing");
                          }
                        }));
    assertThat(rows(report, Outcome.WRONG))
        .singleElement()
        .extracting(SelfTest.Row::result)
        .asString()
        .startsWith("wrong: rank 1: ")
        .contains("a kernel is missing");
    assertThat(rows(report, Outcome.OK)).hasSizeGreaterThan(40);
    assertThat(rows(report, Outcome.NOT_RUN)).isEmpty();
  }

  private record Named(String name, String fault) implements SelfCheck {
    @Override
    public Optional<String> missing() {
      return fault.startsWith("no ") ? Optional.of(fault) : Optional.empty();
    }

    @Override
    public String run() {
      if (fault.startsWith("throw")) {
        throw new BraidException(fault);
      }
      return fault;
    }
  }

  @Test
  void otherChecksComeFirst() {
    var report =
        report(
            2,
            test ->
                test.quick()
                    .dtypes(DType.FP32)
                    .kinds(MemoryKind.NATIVE)
                    .check(new Named("copies", ""))
                    .check(new Named("sums", "sums[3] must be 4 but was 5"))
                    .check(new Named("casts", "thrown"))
                    .check(new Named("divisions", "no unit divides")));
    assertThat(report.rows().subList(0, 4))
        .extracting(row -> row.configuration().subject() + " " + row.result())
        .containsExactly(
            "check: copies ok (1 case)",
            "check: sums wrong: rank 0: sums[3] must be 4 but was 5",
            "check: casts wrong: rank 0: thrown",
            "check: divisions not available: no unit divides");
    assertThat(rows(report, Outcome.WRONG)).hasSize(2);
  }

  @Test
  void aSelfTestIsPrintedOnceAndTheSameEverywhere() {
    LocalRanks.run(
        2,
        world -> {
          var test = SelfTest.on(world).kinds(MemoryKind.NATIVE);
          assertThatThrownBy(() -> test.kinds(MemoryKind.IPC))
              .hasMessage("kinds were set already: [native]; set them once");
          assertThatThrownBy(() -> SelfTest.on(world).random(-1))
              .hasMessage("random programs must be 0 or more but were -1; try random(200)");
          assertThatThrownBy(() -> SelfTest.on(world).random(3).random(4, 1))
              .hasMessage("random was set already: 3; set it once");
          assertThatThrownBy(() -> SelfTest.on(world).kinds(MemoryKind.AUTO))
              .hasMessageStartingWith("kinds must be 1 or more of native,");
          assertThatThrownBy(
                  () ->
                      SelfTest.on(world)
                          .dtypes(world.rank() == 0 ? DType.FP32 : DType.BF16)
                          .quick()
                          .run())
              .isInstanceOf(BraidException.class)
              .hasMessageContaining("self-test");
        });
  }

  @Test
  void capabilitiesAreOfABackend() {
    assertThat(Capabilities.of(BackendKind.HOST)).isEqualTo(Capabilities.host());
    assertThat(Capabilities.collectivesOf(BackendKind.HOST))
        .isEqualTo(Capabilities.hostCollectives());
    assertThatThrownBy(() -> Capabilities.of(BackendKind.AUTO))
        .hasMessage("a backend must be host or cuda but was auto; ask for one of them");
  }

  /// Every combination of a backend's table that the plan leaves out has a row with the reason.
  @ParameterizedTest
  @CsvSource({"HOST,false", "HOST,true", "CUDA,false", "CUDA,true"})
  void everyWayIsRunOrHasItsReason(BackendKind backend, boolean quick) {
    var plan =
        new SelfTestPlan(
            Capabilities.kinds(),
            List.of(DType.values()),
            List.of(),
            quick,
            new SelfTestPlan.Random(0, 0),
            List.of());
    for (var kind : Capabilities.kinds()) {
      var overlaps = Capabilities.of(backend).stream().filter(row -> row.kind() == kind).toList();
      var collectives =
          Capabilities.collectivesOf(backend).stream().filter(row -> row.kind() == kind).toList();
      var run = plan.cases(kind, overlaps, collectives, 4).keySet();
      var unsupported = plan.unsupported(overlaps, collectives);
      assertThat(unsupported).allSatisfy(row -> assertThat(row.said()).isNotEmpty());
      var reasons = unsupported.stream().map(SelfTest.Row::configuration).toList();
      for (var dtype : DType.values()) {
        for (var row : overlaps) {
          var way =
              new SelfTest.Configuration(
                  row.pattern().toString(),
                  row.method().toString(),
                  row.transport().toString(),
                  kind.toString(),
                  dtype.toString());
          boolean reason = reasons.contains(way) || reasons.contains(ofAnyType(way));
          assertThat(run.contains(way) != reason).as("%s", way).isTrue();
        }
        for (var row : collectives) {
          var way =
              new SelfTest.Configuration(
                  row.collective().toString(),
                  "-",
                  row.way().toString(),
                  kind.toString(),
                  dtype.toString());
          boolean reason = reasons.contains(way) || reasons.contains(ofAnyType(way));
          assertThat(run.contains(way) != reason).as("%s", way).isTrue();
        }
        assertThat(run)
            .contains(
                new SelfTest.Configuration(
                    "symmetric tensor", "-", "-", kind.toString(), dtype.toString()));
      }
    }
  }

  private static SelfTest.Configuration ofAnyType(SelfTest.Configuration way) {
    return new SelfTest.Configuration(
        way.subject(), way.method(), way.transport(), way.memory(), "-");
  }

  @Test
  void aWrongWayCountsItsCasesThatWereNotRun() {
    var report =
        report(
            1,
            test ->
                test.dtypes(DType.FP16)
                    .kinds(MemoryKind.NATIVE)
                    .altering(result -> result.set(100, new long[result.shape().size()])));
    assertThat(rows(report, Outcome.WRONG))
        .filteredOn(row -> row.configuration().subject().equals("symmetric tensor"))
        .singleElement()
        .extracting(SelfTest.Row::result)
        .asString()
        .endsWith("; 4 more cases of this way not run");
  }
}
