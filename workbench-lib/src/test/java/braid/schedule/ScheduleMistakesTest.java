package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Small schedules with one mistake each, and the line that reports it. Ranks 0 and 1 gather: each
/// copies its own rows and fetches the other's.
final class ScheduleMistakesTest {
  private static final int ROWS = 4;
  private static final int NONE = Step.NO_CHUNK;

  private final Schedule.Builder builder = Schedule.on("gather", 2);
  private final Buffer x = builder.symmetric("x", DType.FP32, ROWS, 2);
  private final Buffer y = builder.local("y", DType.FP32, 2L * ROWS, 2);
  private final Buffer spare = builder.local("spare", DType.FP32, ROWS, 2);
  private final Flag ready = builder.flag("ready", 2);
  private final Flag read = builder.flag("read", 2);
  private final Lane comm = builder.lane("comm", Lane.Role.COMMUNICATION);
  private final Lane side = builder.lane("side", Lane.Role.COMPLETION);

  ScheduleMistakesTest() {
    builder.given("in", x::on).made("out", y::on);
  }

  private Region own(int rank) {
    return y.on(rank, new Slice((long) rank * ROWS, ROWS));
  }

  private Region fetched(int rank) {
    return y.on(rank, new Slice((1L - rank) * ROWS, ROWS));
  }

  /// Returns a correct schedule, with other steps at one point.
  private Schedule gather(At point, Consumer<Program> instead) {
    return builder.steps(
        program -> {
          for (var at : At.values()) {
            if (at == point) {
              instead.accept(program);
            } else {
              step(program, at);
            }
          }
        });
  }

  private enum At {
    SIGNAL_READY,
    COPY_OWN,
    WAIT_READY,
    FETCH,
    SIGNAL_READ,
    WAIT_READ,
    END
  }

  private void step(Program program, At at) {
    int rank = program.rank();
    int other = 1 - rank;
    switch (at) {
      case SIGNAL_READY -> program.signal(comm, NONE, ready, rank, other);
      case COPY_OWN -> program.copy(comm, NONE, x.on(rank), own(rank));
      case WAIT_READY -> program.await(comm, NONE, ready, other, other);
      case FETCH -> program.copy(comm, NONE, x.on(other), fetched(rank));
      case SIGNAL_READ -> program.signal(comm, NONE, read, rank, other);
      case WAIT_READ -> program.await(comm, NONE, read, other, other);
      case END -> {}
    }
  }

  /// Returns a schedule with other steps at one point of rank 1; rank 0 is correct.
  private Schedule onRank1(At point, Consumer<Program> instead) {
    return gather(
        point,
        program -> {
          if (program.rank() == 1) {
            instead.accept(program);
          } else {
            step(program, point);
          }
        });
  }

  @Test
  void aRightSchedulePasses() {
    var schedule = gather(At.END, _ -> {});
    assertThat(schedule.findings()).isEmpty();
    schedule.check();
  }

  @Test
  void findingsAreThrownInOneLineEach() {
    var schedule = onRank1(At.SIGNAL_READY, _ -> {});
    assertThatThrownBy(schedule::check)
        .isInstanceOf(BraidException.class)
        .hasMessage("gather, 2 ranks: " + schedule.findings().getFirst());
    assertThatThrownBy(
            onRank1(At.WAIT_READY, p -> p.zero(side, NONE, own(0)).zero(side, NONE, own(1)))::check)
        .hasMessageStartingWith("gather, 2 ranks: 3 mistakes\n");
  }

  /// Returns a schedule with other steps at several points of rank 1.
  private Schedule onRank1(Map<At, Consumer<Program>> instead) {
    return builder.steps(
        program -> {
          for (var at : At.values()) {
            if (program.rank() == 1 && instead.containsKey(at)) {
              instead.get(at).accept(program);
            } else {
              step(program, at);
            }
          }
        });
  }

  private void copyFetchedOnOtherLane(Program program) {
    program.copy(side, NONE, fetched(1), spare.on(1));
  }

  private void copyAllOwnButTheLastRow(Program program) {
    program.copy(comm, NONE, x.on(1, new Slice(0, 3)), y.on(1, new Slice(4, 3)));
  }

  private static final String RACE = "race on y of rank 1, rows 0..3: ";

  @Test
  void aMistakenStepHidesNoRaceAndNoWrongOutput() {
    var extra = Buffer.of("extra", DType.FP32, 2, 1, 1, false);
    assertThat(
            onRank1(
                    Map.of(
                        At.COPY_OWN,
                        this::copyAllOwnButTheLastRow,
                        At.WAIT_READ,
                        p -> p.zero(comm, NONE, extra.on(1)),
                        At.END,
                        this::copyFetchedOnOtherLane))
                .findings())
        .satisfiesExactly(
            line ->
                assertThat(line).startsWith("rank 1, lane comm, step 5 (clearing extra@1[0..0]): "),
            line ->
                assertThat(line)
                    .isEqualTo(
                        "rank 0, lane comm, step 4 (signal read[0] to rank 1) is not "
                            + "waited for; let rank 1 wait for it at the end of its iteration"),
            line -> assertThat(line).startsWith(RACE),
            line -> assertThat(line).isEqualTo("y@1[7..7] is never written; let a step write it"));
  }

  @Test
  void aStepOfAnUndeclaredLaneIsComparedWithOthers() {
    var extra = Lane.of("extra", Lane.Role.COMPUTE);
    assertThat(onRank1(At.END, p -> p.copy(extra, NONE, fetched(1), spare.on(1))).findings())
        .satisfiesExactly(
            line ->
                assertThat(line).endsWith("the schedule has no such lane; add it to the builder"),
            line -> assertThat(line).startsWith(RACE));
  }

  @Test
  void declarationsOfAnotherBuilderAreNamed() {
    var lane = new Lane("comm", Lane.Role.COMPUTE, false, Transport.COPY_ENGINE, 0, 0);
    var buffer = Buffer.of("y", DType.FP32, 2, 1, 1, false);
    assertThat(
            onRank1(
                    At.END,
                    p ->
                        p.zero(lane, NONE, spare.on(1))
                            .zero(comm, NONE, buffer.on(1))
                            .signal(comm, NONE, new Flag("read", 3), 0, 0))
                .findings())
        .contains(
            "rank 1, lane comm, step 6 (clearing spare@1[0..3]): the schedule has "
                + "another lane of this name; use the one of the builder",
            "rank 1, lane comm, step 7 (clearing y@1[0..0]): the schedule declares "
                + "another buffer y; use the one of the builder",
            "rank 1, lane comm, step 8 (signal read[0] to rank 0): the schedule has "
                + "another flag of this name; use the one of the builder");
  }

  @Test
  void aSignalThatNoStepNeedsIsToBeRemoved() {
    assertThat(
            onRank1(
                    Map.of(
                        At.COPY_OWN,
                        p -> {
                          step(p, At.COPY_OWN);
                          p.signal(comm, NONE, ready, 0, 0);
                        },
                        At.END,
                        this::copyFetchedOnOtherLane))
                .findings())
        .satisfiesExactly(
            line ->
                assertThat(line)
                    .isEqualTo(
                        "rank 1, lane comm, step 2 (signal ready[0] to rank 0) is not "
                            + "waited for; no step needs the order, so remove it"),
            line -> assertThat(line).startsWith(RACE));
  }

  @Test
  void aWaitThatNoStepNeedsIsToBeRemoved() {
    assertThat(onRank1(At.END, p -> p.await(comm, NONE, ready, 1, 0)).findings())
        .containsExactly(
            "rank 1, lane comm, step 6 (wait for ready[1] from rank 0) never ends: no "
                + "step raises it and no step needs the order, so remove it");
  }

  @Test
  void aDeadlockHidesNoRace() {
    var schedule =
        builder.steps(
            p -> {
              step(p, At.WAIT_READY);
              step(p, At.SIGNAL_READY);
              step(p, At.COPY_OWN);
              step(p, At.FETCH);
              step(p, At.SIGNAL_READ);
              step(p, At.WAIT_READ);
              if (p.rank() == 1) {
                copyFetchedOnOtherLane(p);
              }
            });
    assertThat(schedule.findings())
        .satisfiesExactly(
            line -> assertThat(line).startsWith("deadlock: rank 0, lane comm, step 0 (wait "),
            line -> assertThat(line).startsWith(RACE));
  }

  @Test
  void allDeadlocksAreReported() {
    var four = Schedule.on("pairs", 4);
    var flag = four.flag("ready", 4);
    var lane = four.lane("comm", Lane.Role.COMMUNICATION);
    var schedule =
        four.steps(
            p -> {
              int other = p.rank() ^ 1;
              if (p.rank() < 2) {
                p.await(lane, flag, other).signal(lane, flag, other);
              } else {
                int from = p.rank() == 2 ? 0 : 1;
                p.await(lane, from, flag, from, other).signal(lane, from, flag, 1 - from, other);
              }
            });
    assertThat(schedule.findings())
        .containsExactly(
            "deadlock: rank 0, lane comm, step 0 (wait for ready[1] from rank 1); rank 1, lane comm,"
                + " step 0 (wait for ready[0] from rank 0); each waits for the next, and the last for"
                + " the first, and on 1 more rank");
  }

  /// Without the mark, multiplications may read rows that have not arrived.
  @Test
  void consequencesOfARaceAreNotReported() {
    var schedule = Schedule.of(GemmSpec.allGatherGemm(40, 8, 8), Overlap.pipelined(4), 5);
    assertThat(schedule.findings()).isEmpty();
    var unmarked = schedule.without(1, Step.After.class::isInstance);
    assertThat(unmarked.findings()).hasSize(1).first().asString().startsWith("race on ");
  }

  @Test
  void aMistakeOfManyRanksIsOneLine() {
    var schedule = Schedule.of(GemmSpec.gemmReduceScatter(40, 8, 8), Overlap.pipelined(2), 5);
    var landed =
        schedule.without(
            1, step -> step instanceof Step.Signal signal && signal.flag().name().equals("landed"));
    assertThat(landed.findings())
        .singleElement()
        .asString()
        .startsWith("rank 0, lane reduce, step 32 (wait for landed[2] from rank 1) never ends: ")
        .endsWith(", and at 7 more places of 4 ranks");
    var begun =
        schedule.without(
            1, step -> step instanceof Step.Wait wait && wait.flag().name().equals("begun"));
    assertThat(begun.findings())
        .singleElement()
        .asString()
        .startsWith(
            "rank 0, lane comm, step 0 (signal begun[0] to rank 1) is not waited for; "
                + "let rank 1")
        .endsWith(", and on 3 more ranks");
  }

  static Stream<Arguments> mistakes() {
    return new ScheduleMistakesTest().all().stream();
  }

  private List<Arguments> all() {
    var all = new ArrayList<Arguments>();
    Case add = (name, schedule, line) -> all.add(Arguments.of(name, schedule, line));
    add.of(
        "signal that no rank waits for",
        onRank1(At.WAIT_READY, p -> p.copy(side, NONE, spare.on(1), spare.on(1))),
        "rank 0, lane comm, step 0 (signal ready[0] to rank 1) is not waited for; let "
            + "rank 1 wait for it before rank 1, lane comm, step 3 (copy of x@0[0..3] to "
            + "y@1[0..3])");
    add.of(
        "wait that no step raises",
        onRank1(At.SIGNAL_READY, _ -> {}),
        "rank 0, lane comm, step 2 (wait for ready[1] from rank 1) never ends: no step "
            + "raises it; let rank 1 signal it when its iteration begins");
    add.of(
        "word raised twice",
        onRank1(At.END, p -> p.signal(comm, NONE, ready, 1, 0)),
        "rank 1, lane comm, step 6 (signal ready[1] to rank 0) raises a word that the "
            + "rank has raised before; one signal raises it in an iteration");
    add.of(
        "index outside",
        onRank1(At.END, p -> p.signal(comm, NONE, ready, 2, 0)),
        "rank 1, lane comm, step 6 (signal ready[2] to rank 0): flag ready has words "
            + "0..1 but the index is 2");
    add.of(
        "rank outside",
        onRank1(At.END, p -> p.signal(comm, NONE, ready, 1, 2)),
        "rank 1, lane comm, step 6 (signal ready[1] to rank 2): ranks are 0..1; name "
            + "one of them");
    add.of(
        "signal to itself",
        onRank1(At.END, p -> p.signal(comm, NONE, ready, 1, 1)),
        "rank 1, lane comm, step 6 (signal ready[1] to rank 1): a rank does not signal "
            + "itself; use a mark between its lanes");
    add.of(
        "mark that comes later",
        onRank1(At.END, p -> p.after(comm, NONE, 3).zero(comm, NONE, spare.on(1))),
        "rank 1, lane comm, step 6 (wait for mark 3) has no mark 3 before it; set the "
            + "mark earlier in the rank's steps");
    add.of(
        "lane that is not declared",
        onRank1(At.END, p -> p.zero(Lane.of("extra", Lane.Role.COMPUTE), NONE, spare.on(1))),
        "rank 1, lane extra, step 6 (clearing spare@1[0..3]): the schedule has no such "
            + "lane; add it to the builder");
    add.of(
        "buffer that is not declared",
        onRank1(
            At.END, p -> p.zero(comm, NONE, Buffer.of("extra", DType.FP32, 2, 1, 1, false).on(1))),
        "rank 1, lane comm, step 6 (clearing extra@1[0..0]): the schedule declares no "
            + "such buffer extra; add it to the builder");
    add.of(
        "flag that is not declared",
        onRank1(At.END, p -> p.signal(comm, NONE, new Flag("extra", 1), 0, 0)),
        "rank 1, lane comm, step 6 (signal extra[0] to rank 0): the schedule has no "
            + "such flag; add it to the builder");
    add.of(
        "private buffer of another rank",
        onRank1(At.FETCH, p -> p.copy(comm, NONE, spare.on(0), fetched(1))),
        "rank 1, lane comm, step 3 (copy of spare@0[0..3] to y@1[0..3]): spare@0[0..3] "
            + "is private to rank 0; make it symmetric or copy it on its own rank");
    add.of(
        "rows of two sizes",
        onRank1(At.FETCH, p -> p.copy(comm, NONE, x.on(0), y.on(1, new Slice(0, 3)))),
        "rank 1, lane comm, step 3 (copy of x@0[0..3] to y@1[0..2]): rows must be of "
            + "one size but are 4 of x@0[0..3] and 3 of y@1[0..2]");
    add.of(
        "deadlock",
        gather(
            At.SIGNAL_READY,
            p ->
                p.await(comm, NONE, ready, 1 - p.rank(), 1 - p.rank())
                    .signal(comm, NONE, ready, p.rank(), 1 - p.rank())),
        "deadlock: rank 0, lane comm, step 0 (wait for ready[1] from rank 1); rank 1, lane comm, "
            + "step 0 (wait for ready[0] from rank 0); each waits for the next, and the last for "
            + "the first");
    add.of(
        "read before the other rank is ready",
        onRank1(At.WAIT_READY, p -> p.await(side, NONE, ready, 0, 0)),
        "race on x of rank 0, rows 0..3: the caller's use of `in` on rank 0 before "
            + "iteration 0 and rank 1, lane comm, step 3 (copy of x@0[0..3] to y@1[0..3]) in "
            + "iteration 0 have no order; let rank 1 wait for a signal that rank 0 raises in "
            + "the iteration");
    add.of(
        "iteration that ends while it is read",
        readEarly(),
        "race on x of rank 0, rows 0..3: rank 1, lane comm, step 4 (copy of x@0[0..3] "
            + "to y@1[0..3]) in iteration 0 and the caller's use of `in` on rank 0 before "
            + "iteration 1 have no order; let rank 0 end its iteration after a signal that "
            + "rank 1 raises after its step");
    add.of(
        "two lanes without a mark",
        onRank1(At.END, p -> p.copy(side, NONE, fetched(1), spare.on(1))),
        "race on y of rank 1, rows 0..3: rank 1, lane comm, step 3 (copy of x@0[0..3] "
            + "to y@1[0..3]) in iteration 0 and rank 1, lane side, step 6 (copy of y@1[0..3] "
            + "to spare@1[0..3]) in iteration 0 have no order; let lane side wait for a mark "
            + "of lane comm after the first step");
    add.of(
        "word raised before it was seen",
        wordRaisedAgain(),
        "race on signal ready[0] of rank 1: rank 1, lane comm, step 1 (wait for "
            + "ready[0] from rank 0) in iteration 0 and rank 0, lane comm, step 1 (signal "
            + "ready[0] to rank 1) in iteration 1 have no order; let rank 0 end its "
            + "iteration after a signal that rank 1 raises after its step");
    add.of(
        "moves of one copy that overlap",
        onRank1(
            At.COPY_OWN,
            p ->
                p.copy(
                    comm,
                    NONE,
                    List.of(
                        new Move(x.on(1), own(1)),
                        new Move(x.on(1, new Slice(0, 1)), y.on(1, new Slice(7, 1)))))),
        "race within rank 1, lane comm, step 1 (copy of x@1[0..3] to y@1[4..7] and 1 "
            + "more): it uses y@1[4..7] and y@1[7..7], which overlap, concurrently; split it "
            + "into two steps");
    add.of(
        "output that is never written",
        onRank1(
            At.COPY_OWN,
            p -> p.copy(comm, NONE, x.on(1, new Slice(0, 3)), y.on(1, new Slice(4, 3)))),
        "y@1[7..7] is never written; let a step write it");
    add.of(
        "output that is written twice",
        onRank1(At.END, p -> p.copy(comm, NONE, x.on(1), own(1))),
        "rank 1, lane comm, step 6 (copy of x@1[0..3] to y@1[4..7]) overwrites "
            + "y@1[4..7], which rank 1, lane comm, step 1 (copy of x@1[0..3] to y@1[4..7]) "
            + "wrote; write each output row once, or accumulate");
    add.of(
        "rows that no step wrote",
        onRank1(At.COPY_OWN, p -> p.copy(comm, NONE, spare.on(1), own(1))),
        "rank 1, lane comm, step 1 (copy of spare@1[0..3] to y@1[4..7]) reads "
            + "spare@1[0..3], but 4 of its rows were not written in this iteration; write "
            + "them first");
    add.of(
        "given rows written over",
        onRank1(At.END, p -> p.zero(comm, NONE, x.on(1, new Slice(0, 1)))),
        "rank 1, lane comm, step 6 (clearing x@1[0..0]) overwrites x@1[0..0], which "
            + "the caller gives; write to another buffer");
    return all;
  }

  /// Returns a schedule in which rank 1 signals `read` before it has read.
  private Schedule readEarly() {
    return builder.steps(
        p -> {
          step(p, At.SIGNAL_READY);
          step(p, At.COPY_OWN);
          step(p, At.WAIT_READY);
          step(p, p.rank() == 0 ? At.FETCH : At.SIGNAL_READ);
          step(p, p.rank() == 0 ? At.SIGNAL_READ : At.FETCH);
          step(p, At.WAIT_READ);
        });
  }

  private interface Case {
    void of(String name, Schedule schedule, String line);
  }

  /// Returns a schedule in which rank 0 never waits for rank 1, so it may raise its word twice.
  private Schedule wordRaisedAgain() {
    return builder.steps(
        p -> {
          p.copy(
              comm,
              NONE,
              List.of(
                  new Move(x.on(p.rank()), own(p.rank())),
                  new Move(x.on(p.rank()), fetched(p.rank()))));
          if (p.rank() == 0) {
            p.signal(comm, NONE, ready, 0, 1);
          } else {
            p.await(comm, NONE, ready, 0, 0);
          }
        });
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("mistakes")
  void aMistakeIsOneLine(String name, Schedule schedule, String line) {
    assertThat(schedule.findings()).as(name).first().isEqualTo(line);
  }

  static Stream<Arguments> wrongResults() {
    var all = new ArrayList<Arguments>();
    var gather = GemmSpec.allGatherGemm(8, 4, 4);
    var scatter = GemmSpec.gemmReduceScatter(8, 4, 4).bias();
    Planned add =
        (name, spec, which, change, line) ->
            all.add(Arguments.of(name, planned(spec, which, change), line));
    add.of(
        "rows from the wrong place",
        gather,
        Step.Copy.class,
        step -> {
          var copy = (Step.Copy) step;
          var move = copy.moves().getFirst();
          return Optional.of(
              new Step.Copy(
                  copy.lane(), copy.chunk(), List.of(new Move(shifted(move.from()), move.to()))));
        },
        "output@1[0..1], written by rank 1, lane gemm-0, step 7 (gemm to "
            + "output@1[0..1]), has input@0[1..2] x weight@1[0..3] instead of input@0[0..1] "
            + "x weight@1[0..3]");
    add.of(
        "rank left out of a sum",
        scatter,
        Step.Reduce.class,
        step -> {
          var sum = (Step.Reduce) step;
          return Optional.of(
              new Step.Reduce(
                  sum.lane(), sum.chunk(), sum.parts().subList(0, 1), sum.output(), sum.finish()));
        },
        "output@1[0..1], written by rank 1, lane reduce, step 12 (sum to "
            + "output@1[0..1]), lacks input@1[4..5] x weight@1[0..1]");
    add.of(
        "rank twice in a sum",
        scatter,
        Step.Reduce.class,
        step -> {
          var sum = (Step.Reduce) step;
          return Optional.of(
              new Step.Reduce(
                  sum.lane(),
                  sum.chunk(),
                  List.of(sum.parts().getFirst(), sum.parts().getLast(), sum.parts().getLast()),
                  sum.output(),
                  sum.finish()));
        },
        "output@1[0..1], written by rank 1, lane reduce, step 12 (sum to "
            + "output@1[0..1]), has too much: input@1[4..5] x weight@1[0..1]");
    add.of(
        "bias left out",
        scatter,
        Step.Reduce.class,
        step -> {
          var sum = (Step.Reduce) step;
          return Optional.of(
              new Step.Reduce(sum.lane(), sum.chunk(), sum.parts(), sum.output(), Finish.NONE));
        },
        "output@1[0..1], written by rank 1, lane reduce, step 12 (sum to "
            + "output@1[0..1]), lacks bias@1[0..0]");
    add.of(
        "bias in each part",
        scatter,
        Step.Gemm.class,
        step -> {
          var gemm = (Step.Gemm) step;
          var bias =
              planned(scatter, Step.Gemm.class, Optional::of).buffers().stream()
                  .filter(b -> b.name().equals("bias"))
                  .findFirst();
          return Optional.of(
              new Step.Gemm(
                  gemm.lane(),
                  gemm.chunk(),
                  gemm.tiles(),
                  gemm.weight(),
                  new Finish(true, false, bias, Optional.empty(), Optional.empty())));
        },
        "output@0[0..1], written by rank 0, lane reduce, step 12 (sum to "
            + "output@0[0..1]), has too much: bias@1[0..0]");
    add.of(
        "weight not prepared",
        scatter,
        Step.Prepare.class,
        _ -> Optional.empty(),
        "rank 1, lane gemm-0, step 1 (gemm to partial@1[0..1]) needs weight@1[0..1] "
            + "prepared, but no step prepared it in this iteration; prepare it first, and at "
            + "3 more places of the rank");
    add.of(
        "largest value not cleared",
        gather.dtype(DType.FP8_E4M3),
        Step.Zero.class,
        _ -> Optional.empty(),
        "rank 1, lane gemm-0, step 2 (gemm to output@1[4..7]) raises amax@1[0..0], but "
            + "no step set it to zero in this iteration; clear it first, and at 2 more "
            + "places of the rank");
    add.of(
        "output not scaled",
        gather.dtype(DType.FP8_E4M3),
        Step.Gemm.class,
        step -> {
          var gemm = (Step.Gemm) step;
          return Optional.of(
              new Step.Gemm(
                  gemm.lane(),
                  gemm.chunk(),
                  gemm.tiles(),
                  gemm.weight(),
                  gemm.finish().withScaled(false)));
        },
        "output@1[4..7], written by rank 1, lane gemm-0, step 3 (gemm to "
            + "output@1[4..7]), has input@1[0..3] x weight@1[0..3] not scaled instead of "
            + "input@1[0..3] x weight@1[0..3]");
    add.of(
        "fp8 output not divided by its scale",
        gather.dtype(DType.FP8_E4M3).output(DType.FP8_E4M3),
        Step.Gemm.class,
        step -> rescaled((Step.Gemm) step, false),
        "output@1[4..7], written by rank 1, lane gemm-0, step 3 (gemm to "
            + "output@1[4..7]), is not divided by the output's scale");
    add.of(
        "another output divided by a scale",
        gather.dtype(DType.FP8_E4M3),
        Step.Gemm.class,
        step -> rescaled((Step.Gemm) step, true),
        "output@1[4..7], written by rank 1, lane gemm-0, step 3 (gemm to "
            + "output@1[4..7]), is divided by the output's scale once too often");
    add.of(
        "parts of an fp8 output divided by its scale",
        scatter.dtype(DType.FP8_E4M3).output(DType.FP8_E4M3),
        Step.Gemm.class,
        step -> rescaled((Step.Gemm) step, true),
        "output@0[0..1], written by rank 0, lane reduce, step 13 (sum to "
            + "output@0[0..1]), has (input@1[0..1] x weight@1[0..1]) / output scale instead "
            + "of input@1[0..1] x weight@1[0..1]");
    add.of(
        "gelu left out",
        gather.gelu(),
        Step.Gemm.class,
        step -> {
          var gemm = (Step.Gemm) step;
          return Optional.of(
              new Step.Gemm(gemm.lane(), gemm.chunk(), gemm.tiles(), gemm.weight(), Finish.SCALED));
        },
        "pre activation@1[4..7] is never written; let a step write it");
    return all.stream();
  }

  private static Optional<Step> rescaled(Step.Gemm gemm, boolean rescaled) {
    var of = gemm.finish();
    var finish =
        new Finish(
            of.scaled(), of.accumulate(), of.bias(), of.preActivation(), of.amax(), rescaled);
    return Optional.of(
        new Step.Gemm(gemm.lane(), gemm.chunk(), gemm.tiles(), gemm.weight(), finish));
  }

  private interface Planned {
    void of(
        String name,
        GemmSpec spec,
        Class<? extends Step> which,
        Function<Step, Optional<Step>> change,
        String line);
  }

  private static Region shifted(Region region) {
    return region.buffer().on(region.rank(), region.slice().shifted(1));
  }

  /// Returns the schedule of two ranks in two chunks, with the first step of a type on rank 1
  /// changed.
  private static Schedule planned(
      GemmSpec spec, Class<? extends Step> which, Function<Step, Optional<Step>> change) {
    var schedule = Schedule.of(spec, Overlap.pipelined(2), 2);
    var steps = new ArrayList<>(schedule.steps(1));
    var first = steps.stream().filter(which::isInstance).findFirst().orElseThrow();
    int at = steps.indexOf(first);
    steps.remove(at);
    change.apply(first).ifPresent(step -> steps.add(at, step));
    return schedule.with(1, steps);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("wrongResults")
  void aWrongResultIsFound(String name, Schedule schedule, String line) {
    assertThat(schedule.findings()).as(name).first().isEqualTo(line);
  }

  @Test
  void aWaitNamesTheRankThatSignals() {
    var schedule = Schedule.of(GemmSpec.allGatherGemm(6, 3, 2), Overlap.pipelined(1), 3);
    var steps = new ArrayList<>(schedule.steps(1));
    var wait =
        (Step.Wait) steps.stream().filter(Step.Wait.class::isInstance).findFirst().orElseThrow();
    steps.set(
        steps.indexOf(wait),
        new Step.Wait(wait.lane(), wait.chunk(), wait.flag(), wait.index(), 2 - wait.from()));
    assertThat(schedule.with(1, steps).findings())
        .containsExactly(
            "rank 1, lane comm, step 4 (wait for begun[0] from rank 2) is raised by "
                + "another rank: rank 0, lane comm, step 0 (signal begun[0] to rank 1); wait "
                + "for rank 0");
  }

  @Test
  void stepsThatMatchAreLeftOutOfOneRank() {
    var schedule = Schedule.of(GemmSpec.allGatherGemm(6, 3, 2), Overlap.pipelined(1), 3);
    var without = schedule.without(1, Step.Wait.class::isInstance);
    assertThat(without.steps(1)).isNotEmpty().noneMatch(Step.Wait.class::isInstance);
    assertThat(without.steps(1))
        .hasSize(
            (int) schedule.steps(1).stream().filter(step -> !(step instanceof Step.Wait)).count());
    assertThat(without.steps(0)).isEqualTo(schedule.steps(0));
    assertThat(without.findings()).isNotEmpty();
    assertThat(schedule.without(1, _ -> false)).isEqualTo(schedule);
  }

  @Test
  void aBufferNamesTheRanksThatItHas() {
    for (int rank : new int[] {-1, 2}) {
      assertThatThrownBy(() -> x.on(rank))
          .isInstanceOf(BraidException.class)
          .hasMessage(
              "the rank of buffer `x` must be 0..1 but was %d; leave out steps with ranks that the schedule does not have, or start more ranks"
                  .formatted(rank));
      assertThatThrownBy(() -> x.on(rank, new Slice(0, 1))).isInstanceOf(BraidException.class);
      assertThatThrownBy(() -> new Region(x, rank, 0, 1, 0, 1)).isInstanceOf(BraidException.class);
    }
  }
}
