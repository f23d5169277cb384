package braid.schedule.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Which signals, waits and marks the pass adds to steps without any.
final class OrderingTest {
  private static final int ROWS = 4;

  private final Schedule.Builder builder = Schedule.on("a test", 2);
  private final Buffer input = builder.symmetric("input", DType.FP32, ROWS, 1);
  private final Buffer inbox = builder.symmetric("inbox", DType.FP32, ROWS, 1);
  private final Buffer kept = builder.local("kept", DType.FP32, 2 * ROWS, 1);
  private final Lane comm = builder.lane("comm", Lane.Role.COMMUNICATION);
  private final Lane math = builder.lane("math", Lane.Role.COMPUTE);

  {
    var _ = builder.given("input", input::on);
  }

  private static List<String> texts(Schedule schedule, int rank) {
    return schedule.steps(rank).stream().map(step -> step.lane() + ": " + step.text()).toList();
  }

  private Schedule checked(Consumer<Program> planner) {
    var schedule = builder.ordered(planner);
    assertThat(schedule.findings()).isEmpty();
    return schedule;
  }

  private void add(Program program, Lane lane, Buffer from, int row) {
    int rank = program.rank();
    var half = kept.on(rank, new braid.schedule.Slice(row, ROWS));
    program.reduce(lane, 0, List.of(from.on(rank)), half, Finish.NONE);
  }

  @Test
  void fetchWaitsForBeginAndSourceForRead() {
    var schedule =
        checked(
            program -> {
              if (program.rank() == 1) {
                program.copy(comm, 0, input.on(0), inbox.on(1));
                add(program, math, inbox, 0);
              }
            });
    assertThat(texts(schedule, 0))
        .containsExactly("comm: signal begun[0] to rank 1", "comm: wait for read[1] from rank 1");
    assertThat(texts(schedule, 1))
        .containsExactly(
            "comm: wait for begun[0] from rank 0",
            "comm: copy of input@0[0..3] to inbox@1[0..3]",
            "comm: mark 0",
            "math: wait for mark 0",
            "math: sum to kept@1[0..3]",
            "comm: signal read[1] to rank 0");
  }

  @Test
  void stepsOfOneLaneNeedNothing() {
    var schedule =
        checked(
            program -> {
              program.copy(comm, 0, input.on(program.rank()), inbox.on(program.rank()));
              add(program, comm, inbox, 0);
            });
    assertThat(texts(schedule, 0)).hasSize(2);
  }

  /// The second message may only be written when the first one has been added.
  @Test
  void roundsOrderMessagesThroughOneInbox() {
    var schedule =
        checked(
            program -> {
              for (int message = 0; message < 2; message++) {
                program.round(message);
                if (program.rank() == 0) {
                  program.copy(comm, message, input.on(0), inbox.on(1));
                } else {
                  add(program, math, inbox, message * ROWS);
                }
              }
            });
    assertThat(texts(schedule, 0))
        .containsExactly(
            "comm: wait for begun[1] from rank 1",
            "comm: copy of input@0[0..3] to inbox@1[0..3]",
            "comm: signal landed[0] to rank 1",
            "comm: wait for free[1] from rank 1",
            "comm: copy of input@0[0..3] to inbox@1[0..3]",
            "comm: signal landed[1] to rank 1");
    assertThat(texts(schedule, 1))
        .containsExactly(
            "comm: signal begun[1] to rank 0",
            "math: wait for landed[0] from rank 0",
            "math: sum to kept@1[0..3]",
            "math: signal free[1] to rank 0",
            "math: wait for landed[1] from rank 0",
            "math: sum to kept@1[4..7]");
  }

  /// Without rounds both writes come before both reads, and the first message is lost.
  @Test
  void messagesWithoutRoundsAreFound() {
    var schedule =
        builder.ordered(
            program -> {
              if (program.rank() == 0) {
                program.copy(comm, 0, input.on(0), inbox.on(1));
              } else {
                program.copy(comm, 0, input.on(1), inbox.on(1));
                add(program, math, inbox, 0);
              }
            });
    assertThat(schedule.findings()).isNotEmpty().first().asString().contains("race on inbox");
  }

  @Test
  void ranksThatWaitInCircleAreFound() {
    var schedule =
        builder.ordered(
            program -> {
              int peer = 1 - program.rank();
              program.copy(comm, 0, inbox.on(peer), kept.on(program.rank(), inbox.on(0).slice()));
              program.copy(comm, 1, input.on(program.rank()), inbox.on(program.rank()));
            });
    assertThat(schedule.findings())
        .containsExactly(
            "deadlock: rank 0, lane comm, step 2 (wait for landed[1] from rank 1), raised after copy of"
                + " input@1[0..3] to inbox@1[0..3]; rank 1, lane comm, step 2 (wait for landed[0]"
                + " from rank 0), raised after copy of input@0[0..3] to inbox@0[0..3]; each waits for"
                + " the next, and the last for the first");
  }

  @Test
  void announcerRaisesSignals() {
    var announcer = builder.lane("announce", Lane.Role.COMPLETION);
    builder.announces(announcer, math);
    var schedule =
        checked(
            program -> {
              if (program.rank() == 0) {
                program.copy(math, 0, input.on(0), inbox.on(0));
              } else {
                program.copy(comm, 0, inbox.on(0), inbox.on(1));
              }
            });
    assertThat(texts(schedule, 0))
        .containsExactly(
            "math: copy of input@0[0..3] to inbox@0[0..3]",
            "math: mark 0",
            "announce: wait for mark 0",
            "announce: signal landed[0] to rank 1",
            "comm: wait for read[1] from rank 1");
  }

  /// Two lanes wait for one word.
  @Test
  void oneSignalServesTwoLanes() {
    var schedule =
        checked(
            program -> {
              if (program.rank() == 0) {
                program.copy(comm, 0, input.on(0), inbox.on(1));
              } else {
                add(program, comm, inbox, 0);
                add(program, math, inbox, ROWS);
              }
            });
    assertThat(schedule.steps(0).stream().filter(Step.Signal.class::isInstance)).hasSize(1);
    assertThat(schedule.steps(1).stream().filter(Step.Wait.class::isInstance)).hasSize(2);
  }

  @Test
  void statedOrderIsKeptAndNotRepeated() {
    var schedule =
        checked(
            program -> {
              int rank = program.rank();
              program.copy(comm, 0, input.on(rank), inbox.on(rank));
              program.after(math, 0, comm);
              add(program, math, inbox, 0);
            });
    assertThat(schedule.steps(0).stream().filter(Step.After.class::isInstance)).hasSize(1);
  }

  /// Plans from the steps of all ranks what the planners plan from those of rank 0.
  @ParameterizedTest
  @MethodSource("gemms")
  void rotationEqualsProgramsOfAllRanks(GemmSpec spec, Overlap how, int ranks) {
    var goal = new Goal.Solution(spec, Optional.of(how));
    var planned = Schedule.on(goal, ranks);
    var rotated = GemmPlanner.plan(planned, spec, how, ranks);
    assertThat(planned.rotated()).isPresent();
    var all = rotated.withoutPorts();
    planned.lanes().forEach(lane -> all.announces(planned.announcer(lane), lane));
    var unrotated =
        all.ordered(
            program ->
                rotated.steps(program.rank()).stream()
                    .filter(step -> step.stage().isPresent())
                    .forEach(program::add));
    assertThat(unrotated.flags()).isEqualTo(rotated.flags());
    for (int rank = 0; rank < ranks; rank++) {
      assertThat(unrotated.steps(rank)).isEqualTo(rotated.steps(rank));
    }
  }

  static Stream<Arguments> gemms() {
    return IntStream.rangeClosed(1, 9)
        .boxed()
        .flatMap(
            ranks ->
                Stream.of(
                        GemmSpec.allGatherGemm(6 * ranks, 2 * ranks, 3 * ranks),
                        GemmSpec.allGatherGemm(6 * ranks, 2 * ranks, 3 * ranks).gatheredInput(),
                        GemmSpec.gemmReduceScatter(6 * ranks, 2 * ranks, 3 * ranks),
                        GemmSpec.gemmAllReduce(6 * ranks, 2 * ranks, 3 * ranks),
                        GemmSpec.gemmAllReduce(6 * ranks, 2 * ranks, 3 * ranks).bias().gelu(),
                        GemmSpec.besideAllGather(8, 2, 3, 7L * ranks),
                        GemmSpec.besideReduceScatter(8, 2, 3, 7L * ranks))
                    .flatMap(
                        spec ->
                            Stream.of(
                                    Overlap.pipelined(1),
                                    Overlap.pipelined(3).streams(2),
                                    Overlap.direct(3),
                                    Overlap.ring(3),
                                    Overlap.ring(1).order(ChunkOrder.PREVIOUS_FIRST))
                                .filter(
                                    how ->
                                        spec.pattern() != GemmSpec.Pattern.GEMM_ALL_REDUCE
                                            || how.method() != Method.PIPELINED
                                            || how.splits() == 1)
                                .map(how -> Arguments.of(spec, how, ranks))));
  }

  @Test
  void rankWithOtherStepsBreaksRotation() {
    builder.rotates();
    var schedule =
        builder.ordered(
            program -> {
              if (program.rank() == 0) {
                program.copy(comm, 0, input.on(1), inbox.on(0));
              }
            });
    assertThatThrownBy(() -> schedule.steps(1))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "rank 1 must have 1 steps as rank 0 has, since rotates() states that all ranks do the same, but has 0; leave rotates() out");
  }

  /// Both ranks fetch from rank 0, so one of them does not do the same.
  @Test
  void wrongRotationIsFound() {
    builder.rotates();
    var schedule =
        builder.ordered(program -> program.copy(comm, 0, input.on(0), inbox.on(program.rank())));
    assertThat(schedule.findings()).isNotEmpty();
  }

  /// Five rows on three ranks: one has fewer, and still all do the same.
  @Test
  void unequalPartsNeedNoOtherOrder() {
    var spec = GemmSpec.allGatherGemm(5, 6, 3);
    var goal = new Goal.Solution(spec, Optional.of(Overlap.ring(1)));
    var planned = Schedule.on(goal, 3);
    var schedule = GemmPlanner.plan(planned, spec, Overlap.ring(1), 3);
    assertThat(planned.rotated()).isEmpty();
    assertThat(schedule.findings()).isEmpty();
    var kinds = schedule.steps(0).stream().map(Step::getClass).toList();
    assertThat(schedule.steps(1).stream().map(Step::getClass).toList()).isEqualTo(kinds);
  }
}
