package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.OwnSchedule.Pair.At;
import braid.OwnSchedule.Pair.Instead;
import braid.internal.memory.Counter;
import braid.internal.selftest.WrittenSchedules;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Schedules that pipelines refuse, and their messages.
class OwnScheduleRefusedTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(26, 9, 8);
  private static final GemmSpec SUMS = GemmSpec.gemmReduceScatter(10, 6, 9);
  private static final Instead NOTHING = (_, _) -> {};

  private record Refusal(String name, Schedule schedule, List<String> lines) {}

  private static Refusal refusal(String name, Schedule schedule, String... lines) {
    return new Refusal(name, schedule, List.of(lines));
  }

  static Stream<Arguments> mistakes() {
    return all().map(each -> Arguments.of(each.name(), each.schedule(), each.lines()));
  }

  private static Stream<Refusal> all() {
    var right = OwnSchedule.pair(SPEC, At.END, (o, p) -> p.await(o.comm, o.read, 0));
    var late = new ArrayList<>(right.steps(1));
    late.add(late.removeFirst());
    return Stream.of(
        refusal(
            "wait without a signal",
            OwnSchedule.pair(SPEC, At.BEGIN, NOTHING),
            "rank 0, lane comm, step 3 (wait for begun[1] from rank 1) never ends: no "
                + "step raises it; let rank 1 signal it when its iteration begins"),
        refusal(
            "signal without a wait",
            OwnSchedule.pair(SPEC, At.WAIT, NOTHING),
            "rank 0, lane comm, step 0 (signal begun[0] to rank 1) is not waited for; "
                + "let rank 1 wait for it before rank 1, lane comm, step 3 (copy of "
                + "input@0[0..12] to gathered@1[0..12])"),
        refusal("deadlock", right.with(1, late), "deadlock: "),
        refusal(
            "race",
            OwnSchedule.pair(SPEC, At.AFTER, NOTHING),
            "race on gathered of rank 1, rows 0..12: "),
        refusal(
            "missing row",
            OwnSchedule.pair(SPEC, At.MULTIPLY, NOTHING),
            "output@1[0..12] is never written; let a step write it"),
        refusal(
            "wrong source row",
            OwnSchedule.pair(
                SPEC,
                At.FETCH,
                (o, p) ->
                    p.copy(
                            o.comm,
                            1,
                            o.input.on(0, new Slice(1, 12)),
                            o.all.on(1, new Slice(0, 12)))
                        .copy(
                            o.comm,
                            1,
                            o.input.on(0, new Slice(0, 1)),
                            o.all.on(1, new Slice(12, 1)))),
            "output@1[0..11], written by rank 1, lane math, step 8 (gemm to "
                + "output@1[0..12]), has input@0[1..12] x weight@1[0..7] instead of "
                + "input@0[0..11] x weight@1[0..7], and at 1 more place of the rank"),
        refusal(
            "missing rank in a sum",
            WrittenSchedules.reduceScatter(SUMS, 2, rank -> rank != 1),
            "output@0[0..4], written by rank 0, lane math, step 10 (sum to "
                + "output@0[0..4]), lacks input@1[0..4] x weight@1[0..3]"),
        refusal(
            "weight that is not ready",
            OwnSchedule.pair(
                SPEC,
                At.OWN,
                (o, p) ->
                    p.gemm(o.math, 0, o.input.on(1), o.weight.on(1), o.output.on(1, o.rows(1)))),
            "rank 1, lane math, step 1 (gemm to output@1[13..25]) needs weight@1[0..7] "
                + "prepared, but no step prepared it in this iteration; prepare it first, "
                + "and at 1 more place of the rank"));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("mistakes")
  void aMistakeIsSaidBeforeAnythingRuns(String name, Schedule schedule, List<String> lines) {
    var right = OwnSchedule.pair(SPEC, At.END, (o, p) -> p.await(o.comm, o.read, 0));
    LocalRanks.run(
        2,
        world -> {
          var message = OwnSchedule.refused(() -> OwnSchedule.build(world, schedule, false));
          assertThat(message).startsWith(schedule + ": ");
          if (lines.size() == 1) {
            assertThat(message).startsWith(schedule + ": " + lines.getFirst()).doesNotContain("\n");
          } else {
            assertThat(message)
                .isEqualTo(
                    "%s: %d mistakes\n%s"
                        .formatted(schedule, lines.size(), String.join("\n", lines)));
          }
          assertThat(OwnSchedule.plans(world)).as(name).containsExactly(0L, 0L);
          assertThat(world.counters().getOrDefault(Counter.RENDEZVOUS.text(), 0L)).isZero();
          try (var pipe = OwnSchedule.build(world, right, false)) {
            pipe.verify();
          }
        });
  }

  @Test
  void aMistakeOnOneRankAloneReleasesTheOthers() {
    var right = OwnSchedule.pair(SPEC, At.END, (o, p) -> p.await(o.comm, o.read, 0));
    var wrong = OwnSchedule.pair(SPEC, At.END, NOTHING);
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world ->
                        OwnSchedule.build(world, world.rank() == 0 ? wrong : right, false).close()))
        .isInstanceOf(BraidException.class)
        .isNotInstanceOf(GroupAborted.class)
        .hasMessageContaining("is not waited for");
  }

  @Test
  void aScheduleOfAnotherProblemOrGroupIsRefused() {
    var right = WrittenSchedules.reversed(SPEC, 2, 2);
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(
                  () -> OwnSchedule.build(world, WrittenSchedules.reversed(SPEC, 3, 2), false))
              .hasMessage(
                  "the schedule is of 3 ranks but group `world` has 2; make it for world.size()");
          assertThatThrownBy(
                  () -> Pipeline.on(world).schedule(right).overlap(Overlap.pipelined(2)).build())
              .hasMessage(
                  "a schedule replaces an overlap but both were set (%s); leave one out"
                      .formatted(Overlap.pipelined(2)));
          assertThatThrownBy(() -> Pipeline.on(world).schedule(right).gemm(SUMS).build())
              .hasMessage(
                  "the schedule is for %s but the problem is %s; leave the problem out"
                      .formatted(SPEC, SUMS));
          assertThatThrownBy(
                  () -> OwnSchedule.build(world, Schedule.on("mine", 2).steps(_ -> {}), false))
              .hasMessage(
                  "a pipeline's schedule must be for a problem but is `mine`; begin it with"
                      + " Schedule.on(spec, ranks)");
          assertThatThrownBy(() -> Pipeline.on(world).schedule(right).schedule(right))
              .hasMessage("schedule was set already: %s; set it once".formatted(right));
          assertThatThrownBy(() -> Pipeline.on(world).schedule(right).scales(1, 2).build())
              .hasMessageContaining("scales");
          try (var pipe = OwnSchedule.build(world, right, false)) {
            assertThatThrownBy(pipe::tuning)
                .hasMessage(pipe + " has a schedule of its own and no tuning; see schedule()");
            assertThatThrownBy(() -> pipe.output(1)).isInstanceOf(BraidException.class);
          }
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world)
                          .gemm(SPEC)
                          .schedule(right)
                          .memory(MemoryKind.NVSHMEM)
                          .build())
              .isInstanceOf(BraidException.class);
          try (var pipe = Pipeline.on(world).gemm(SPEC).schedule(right).build()) {
            pipe.verify();
          }
        });
  }

  /// Returns a schedule with the given buffers and ports; its steps do not matter.
  private static Schedule withInput(Optional<Buffer> input, boolean given) {
    var plan = Schedule.on(SPEC, 2);
    plan.local(Part.WEIGHT);
    plan.local(Part.OUTPUT);
    input.ifPresent(
        buffer -> {
          plan.add(buffer);
          if (given) {
            plan.given("input", buffer::on);
          } else {
            plan.made("input", buffer::on);
          }
        });
    return plan.steps(_ -> {});
  }

  @Test
  void portsMustBeThoseOfTheProblem() {
    LocalRanks.run(
        2,
        world -> {
          var missing =
              "a schedule of %s must have given port `input` but has ".formatted(SPEC)
                  + "given port `weight`, made port `output`%s; add it with local(Part.INPUT)";
          assertThatThrownBy(
                  () -> OwnSchedule.build(world, withInput(Optional.empty(), true), false))
              .hasMessage(missing.formatted(""));
          var fits = Buffer.of("input", DType.FP32, 2, 13, 8, true);
          assertThatThrownBy(
                  () -> OwnSchedule.build(world, withInput(Optional.of(fits), false), false))
              .hasMessage(missing.formatted(", made port `input`"));
          assertThatThrownBy(
                  () ->
                      OwnSchedule.build(
                          world,
                          withInput(Optional.of(Buffer.of("x", DType.FP32, 2, 26, 8, true)), true),
                          false))
              .hasMessage(
                  "port `input` of rank 0 must be 13 x 8 fp32 but was x@0[0..25] of 8 columns fp32;"
                      + " give the buffer that shape");
          assertThatThrownBy(
                  () ->
                      OwnSchedule.build(
                          world,
                          withInput(Optional.of(Buffer.of("x", DType.BF16, 2, 13, 8, true)), true),
                          false))
              .hasMessageContaining("must be 13 x 8 fp32 but was x@0[0..12] of 8 columns bf16");
        });
  }

  @Test
  void stepsThatNoPipelineHasAreRefused() {
    var collective = Lane.of("comm", Transport.NCCL_SYMMETRIC);
    var plan = Schedule.on(SPEC, 2);
    var x = plan.symmetric(Part.INPUT);
    plan.local(Part.WEIGHT);
    plan.local(Part.OUTPUT);
    var y = plan.local("y", DType.FP32, 26, 8);
    plan.add(collective);
    var schedule =
        plan.steps(
            p ->
                p.call(
                    new Step.LibraryCall(
                        collective,
                        Step.NO_CHUNK,
                        braid.model.Collective.ALL_GATHER,
                        x.on(p.rank()),
                        y.on(p.rank()),
                        0,
                        false)));
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(() -> OwnSchedule.build(world, schedule, false))
                .hasMessage(
                    "library calls of your own must be over nccl_kernels, for which the host need"
                        + " not wait, but it has rank 0, lane comm, step 0 (all-gather by"
                        + " nccl_symmetric); give lane `comm` Transport.NCCL_KERNELS, or write"
                        + " copies and signals instead"));
  }

  @Test
  void g4ACallOfYourOwnNeedsItsLibrary() {
    var plan = Schedule.on(SPEC, 2);
    var rows = plan.local(Part.INPUT);
    var weight = plan.local(Part.WEIGHT);
    var output = plan.local(Part.OUTPUT);
    var all = plan.local("all", DType.FP32, 26, 8);
    var comm = plan.add(Lane.of("comm", Transport.NCCL_KERNELS));
    var math = plan.lane("math", Lane.Role.COMPUTE);
    var schedule =
        plan.ordered(
            p -> {
              int me = p.rank();
              p.prepare(math, weight.on(me));
              p.call(
                  new Step.LibraryCall(
                      comm,
                      0,
                      braid.model.Collective.ALL_GATHER,
                      rows.on(me),
                      all.on(me),
                      0,
                      false));
              p.gemm(math, 0, all.on(me), weight.on(me), output.on(me));
            });
    assertThat(schedule.findings()).isEmpty();
    assertThat(Schedule.fromJson(schedule.toJson())).isEqualTo(schedule);
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(() -> OwnSchedule.build(world, schedule, false))
                .isInstanceOf(BraidException.class)
                .hasMessageStartingWith(SPEC + ", own schedule ")
                .hasMessageEndingWith(
                    ": rank 0: nccl_kernels needs the cuda backend but the backend is host; use"
                        + " over(COPY_ENGINE)"));
  }

  @Test
  void builderRefusesWhatCannotBe() {
    var plan = Schedule.on(SPEC, 2);
    assertThatThrownBy(() -> Schedule.on("mine", 2).local(Part.WEIGHT))
        .hasMessage(
            "weight is a part of a problem but `mine` has none; begin it with Schedule.on(spec,"
                + " ranks)");
    plan.local(Part.WEIGHT);
    assertThatThrownBy(() -> plan.symmetric(Part.WEIGHT))
        .hasMessage("buffer `weight` exists already; choose another name");
    assertThatThrownBy(() -> plan.lane(" ", Lane.Role.COMPUTE))
        .hasMessage("a lane needs a name but has none; give it one, such as lane");
    assertThatThrownBy(
            () -> new Lane("comm", Lane.Role.COMMUNICATION, false, Transport.WORKERS, 0, 0))
        .hasMessage("workers of lane `comm` over workers must be 1..128 but were 0; try 1");
    assertThatThrownBy(
            () -> new Lane("comm", Lane.Role.COMMUNICATION, false, Transport.COPY_ENGINE, 0, -1))
        .hasMessage("reserved compute units of lane `comm` must be 0 or more but were -1; try 0");
  }

  @Test
  void typesAndStorageMustFit() {
    var plan = Schedule.on(GemmSpec.gemmReduceScatter(10, 6, 9).transposedInput(), 1);
    var input = plan.local(Part.INPUT);
    var weight = plan.local(Part.WEIGHT);
    plan.local(Part.OUTPUT);
    var copy = plan.local("copy", DType.FP32, 10, 9);
    var narrow = plan.local("narrow", DType.BF16, 10, 9);
    var out = plan.local("out", DType.FP32, 10, 6);
    var math = plan.lane("math", Lane.Role.COMPUTE);
    assertThat(plan.steps(p -> p.copy(math, 0, input.on(0), copy.on(0))).findings())
        .containsExactly(
            "rank 0, lane math, step 0 (copy of input@0[0..9] to copy@0[0..9]): "
                + "input@0[0..9] is stored by columns and copy@0[0..9] is not; copy between "
                + "buffers of one layout");
    assertThat(plan.steps(p -> p.gemm(math, 0, narrow.on(0), weight.on(0), out.on(0))).findings())
        .containsExactly(
            "rank 0, lane math, step 0 (gemm to out@0[0..9]): narrow@0[0..9] is bf16 "
                + "but weight@0[0..8] is fp32; multiply numbers of one type");
    var line = plan.local("line", DType.BF16, 1, 6);
    var finish =
        new Finish(false, false, Optional.of(line), Optional.empty(), Optional.empty(), false);
    assertThat(plan.steps(p -> p.reduce(math, 0, List.of(out.on(0)), out.on(0), finish)).findings())
        .containsExactly(
            "rank 0, lane math, step 0 (sum to out@0[0..9]): for out@0[0..9] in fp32, "
                + "line must be fp32 but is bf16");
  }
}
