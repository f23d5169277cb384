package braid.schedule.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.evidence.ProfileSet;
import braid.internal.selftest.Sweep;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import braid.schedule.Finish;
import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Simulated times equal times computed by hand, on a machine of round numbers: 1 byte per
/// nanosecond over each link, 1 GFLOPS, and no other costs by default.
class SimulatedRunTest {
  private static final double GFLOPS = 1;
  private static final double WEIGHTS = 1e8;
  private static final double RESULTS = 1e6;
  private static final long LATENCY = 700;
  private static final Link LINK = new Link(1e9, LATENCY);

  private static Machine machine(Link link, boolean serial, int units, Hardware.Costs costs) {
    return machine(link, serial, units, false, costs);
  }

  /// @param gpus true if tiles are batched and iterations are timed in flight
  private static Machine machine(
      Link link, boolean serial, int units, boolean gpus, Hardware.Costs costs) {
    return new Machine(
        "round numbers",
        Optional.empty(),
        1024,
        new Hardware.Links(link, link, serial, 4, 1e9, Double.POSITIVE_INFINITY),
        new Hardware.Compute(
            units,
            1,
            0.25,
            gpus,
            1,
            1,
            2e9,
            4e9,
            WEIGHTS,
            RESULTS,
            new TreeMap<>(Map.of(DType.FP32, GemmRates.constant(GFLOPS))),
            new TreeMap<>(),
            new TreeMap<>(),
            new TreeMap<>()),
        costs);
  }

  private static Machine serial() {
    return machine(LINK, true, 1, Hardware.Costs.NONE);
  }

  private static Machine sharing() {
    return machine(LINK, false, 1, Hardware.Costs.NONE);
  }

  private static long only(ProfileSet set) {
    assertThat(set.iterations()).isEqualTo(1);
    return set.slowestNanos(0);
  }

  private static List<Span> spans(ProfileSet set, int rank, Stage stage) {
    return set.profiles().get(rank).spans().stream().filter(s -> s.stage() == stage).toList();
  }

  /// Returns a schedule in which rank 1 fetches rows of rank 0.
  private static Schedule oneCopy() {
    var builder = Schedule.on("one copy", 2);
    var from = builder.symmetric("from", DType.FP32, 100, 5);
    var to = builder.local("to", DType.FP32, 100, 5);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    return builder.steps(
        program -> {
          if (program.rank() == 1) {
            program.copy(lane, 3, from.on(0), to.on(1));
          }
        });
  }

  @Test
  void aCopyTakesTheLatencyAndItsBytes() {
    for (var machine : List.of(serial(), sharing())) {
      var set = oneCopy().simulate(machine);
      assertThat(only(set)).isEqualTo(LATENCY + 2000);
      assertThat(spans(set, 1, Stage.COPY))
          .containsExactly(new Span(0, 3, Stage.COPY, "comm", 0, LATENCY + 2000, 2000, 0));
      assertThat(set.profiles().getFirst().iterationNanos()).containsExactly(0L);
    }
  }

  @Test
  void aComputationIsSlowerWhileACopyIsInFlight() {
    var builder = Schedule.on("beside a copy", 2);
    var from = builder.symmetric("from", DType.FP32, 100, 5);
    var to = builder.local("to", DType.FP32, 100, 5);
    var zeroed = builder.local("some", DType.FP32, 1000, 5);
    var comm = builder.lane("comm", Lane.Role.COMMUNICATION);
    var compute = builder.lane("compute", Lane.Role.COMPUTE);
    var schedule =
        builder.steps(
            program -> {
              if (program.rank() == 1) {
                program.copy(comm, 0, from.on(0), to.on(1));
                program.zero(compute, 0, zeroed.on(1));
              }
            });
    var alone = sharing();
    // 20,000 bytes at 2 bytes per nanosecond.
    assertThat(only(schedule.simulate(alone))).isEqualTo(10_000);
    var contending = alone.with(Map.of("computation beside copies", "1.5"));
    // Two thirds of the copy's 2,700 ns are work of the computation.
    assertThat(only(schedule.simulate(contending))).isEqualTo(2700 + 10_000 - 1800);
  }

  @Test
  void fixedCostsAreAddedWhereTheyArise() {
    var costs = new Hardware.Costs(10, 20, 30, 40, 1, 5, 6, 7, 8, 9, 11, 13);
    // Launch, step, latency, bytes; on a serial link oversleep; and synchronize.
    assertThat(only(oneCopy().simulate(machine(LINK, false, 1, costs))))
        .isEqualTo(10 + 5 + LATENCY + 2000 + 13);
    // The serial link starts when the copy is enqueued, not when the thread begins.
    assertThat(only(oneCopy().simulate(machine(LINK, true, 1, costs))))
        .isEqualTo(10 + LATENCY + 2000 + 11 + 13);
  }

  /// A copy and a sum begin 10 ns late each, and take 2,700 and 1,000 ns.
  @Test
  void ofReplayedIterationsOnGpusTheHostIsHiddenOrTheLimit() {
    for (long launch : List.of(50L, 5000L)) {
      var costs = new Hardware.Costs(launch, launch, 0, 0, 1, 10, 0, 0, 0, 0, 0, 900);
      var eager = copyAndSum(false);
      long device = 10 + LATENCY + 2000 + 10 + 1000;
      var gpus = machine(LINK, false, 1, true, costs);
      double limit = (double) Math.max(device, 2 * launch);
      assertThat(gpus.iterationNanos(eager.replay())).isEqualTo(limit);
      var host = machine(LINK, false, 1, false, costs);
      for (double alone :
          List.of(
              gpus.iterationNanos(eager),
              host.iterationNanos(eager),
              host.iterationNanos(eager.replay()))) {
        assertThat(alone).isEqualTo(eager.simulate(host, 3).summary().medianNanos());
        assertThat(alone).isGreaterThan(limit + 900);
      }
    }
  }

  @Test
  void aSumOfRowsOfAnotherRankIsOneLaunch() {
    var costs = new Hardware.Costs(0, 0, 0, 0, 1, 10, 0, 0, 0, 0, 0, 0);
    assertThat(only(copyAndSum(true).simulate(machine(LINK, false, 1, costs))))
        .isEqualTo(10 + LATENCY + 2000 + 500);
  }

  /// Returns a schedule in which rank 1 sums rows of rank 0, after it has copied them or where they
  /// are.
  private static Schedule copyAndSum(boolean inPlace) {
    var builder = Schedule.on("copy and sum", 2);
    var from = builder.symmetric("from", DType.FP32, 100, 5);
    var to = builder.local("to", DType.FP32, 100, 5);
    var sum = builder.local("sum", DType.FP32, 100, 5);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    return builder.steps(
        program -> {
          if (program.rank() == 1) {
            if (!inPlace) {
              program.copy(lane, 0, from.on(0), to.on(1));
            }
            program.reduce(
                lane, 0, List.of(inPlace ? from.on(0) : to.on(1)), sum.on(1), Finish.NONE);
          }
        });
  }

  @Test
  void aSignalTakesItsCostAndItsWayAndAnEventItsOwn() {
    var builder = Schedule.on("signal and mark", 2);
    var flag = builder.flag("ready", 2);
    var zeroed = builder.local("some", DType.FP32, 100, 5);
    var comm = builder.lane("comm", Lane.Role.COMMUNICATION);
    var compute = builder.lane("compute", Lane.Role.COMPUTE);
    var schedule =
        builder.steps(
            program -> {
              if (program.rank() == 0) {
                program.signal(comm, 0, flag, 0, 1);
              } else {
                program.await(comm, 0, flag, 0, 0);
                program.after(compute, 0, program.mark(comm, 0));
                program.zero(compute, 0, zeroed.on(1));
              }
            });
    var costs = new Hardware.Costs(0, 0, 0, 0, 1, 0, 60, 700, 8000, 90, 0, 0);
    var set = schedule.simulate(machine(LINK, false, 1, costs));
    // 2,000 bytes at 2 bytes per nanosecond.
    assertThat(only(set)).isEqualTo(60 + 700 + 90 + 1000);
    assertThat(spans(set, 0, Stage.SIGNAL)).singleElement().returns(60L, Span::nanos);
    assertThat(spans(set, 1, Stage.WAIT))
        .extracting(Span::nanos)
        .containsExactlyInAnyOrder(850L, 760L);
  }

  /// Both ranks multiply their own rows first, then the peer's chunks in order. A rank multiplies a
  /// chunk when it has arrived and the previous one is done.
  @Test
  void pipelinedAllGatherGemmTakesTheLongerOfBoth() {
    int m = 64;
    int n = 4;
    for (int k : new int[] {2, 8, 64}) {
      for (int splits : new int[] {1, 2, 4}) {
        for (var bandwidth : new double[] {1e8, 1e9, 1e10}) {
          var link = new Link(bandwidth, LATENCY);
          double copy = link.nanos(4L * k * m / 2 / splits);
          double whole = 2.0 * m / 2 * k * n / 2 / GFLOPS;
          double done = whole;
          for (int chunk = 1; chunk <= splits; chunk++) {
            done = Math.max(done, chunk * copy) + whole / splits;
          }
          var schedule = Schedule.of(GemmSpec.allGatherGemm(m, n, k), Overlap.pipelined(splits), 2);
          assertThat((double) only(schedule.simulate(machine(link, true, 1, Hardware.Costs.NONE))))
              .as("k=%d splits=%d bandwidth=%s", k, splits, bandwidth)
              .isCloseTo(done, within(2.0 * splits));
        }
      }
    }
  }

  @Test
  void unfusedIsTheSumOfBoth() {
    var spec = GemmSpec.allGatherGemm(64, 8, 32);
    var set = Schedule.of(spec, Overlap.unfused(), 2).simulate(serial());
    assertThat(only(set))
        .isEqualTo(LINK.nanos(4 * 32 * 32) + Math.round(spec.flops() / 2 / GFLOPS));
  }

  /// Data takes one step per other rank around the ring, and hides all multiplications except the
  /// last.
  @Test
  void aRingTakesAStepForEachOtherRank() {
    for (int ranks : new int[] {2, 3, 8}) {
      var spec = GemmSpec.allGatherGemm(4 * ranks, ranks, 100);
      var set = Schedule.of(spec, Overlap.ring(1), ranks).simulate(serial());
      long copy = LINK.nanos(4 * 4 * 100);
      long gemm = 2 * 4 * 100;
      assertThat(gemm).isLessThan(copy);
      assertThat(only(set)).isEqualTo((ranks - 1) * copy + gemm);
      assertThat(spans(set, ranks - 1, Stage.COPY)).hasSize(ranks - 1);
      assertThat(spans(set, ranks - 1, Stage.GEMM))
          .hasSize(ranks)
          .allSatisfy(span -> assertThat(span.flops()).isEqualTo(800));
    }
  }

  /// Returns a schedule in which two ranks push into a third.
  private static Schedule twoIntoOne() {
    var builder = Schedule.on("two into one", 3);
    var from = builder.local("from", DType.FP32, 100, 5);
    var to = builder.symmetric("to", DType.FP32, 300, 5);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    return builder.steps(
        program -> {
          if (program.rank() > 0) {
            program.copy(
                lane, 0, from.on(program.rank()), to.on(0, new Slice(100L * program.rank(), 100)));
          }
        });
  }

  @Test
  void twoCopiesIntoOneRankShareWhatItMayReceive() {
    assertThat(only(twoIntoOne().simulate(sharing()))).isEqualTo(LATENCY + 2 * 2000);
    // The host backend's link belongs to the copying rank.
    assertThat(only(twoIntoOne().simulate(serial()))).isEqualTo(LATENCY + 2000);
  }

  @Test
  void engineCopiesOfOneRankTakeTurnsOnASerialLinkAndShareAnother() {
    var builder = Schedule.on("two fetched", 3);
    var from = builder.symmetric("from", DType.FP32, 100, 5);
    var to = builder.local("to", DType.FP32, 300, 5);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    var schedule =
        builder.steps(
            program -> {
              if (program.rank() == 0) {
                program.copy(
                    lane,
                    0,
                    List.of(
                        new Step.Move(from.on(1), to.on(0, new Slice(0, 100))),
                        new Step.Move(from.on(2), to.on(0, new Slice(100, 100)))));
              }
            });
    assertThat(only(schedule.simulate(serial()))).isEqualTo(2 * (LATENCY + 2000));
    var shared = schedule.simulate(sharing());
    assertThat(only(shared)).isEqualTo(LATENCY + 2 * 2000);
    assertThat(spans(shared, 0, Stage.COPY)).extracting(Span::startNanos).containsExactly(0L, 0L);
  }

  /// A gemm beside an all-gather by 3 of 4 units has 1 unit left, and so takes 4 times as long.
  /// Beside copy engines it lacks 1 unit of 4 for 2,000 ns, while the rank's own 4,000 bytes are
  /// copied.
  @Test
  void workersTakeTheirUnitsFromTheGemm() {
    var spec = GemmSpec.besideAllGather(16, 16, 16, 2000);
    var machine = machine(LINK, false, 4, Hardware.Costs.NONE);
    long alone = Math.round(spec.flops() / GFLOPS);
    var engines = Schedule.of(spec, Overlap.bulk(), 2).simulate(machine);
    assertThat(spans(engines, 0, Stage.GEMM)).singleElement().returns(alone + 500, Span::nanos);
    var workers =
        Schedule.of(spec, Overlap.bulk().over(Transport.WORKERS).workers(3), 2).simulate(machine);
    assertThat(spans(workers, 0, Stage.GEMM)).singleElement().returns(4 * alone, Span::nanos);
  }

  /// A yielding multiplication gets a quarter of a sum's share: 1 unit is divided 0.2 to 0.8.
  @Test
  void lanesShareUnitsByTheirWeights() {
    var builder = Schedule.on("sum beside gemm", 1);
    var a = builder.local("a", DType.FP32, 10, 10);
    var b = builder.local("b", DType.FP32, 10, 10);
    var c = builder.local("c", DType.FP32, 10, 10);
    var d = builder.local("d", DType.FP32, 10, 10);
    var adds = builder.lane("reduce", Lane.Role.COMPLETION);
    var multiplies =
        builder.add(new Lane("gemm-0", Lane.Role.COMPUTE, true, Transport.COPY_ENGINE, 0, 0));
    var schedule =
        builder.steps(
            program ->
                program
                    .reduce(adds, 0, List.of(a.on(0), b.on(0)), d.on(0), Finish.NONE)
                    .gemm(multiplies, 0, a.on(0), b.on(0), c.on(0), Finish.NONE));
    var set = schedule.simulate(sharing());
    // 1,200 bytes at 4 bytes per nanosecond and 0.8 units: 375; by then the gemm has done 75 of
    // 2,000.
    assertThat(spans(set, 0, Stage.REDUCE)).singleElement().returns(375L, Span::nanos);
    assertThat(only(set)).isEqualTo(375 + 2000 - 75);
  }

  @Test
  void twoRunsAreEqualAndAnIterationBeginsBehindAllLanesOfTheLast() {
    for (var how :
        List.of(
            Overlap.pipelined(3).streams(2),
            Overlap.direct(2),
            Overlap.ring(2).priority(Priority.EQUAL),
            Overlap.pipelined(2).over(Transport.WORKERS).workers(2),
            Overlap.unfused())) {
      for (var spec :
          List.of(
              GemmSpec.allGatherGemm(50, 60, 70),
              GemmSpec.gemmReduceScatter(50, 60, 70).bias(),
              GemmSpec.gemmAllReduce(50, 60, 70).accumulate(),
              GemmSpec.gemmAllReduce(50, 60, 70))) {
        for (var machine : List.of(serial(), sharing(), named("h100x8").withLink(LINK))) {
          var schedule = Schedule.of(spec, how, 4);
          var first = schedule.simulate(machine, 3);
          assertThat(first).isEqualTo(Schedule.of(spec, how, 4).simulate(machine, 3));
          for (var profile : first.profiles()) {
            long start = 0;
            for (int i = 0; i < 3; i++) {
              int iteration = i;
              long begins = start;
              long ends = start + profile.iterationNanos().get(i);
              assertThat(profile.spans().stream().filter(s -> s.iteration() == iteration))
                  .isNotEmpty()
                  .allSatisfy(s -> assertThat(s.startNanos()).isGreaterThanOrEqualTo(begins))
                  .allSatisfy(s -> assertThat(s.endNanos()).isLessThanOrEqualTo(ends));
              start = ends;
            }
          }
        }
      }
    }
  }

  private static Machine named(String name) {
    return Machine.parse(Machine.named(name).toString());
  }

  @Test
  void tablesChartsAndTheConfigurationSayWhatWasSimulated() {
    var spec = GemmSpec.allGatherGemm(1024, 1024, 1024).dtype(DType.BF16);
    var set = Schedule.of(spec, Overlap.pipelined(2), 8).simulate(Machine.h200x8(), 2);
    assertThat(set.configuration())
        .containsEntry("pattern", "all-gather-gemm")
        .containsEntry("splits", "2")
        .containsEntry("ranks", "8")
        .containsEntry("backend", "simulated")
        .containsEntry("machine", "h200x8")
        .containsEntry("calibrated", "not calibrated");
    assertThat(set.stages().rowCount()).isEqualTo(8);
    assertThat(set.stages().columnNames()).contains("gemm ms", "copy ms", "overlapped ms");
    assertThat(set.table().rowCount())
        .isEqualTo(set.profiles().stream().mapToInt(p -> p.spans().size()).sum());
    assertThat(set.timeline().getPlot()).isNotNull();
    assertThat(set.breakdown().getPlot()).isNotNull();
    assertThat(set.chromeTrace()).contains("simulated");
    assertThat(set.display().toString()).isNotEmpty();
  }

  @Test
  void bytesAndFlopsAreThoseOfTheProblem() {
    var spec = GemmSpec.allGatherGemm(50, 60, 70);
    var set = Schedule.of(spec, Overlap.pipelined(3), 3).simulate(sharing());
    assertThat(
            set.profiles().stream().flatMap(p -> p.spans().stream()).mapToLong(Span::flops).sum())
        .isEqualTo(Math.round(spec.flops()));
    assertThat(
            set.profiles().stream()
                .flatMap(p -> p.spans().stream())
                .filter(s -> s.stage() == Stage.COPY)
                .mapToLong(Span::bytes)
                .sum())
        .isEqualTo(2L * 50 * 70 * 4);
  }

  @Test
  void aWaitThatNobodyEndsIsNamed() {
    var schedule = Schedule.of(GemmSpec.allGatherGemm(8, 8, 8), Overlap.pipelined(2), 2);
    var steps = new ArrayList<>(schedule.steps(0));
    steps.removeIf(
        step -> step instanceof Step.Signal signal && signal.flag().name().equals("read"));
    assertThatThrownBy(() -> schedule.with(0, steps).simulate(sharing()))
        .isInstanceOf(BraidException.class)
        .hasMessageMatching(
            "rank 1, lane comm, step \\d+ \\(wait for read\\[0\\] from rank 0\\): no rank raises it in"
                + " iteration 0; let that rank signal it");
  }

  @Test
  void ranksThatWaitForEachOtherAreNamed() {
    var builder = Schedule.on("a cycle", 2);
    var flag = builder.flag("ready", 2);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    var schedule =
        builder.steps(
            program -> {
              int peer = 1 - program.rank();
              program.await(lane, 0, flag, peer, peer);
              program.signal(lane, 0, flag, program.rank(), peer);
            });
    assertThatThrownBy(() -> schedule.simulate(sharing()))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "rank 0, lane comm, step 0 (wait for ready[1] from rank 1): deadlock: the lanes that it waits"
                + " for also wait for it; signal or mark before waiting");
  }

  @Test
  void aMarkThatNobodyMakesIsNamed() {
    var builder = Schedule.on("no mark", 1);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    var buffer = builder.local("x", DType.FP32, 1, 1);
    var schedule = builder.steps(program -> program.after(lane, 0, 7).zero(lane, 0, buffer.on(0)));
    assertThatThrownBy(() -> schedule.simulate(sharing()))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "rank 0, lane comm, step 0 (wait for mark 7): no lane sets it; set it on the lane that it"
                + " waits for");
  }

  @Test
  void stepsThatNameWhatIsNotThereAreRefused() {
    var builder = Schedule.on("wrong names", 2);
    var flag = builder.flag("ready", 2);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    var outside = Lane.of("outside", Lane.Role.COMPUTE);
    refused(builder, new Step.Signal(lane, 0, flag, 5, 1), "flag ready has words 0..1");
    refused(builder, new Step.Signal(lane, 0, flag, 0, 2), "the peer must be rank 0..1 but was 2");
    refused(
        builder, new Step.Signal(lane, 0, new Flag("x", 9), 0, 1), "the schedule has no flag x");
    refused(builder, new Step.Mark(outside, 0, 0), "the schedule has no such lane");
  }

  private static void refused(Schedule.Builder builder, Step step, String why) {
    var schedule = builder.steps(_ -> {}).with(0, List.of(step));
    assertThatThrownBy(() -> schedule.simulate(sharing()))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("rank 0, lane " + step.lane() + ", step 0 (")
        .hasMessageContaining(why)
        .message()
        .hasLineCount(1);
  }

  @Test
  void aMissingDescriptionIsAnError() {
    var schedule =
        Schedule.of(GemmSpec.allGatherGemm(8, 8, 8).dtype(DType.BF16), Overlap.ring(), 2);
    assertThatThrownBy(() -> schedule.simulate(sharing()))
        .isInstanceOf(BraidException.class)
        .hasMessage("machine round numbers has no rates of bf16; it has those of fp32");
    assertThatThrownBy(() -> schedule.simulate(sharing(), 0))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "simulate needs 1 or more iterations but was given 0; try simulate(machine, 10)");
  }

  @Test
  @Tag("F8")
  void ranksOfSeveralHostsNameThem() {
    var schedule = Schedule.of(GemmSpec.allGatherGemm(64, 16, 16), Overlap.ring(1), 4);
    var pairs = schedule.simulate(serial().withRanksPerHost(2));
    assertThat(pairs.profiles().stream().map(Profile::rankName))
        .containsExactly(
            "rank 0 on host 0", "rank 1 on host 0", "rank 2 on host 1", "rank 3 on host 1");
    assertThat(pairs.configuration()).containsEntry("hosts", "2");
    assertThat(schedule.simulate(serial()).configuration()).doesNotContainKey("hosts");
  }

  /// The limit only ends a test that hangs.
  @Test
  @Timeout(value = 10, unit = TimeUnit.MINUTES)
  void manyRanksGoRoundARing() {
    int ranks = Sweep.times(256, 1024);
    var spec = GemmSpec.allGatherGemm(4 * ranks, ranks, 100);
    var set = Schedule.of(spec, Overlap.ring(1), ranks).simulate(serial());
    assertThat(only(set)).isEqualTo((ranks - 1) * LINK.nanos(4 * 4 * 100) + 800);
  }

  /// 300 causal queries in tiles of 128: each multiplies all keys up to its last query.
  @Test
  void attentionMultipliesTilesAndWeighsWhatIsSeen() {
    var spec = AttentionSpec.of(300, 2, 8).causal();
    double multiplied = 128.0 * 128 + 128.0 * 256 + 44.0 * 300;
    double seen = 300 * 301 / 2.0;
    double nanos =
        4 * 2 * 8 * multiplied / GFLOPS + 2 * seen / WEIGHTS * 1e9 + 2 * 300 / RESULTS * 1e9;
    var run = Schedule.of(spec, ContextParallel.ring(), 1).simulate(serial());
    assertThat(only(run)).isEqualTo(Math.round(nanos));
    // With rates of its own tiles, half as fast at this head size.
    var compute = serial().compute();
    var tiles = new GemmRates(List.of(128), List.of(256), List.of(8), List.of(GFLOPS / 2));
    var other =
        new Machine(
            "tiles",
            Optional.empty(),
            1024,
            serial().links(),
            new Hardware.Compute(
                1,
                1,
                0.25,
                false,
                1,
                1,
                2e9,
                4e9,
                WEIGHTS,
                RESULTS,
                compute.gemm(),
                new TreeMap<>(Map.of(DType.FP32, tiles)),
                new TreeMap<>(),
                new TreeMap<>()),
            Hardware.Costs.NONE);
    assertThat(Machine.parse(other.toString())).isEqualTo(other);
    assertThat(only(Schedule.of(spec, ContextParallel.ring(), 1).simulate(other)))
        .isEqualTo(Math.round(nanos + 4 * 2 * 8 * multiplied / GFLOPS));
    // Nothing is seen beyond a window or another sequence.
    assertThat(only(Schedule.of(spec.window(1), ContextParallel.ring(), 1).simulate(serial())))
        .isLessThan(Math.round(nanos));
  }
}
