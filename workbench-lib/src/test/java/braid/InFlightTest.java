package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.host.HostGate;
import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Programs;
import braid.internal.work.Work;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Timing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Iterations in flight: each is enqueued while earlier ones still run.
class InFlightTest {
  private static final int RANDOM_CASES = 80;
  private static final GemmSpec SPEC = GemmSpec.gemmReduceScatter(32, 16, 8);

  /// Every supported pattern, method and transport, eager and replayed, types in turn.
  private static List<PipelineCase> table(int ranks) {
    var all = PipelineCases.quick(Capabilities.host(), ranks);
    int types = DType.values().length;
    return IntStream.range(0, all.size())
        .filter(i -> i % types == i / types % types)
        .mapToObj(all::get)
        .flatMap(each -> Stream.of(each, new PipelineCase(each.spec(), each.tuning().replay())))
        .toList();
  }

  private static void hold(List<PipelineCase> cases, ProcessGroup world, long seed) {
    for (int i = 0; i < cases.size(); i++) {
      InFlight.hold(cases.get(i), world, seed + 31L * i);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void everyPatternMethodAndTransportIsRightIterationByIteration(int ranks) {
    LocalRanks.run(ranks, world -> hold(table(ranks), world, 5));
  }

  /// A failure names the seed; run it again with `-Dbraid.seed=…`.
  @Test
  void randomCasesAreToo() {
    long seed = Long.getLong("braid.seed", ThreadLocalRandom.current().nextInt());
    try {
      for (int ranks = 1; ranks <= 4; ranks++) {
        var programs = new Programs(ranks, Capabilities.host(), List.of(), List.of(DType.values()));
        var ways = Capabilities.host().stream().filter(Capabilities.Row::supported).toList();
        var cases =
            new SplittableRandom(seed + ranks)
                .longs(RANDOM_CASES / 4)
                .mapToObj(
                    each -> programs.pipeline(each, ways.get(Math.floorMod(each, ways.size()))))
                .toList();
        LocalRanks.run(ranks, world -> hold(cases, world, seed));
      }
    } catch (RuntimeException | Error e) {
      throw new AssertionError("with -Dbraid.seed=" + seed + ": " + e.getMessage(), e);
    }
  }

  @Test
  void ranksThatAreProcessesAreToo() throws Exception {
    var cases =
        IntStream.range(0, table(3).size())
            .filter(i -> i % 7 < 2)
            .mapToObj(table(3)::get)
            .map(PipelineCase::text)
            .toArray(String[]::new);
    var more = Map.of("BRAID_LINK", "unlimited", "BRAID_TIMEOUT_SECONDS", "60");
    for (var ended : ProcessRanks.run(3, more, OnRank.class, cases)) {
      assertThat(ended.exitCode()).as("rank %d: %s", ended.rank(), ended.output()).isZero();
      assertThat(ended.output()).endsWith("held " + cases.length + " cases\n");
    }
  }

  /// Runs in each process.
  static final class OnRank {
    private OnRank() {}

    public static void main(String[] cases) {
      try (var world = ProcessGroup.world()) {
        hold(Arrays.stream(cases).map(PipelineCase::parse).toList(), world, 9);
        System.out.println("held " + cases.length + " cases");
      }
    }
  }

  /// Unlike above, the test does not order the streams: inputs are written on the multiplying
  /// stream, outputs are saved on the adding one.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theNextGemmWaitsUntilTheLastProductWasSent(boolean replayed) {
    var tuning = replayed ? Overlap.direct(4).replay() : Overlap.direct(4);
    LocalRanks.run(
        2,
        Link.parse("100MB/s,1ms"),
        world -> {
          try (var arena = Arena.ofShared();
              var pipe = Pipeline.on(world).gemm(SPEC).overlap(tuning).build()) {
            var numbers = new ArrayList<MemorySegment>();
            for (int i = 0; i <= 6; i++) {
              pipe.input().fill(i);
              numbers.add(
                  arena
                      .allocate(pipe.input().segment().byteSize(), 8)
                      .copyFrom(pipe.input().segment()));
            }
            pipe.weight().fill(1);
            var saved = new ArrayList<MemorySegment>();
            var work = Work.of(() -> "the test");
            var _ =
                pipe.inFlight(
                    6,
                    _ -> {
                      var output = pipe.output().segment();
                      saved.add(arena.allocate(output.byteSize(), 8));
                      stream(pipe, "reduce").copyLocal(work, output, saved.getLast());
                      stream(pipe, "gemm-0")
                          .copyLocal(work, numbers.get(saved.size()), pipe.input().segment());
                    });
            assertThat(pipe.output().toFloats()).containsOnly(6 * SPEC.k());
            for (int i = 1; i < saved.size(); i++) {
              assertThat(saved.get(i).toArray(ValueLayout.JAVA_FLOAT))
                  .as("iteration %d", i)
                  .containsOnly(i * SPEC.k());
            }
          }
        });
  }

  private static braid.internal.backend.Stream stream(Pipeline pipe, String name) {
    return pipe.streams().stream()
        .filter(each -> each.name().equals(name))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void accumulatingAddsOnceForEachIterationInFlight() {
    LocalRanks.run(
        3,
        world -> {
          for (var tuning :
              List.of(Overlap.pipelined(2), Overlap.ring(2).replay(), Overlap.unfused())) {
            try (var pipe = Pipeline.on(world).gemm(SPEC.accumulate()).overlap(tuning).build()) {
              pipe.input().fill(1);
              pipe.weight().fill(1);
              pipe.output().fill(0);
              assertThat(pipe.time(25, Timing.BACK_TO_BACK)).hasSize(25);
              assertThat(pipe.output().toFloats()).containsOnly(25 * SPEC.k());
              pipe.verify();
            }
          }
        });
  }

  /// The sample of a delayed iteration contains the whole delay.
  @Test
  void samplesAreTheTimesBetweenEnds() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(2)).build()) {
            pipe.verify();
            var held = new ArrayList<HostGate>();
            var times = new ArrayList<Long>();
            long start = System.nanoTime();
            var nanos =
                pipe.inFlight(
                    4,
                    _ -> {
                      if (times.size() == 1) {
                        pipe.streams().getFirst().synchronize(() -> "iteration 0");
                        held.add(new HostGate(pipe.streams().getLast()));
                      }
                      times.add(System.nanoTime());
                      if (times.size() == 4) {
                        held.getFirst().open();
                      }
                    });
            long all = System.nanoTime() - start;
            assertThat(nanos).hasSize(4);
            assertThat(Arrays.stream(nanos).min().orElseThrow()).isPositive();
            assertThat(nanos[1]).isGreaterThanOrEqualTo(times.get(3) - times.get(1));
            assertThat(Arrays.stream(nanos).sum()).isLessThanOrEqualTo(all);
          }
        });
  }

  @Test
  void theDefaultOfTheHostIsOneByOne() {
    LocalRanks.run(
        1,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).build()) {
            assertThat(world.context().backend().timing()).isEqualTo(Timing.LATENCY);
            assertThat(pipe.time(3)).hasSize(3);
            for (var form : Timing.values()) {
              assertThatThrownBy(() -> pipe.time(0, form))
                  .hasMessage("time needs 1 or more iterations but was given 0; try time(10)");
            }
          }
        });
  }

  @Test
  void aFailureInFlightIsTheCauseOnAllRanks() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    3,
                    world -> {
                      try (var pipe =
                          Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(3)).build()) {
                        var begun = new int[1];
                        var _ =
                            pipe.inFlight(
                                100_000,
                                _ -> {
                                  if (++begun[0] == 30 && world.rank() == 1) {
                                    new HostGate(pipe.streams().getLast())
                                        .fail(new BraidException("the planted failure"));
                                  }
                                });
                      }
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessage("the planted failure")
        .satisfies(
            e ->
                assertThat(e.getSuppressed())
                    .hasSize(2)
                    .allSatisfy(
                        other ->
                            assertThat(other)
                                .isInstanceOf(GroupAborted.class)
                                .hasMessageEndingWith(
                                    "was released: rank 1 failed: braid.model.BraidException: the planted failure")));
  }
}
