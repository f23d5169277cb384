package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.OwnSchedule.Pair.At;
import braid.internal.selftest.WrittenSchedules;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Timing;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Hand-written schedules, run as pipelines.
class OwnScheduleTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(26, 9, 8);
  private static final GemmSpec SUMS = GemmSpec.gemmReduceScatter(10, 6, 9);

  enum Gather {
    TWO_LEVELS,
    ONE_NODE,
    REVERSED;

    Schedule of(GemmSpec spec, int ranks) {
      return switch (this) {
        case TWO_LEVELS -> WrittenSchedules.twoLevel(spec, ranks, ranks % 2 == 0 ? 2 : 1);
        case ONE_NODE -> WrittenSchedules.twoLevel(spec, ranks, ranks);
        case REVERSED -> WrittenSchedules.reversed(spec, ranks, 3);
      };
    }
  }

  static Stream<Arguments> gathers() {
    return Stream.of(Gather.values())
        .flatMap(
            gather ->
                IntStream.rangeClosed(1, 4)
                    .boxed()
                    .flatMap(
                        ranks ->
                            Stream.of(false, true)
                                .map(replayed -> Arguments.of(gather, ranks, replayed))));
  }

  @ParameterizedTest
  @MethodSource("gathers")
  void anOwnGatherRunsInEveryForm(Gather gather, int ranks, boolean replayed) {
    var schedule = gather.of(SPEC, ranks);
    var inputs = new ConcurrentHashMap<Integer, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          try (var pipe = OwnSchedule.build(world, schedule, replayed)) {
            pipe.verify();
            pipe.input().fillIntegers(world.rank() + 7L);
            pipe.weight().fillIntegers(world.rank() + 70L);
            inputs.put(world.rank(), pipe.input().toFloats());
            assertThat(pipe.time(5, Timing.LATENCY)).hasSize(5);
            checkAgainstLoops(pipe, inputs);
            pipe.output().fill(Float.NaN);
            assertThat(pipe.time(7, Timing.BACK_TO_BACK)).hasSize(7);
            checkAgainstLoops(pipe, inputs);
            pipe.verify();
            assertThat(pipe.schedule()).isEqualTo(replayed ? schedule.replay() : schedule);
            assertThat(pipe.toString())
                .contains("own schedule " + schedule.fingerprint())
                .doesNotContain("\n");
          }
        });
  }

  private static void checkAgainstLoops(Pipeline pipe, Map<Integer, float[]> inputs) {
    int ranks = pipe.group().size();
    int k = SPEC.k();
    var weight = pipe.weight().toFloats();
    int columns = weight.length / k;
    var expected = new float[SPEC.m() * columns];
    int row = 0;
    for (int rank = 0; rank < ranks; rank++) {
      var input = Objects.requireNonNull(inputs.get(rank));
      for (int local = 0; local < input.length / k; local++, row++) {
        for (int column = 0; column < columns; column++) {
          for (int i = 0; i < k; i++) {
            expected[row * columns + column] += input[local * k + i] * weight[i * columns + column];
          }
        }
      }
    }
    assertThat(pipe.output().toFloats()).containsExactly(expected);
  }

  @ParameterizedTest
  @CsvSource({"1", "2", "3", "4"})
  void anOwnSumRuns(int ranks) {
    var schedule = WrittenSchedules.reduceScatter(SUMS, ranks, _ -> true);
    LocalRanks.run(
        ranks,
        world -> {
          try (var pipe = OwnSchedule.build(world, schedule, false);
              var planned = Pipeline.on(world).gemm(SUMS).overlap(Overlap.unfused()).build()) {
            pipe.verify();
            planned.run();
            assertThat(pipe.output().toFloats()).containsExactly(planned.output().toFloats());
          }
        });
  }

  @Test
  void aProfileHasTheLanesOfTheSchedule() {
    var schedule = WrittenSchedules.twoLevel(SPEC, 4, 2);
    LocalRanks.run(
        4,
        world -> {
          try (var pipe = OwnSchedule.build(world, schedule, false)) {
            var profile = pipe.profile(3);
            var stages =
                profile.spans().stream()
                    .filter(span -> span.stage() != Stage.WAIT)
                    .collect(
                        Collectors.groupingBy(
                            Span::stream, Collectors.mapping(Span::stage, Collectors.toSet())));
            assertThat(stages.keySet()).containsExactlyInAnyOrder("across", "within", "math");
            assertThat(stages.get("math")).contains(Stage.GEMM).doesNotContain(Stage.COPY);
            assertThat(stages.get("across")).contains(Stage.COPY).doesNotContain(Stage.GEMM);
            assertThat(
                    profile.spans().stream()
                        .filter(span -> span.stage() == Stage.COPY && span.iteration() == 1)
                        .map(Span::chunk))
                .containsExactlyInAnyOrder(1, 2, 3);
            assertThat(profile.configuration()).containsEntry("method", "own schedule");
          }
        });
  }

  static Stream<Arguments> planned() {
    return Stream.of(
        Arguments.of(SPEC, Overlap.pipelined(3).streams(2)),
        Arguments.of(SPEC.dtype(DType.BF16).bias().gelu(), Overlap.ring()),
        Arguments.of(SPEC.dtype(DType.FP8_E4M3), Overlap.pipelined(2)),
        Arguments.of(SUMS, Overlap.direct()),
        Arguments.of(SUMS.dtype(DType.BF16), Overlap.ring()),
        Arguments.of(
            GemmSpec.gemmAllReduce(12, 5, 9), Overlap.pipelined(2).over(Transport.WORKERS)),
        Arguments.of(
            GemmSpec.gemmAllReduce(12, 5, 9), Overlap.pipelined(2).outputInSymmetricMemory()));
  }

  @ParameterizedTest
  @MethodSource("planned")
  void aPlannedScheduleComputesTheSameAsItsPipeline(GemmSpec spec, Overlap tuning) {
    LocalRanks.run(
        3,
        world -> {
          var own = Pipeline.on(world).schedule(Schedule.of(spec, tuning, world.size()));
          var other = Pipeline.on(world).gemm(spec).overlap(tuning);
          if (spec.dtype().isFp8()) {
            own.scales(0.5f, 2);
            other.scales(0.5f, 2);
          }
          try (var pipe = own.build();
              var planned = other.build()) {
            pipe.verify();
            planned.verify();
            assertThat(pipe.output().toFloats()).containsExactly(planned.output().toFloats());
            if (spec.dtype().isFp8()) {
              assertThat(pipe.amax()).isEqualTo(planned.amax());
            }
            if (tuning.symmetricOutput()) {
              world.barrier();
              assertThat(pipe.output(0).toFloats()).containsExactly(planned.output(0).toFloats());
              world.barrier();
            }
            var random = new Random(world.rank());
            for (int row = 0; row < pipe.input().shape().get(0); row++) {
              for (int column = 0; column < pipe.input().shape().get(1); column++) {
                pipe.input().set((float) random.nextGaussian(), row, column);
              }
            }
            pipe.verify();
          }
        });
  }

  @Test
  void equalSchedulesShareAPlanAndOthersDoNot() {
    LocalRanks.run(
        2,
        world -> {
          OwnSchedule.build(world, WrittenSchedules.reversed(SPEC, 2, 3), false).close();
          assertThat(OwnSchedule.plans(world)).containsExactly(1L, 0L);
          OwnSchedule.build(world, WrittenSchedules.reversed(SPEC, 2, 3), false).close();
          assertThat(OwnSchedule.plans(world)).containsExactly(1L, 1L);
          OwnSchedule.build(world, WrittenSchedules.reversed(SPEC, 2, 2), false).close();
          OwnSchedule.build(world, WrittenSchedules.reversed(SPEC, 2, 3), true).close();
          Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(3)).build().close();
          assertThat(OwnSchedule.plans(world)).containsExactly(4L, 1L);
        });
  }

  @Test
  void anotherScheduleOnOneRankIsRefusedOnAll() {
    var one = WrittenSchedules.reversed(SPEC, 3, 3);
    var other = WrittenSchedules.reversed(SPEC, 3, 2);
    var messages = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        3,
        world -> {
          messages.put(
              world.rank(),
              OwnSchedule.refused(
                  () -> OwnSchedule.build(world, world.rank() == 1 ? other : one, false)));
          OwnSchedule.build(world, one, false).close();
        });
    assertThat(messages).hasSize(3);
    assertThat(messages.values())
        .allSatisfy(
            message ->
                assertThat(message)
                    .startsWith(
                        "build a pipeline in group `world`: ranks must agree but ranks 0, 2 have")
                    .contains("own schedule " + one.fingerprint())
                    .contains("own schedule " + other.fingerprint())
                    .doesNotContain("\n"));
  }

  @Test
  void aFingerprintIsOfAllThatSchedulesDifferIn() {
    var right = OwnSchedule.pair(SPEC, At.END, (o, p) -> p.await(o.comm, o.read, 0));
    var others =
        List.of(
            OwnSchedule.pair(SPEC, At.END, (_, _) -> {}),
            lane(Lane.of("comm", Lane.Role.COMMUNICATION)),
            lane(Lane.of("comm", Lane.Role.COMPLETION)),
            lane(new Lane("comm", Lane.Role.COMMUNICATION, true, Transport.COPY_ENGINE, 0, 0)),
            lane(new Lane("comm", Lane.Role.COMMUNICATION, false, Transport.WORKERS, 2, 0)),
            Schedule.on(SPEC, 2).steps(_ -> {}),
            Schedule.on(SUMS, 2).steps(_ -> {}),
            buffer(false, 4),
            buffer(true, 4),
            buffer(true, 5));
    assertThat(right.fingerprint())
        .isEqualTo(
            OwnSchedule.pair(SPEC, At.END, (o, p) -> p.await(o.comm, o.read, 0)).fingerprint());
    assertThat(others.stream().map(Schedule::fingerprint).collect(Collectors.toSet()))
        .hasSize(others.size())
        .doesNotContain(right.fingerprint());
  }

  private static Schedule lane(Lane lane) {
    var plan = Schedule.on(SPEC, 2);
    plan.add(lane);
    return plan.steps(_ -> {});
  }

  private static Schedule buffer(boolean symmetric, int rows) {
    var plan = Schedule.on(SPEC, 2);
    var buffer = Buffer.of("x", DType.FP32, 2, rows, 2, symmetric);
    plan.add(buffer);
    return plan.steps(_ -> {});
  }
}
