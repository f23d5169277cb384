package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.Transport;
import braid.schedule.Step.LibraryCall;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Checks of collectives: schedules of plain copies and sums pass, and fail if a rank uses its
/// neighbor's part; library calls pass in one order and fail in two.
final class ScheduleGoalsTest {
  private static final int RANKS = 3;
  private static final int PART = 2;
  private static final int ROOT = 1;

  private static long rows(Collective collective, boolean given) {
    return switch (collective) {
      case ALL_GATHER -> given ? PART : RANKS * PART;
      case REDUCE_SCATTER -> given ? RANKS * PART : PART;
      case ALL_REDUCE, ALL_TO_ALL, BROADCAST, SEND, RECEIVE, BARRIER -> RANKS * PART;
    };
  }

  private static Region part(Buffer of, int rank, int part) {
    return of.on(rank, new Slice((long) part * PART, PART));
  }

  /// Returns a schedule in which every rank fetches its data, in parts of [#PART] rows.
  ///
  /// @param mistaken true if rank 2 uses a wrong first part
  private static Schedule plain(Collective collective, boolean mistaken) {
    var builder =
        Schedule.on(
            new Goal.Collected(collective, collective == Collective.BROADCAST ? ROOT : 0), RANKS);
    var x = builder.symmetric("x", DType.FP32, rows(collective, true), 1);
    var y = builder.local("y", DType.FP32, rows(collective, false), 1);
    var fetched = builder.local("fetched", DType.FP32, (long) RANKS * RANKS * PART, 1);
    builder.given("in", x::on).made("out", y::on);
    var ready = builder.flag("ready", RANKS);
    var read = builder.flag("read", RANKS);
    var lane = builder.add(Lane.of("comm", Transport.NCCL_KERNELS));
    return builder.steps(
        program -> {
          int rank = program.rank();
          var others = IntStream.range(0, RANKS).filter(other -> other != rank).boxed().toList();
          others.forEach(other -> program.signal(lane, -1, ready, rank, other));
          others.forEach(other -> program.await(lane, -1, ready, other, other));
          for (int part = 0; part < y.rows(rank) / PART; part++) {
            int from = mistaken && rank == 2 && part == 0 ? 1 : part;
            var to = part(y, rank, part);
            switch (collective) {
              case ALL_GATHER -> program.copy(lane, part, part(x, from, 0), to);
              case ALL_TO_ALL -> program.copy(lane, part, part(x, from, rank), to);
              case BROADCAST -> program.copy(lane, part, part(x, ROOT, from), to);
              case ALL_REDUCE, REDUCE_SCATTER -> {
                int at = part;
                int wanted =
                    collective == Collective.ALL_REDUCE ? from : mistaken && rank == 2 ? 1 : rank;
                var parts =
                    IntStream.range(0, RANKS)
                        .mapToObj(source -> part(fetched, rank, at * RANKS + source))
                        .toList();
                for (int source = 0; source < RANKS; source++) {
                  program.copy(lane, part, part(x, source, wanted), parts.get(source));
                }
                program.reduce(lane, part, parts, to, Finish.NONE);
              }
              case SEND, RECEIVE, BARRIER -> {}
            }
          }
          others.forEach(other -> program.signal(lane, -1, read, rank, other));
          others.forEach(other -> program.await(lane, -1, read, other, other));
        });
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.EXCLUDE,
      names = {"SEND", "RECEIVE", "BARRIER"})
  void plainCopiesAndSumsMakeACollective(Collective collective) {
    assertThat(plain(collective, false).findings()).isEmpty();
    assertThat(plain(collective, true).findings())
        .hasSize(1)
        .first()
        .asString()
        .startsWith("y@2[0..1], written by ")
        .contains(" instead of x@");
  }

  /// Returns a schedule of two library calls on one lane; with `turned` rank 1 makes them in
  /// reverse order.
  private static Schedule byLibrary(Collective collective, boolean turned) {
    var builder =
        Schedule.on(
            new Goal.Collected(collective, collective == Collective.BROADCAST ? ROOT : 0), RANKS);
    var x = builder.symmetric("x", DType.FP32, rows(collective, true), 1);
    var y = builder.symmetric("y", DType.FP32, rows(collective, false), 1);
    var spare = builder.symmetric("spare", DType.FP32, 1, 1);
    builder.given("in", x::on).made("out", y::on);
    var lane = builder.add(Lane.of("comm", Transport.NCCL_KERNELS));
    int root = collective == Collective.BROADCAST ? ROOT : 0;
    return builder.steps(
        program -> {
          int rank = program.rank();
          var calls =
              List.of(
                  new LibraryCall(
                      lane, Step.NO_CHUNK, collective, x.on(rank), y.on(rank), root, false),
                  new LibraryCall(
                      lane,
                      Step.NO_CHUNK,
                      Collective.BARRIER,
                      spare.on(rank),
                      spare.on(rank),
                      0,
                      false));
          (turned && rank == 1 ? calls.reversed() : calls).forEach(program::call);
        });
  }

  @ParameterizedTest
  @EnumSource(names = {"SEND", "RECEIVE"})
  void messagesAreNoCollectivesOfAllRanks(Collective message) {
    assertThatThrownBy(() -> new Goal.Collected(message, 0))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("must be a collective of all ranks but was " + message + "; name");
    var builder = Schedule.on("own", RANKS);
    var x = builder.symmetric("x", DType.FP32, PART, 1);
    var lane = builder.add(Lane.of("comm", Transport.NCCL_KERNELS));
    assertThatThrownBy(
            () -> new Step.LibraryCall(lane, Step.NO_CHUNK, message, x.on(0), x.on(0), 0, false))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "a library call must be a collective of all ranks but was %s; copy instead"
                .formatted(message));
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.EXCLUDE,
      names = {"SEND", "RECEIVE", "BARRIER"})
  void libraryCallsMeetInOneOrder(Collective collective) {
    assertThat(byLibrary(collective, false).findings()).isEmpty();
    assertThat(byLibrary(collective, true).findings())
        .containsExactly(
            "deadlock: rank 0, lane comm, step 0 (%s by nccl_kernels) meets rank 1, lane comm, step 0"
                    .formatted(collective)
                + " (barrier by nccl_kernels); let all ranks make the same calls in one order");
  }

  /// Returns a schedule in which rank 0 enqueues its signal after a call; too late if the host
  /// waits for the call.
  private static Schedule heldByHost(boolean hostWaits) {
    var builder = Schedule.on("held", 2);
    var spare = builder.symmetric("spare", DType.FP32, 1, 1);
    var ready = builder.flag("ready", 2);
    var comm = builder.add(Lane.of("comm", Transport.NCCL_KERNELS));
    var side = builder.lane("side", Lane.Role.COMPLETION);
    return builder.steps(
        program -> {
          int rank = program.rank();
          int other = 1 - rank;
          program.await(comm, -1, ready, other, other);
          if (rank == 1) {
            program.signal(comm, -1, ready, rank, other);
          }
          program.call(
              new LibraryCall(
                  comm,
                  Step.NO_CHUNK,
                  Collective.BARRIER,
                  spare.on(rank),
                  spare.on(rank),
                  0,
                  hostWaits));
          if (rank == 0) {
            program.signal(side, -1, ready, rank, other);
          }
        });
  }

  @Test
  void aHostThatWaitsCanBeADeadlock() {
    assertThat(heldByHost(false).findings()).isEmpty();
    assertThat(heldByHost(true).findings())
        .containsExactly(
            "deadlock: rank 0, lane comm, step 0 (wait for ready[1] from rank 1); rank 1, lane comm,"
                + " step 0 (wait for ready[0] from rank 0); rank 0, lane side, step 2 (signal ready[0]"
                + " to rank 1), which is enqueued only after a library call that the host waits for;"
                + " each waits for the next, and the last for the first");
  }
}
