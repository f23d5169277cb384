package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.BraidException;
import braid.DType;
import braid.GemmSpec;
import braid.Overlap;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Small schedules with one mistake each, and the line that says so. Ranks 0 and 1 gather: each
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

  /// A right schedule, with other steps at one point.
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

  /// On rank 1 other steps than at that point, on rank 0 the right ones.
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
    assertThatThrownBy(gather(At.FETCH, p -> p.copy(side, NONE, y.on(0), spare.on(0)))::check)
        .hasMessageStartingWith("gather, 2 ranks: 3 mistakes\n");
  }

  static Stream<Arguments> mistakes() {
    return new ScheduleMistakesTest().all().stream();
  }

  private List<Arguments> all() {
    var all = new ArrayList<Arguments>();
    Case add = (name, schedule, line) -> all.add(Arguments.of(name, schedule, line));
    add.of("signal that nobody waits for", onRank1(At.WAIT_READY, p -> p.copy(side, NONE, spare.on(1), spare.on(1))), "?");
    add.of("wait that no step raises", onRank1(At.SIGNAL_READY, _ -> {}), "?");
    add.of("word raised twice", onRank1(At.END, p -> p.signal(comm, NONE, ready, 1, 0)), "?");
    add.of("wait for another rank's signal", onRank1(At.SIGNAL_READY, p -> p.signal(comm, NONE, ready, 2, 0)), "?");
    add.of("rank outside", onRank1(At.END, p -> p.signal(comm, NONE, ready, 1, 2)), "?");
    add.of("signal to itself", onRank1(At.END, p -> p.signal(comm, NONE, ready, 1, 1)), "?");
    add.of("mark that comes later", onRank1(At.END, p -> p.after(comm, NONE, 3).zero(comm, NONE, spare.on(1))), "?");
    add.of("lane that is not declared", onRank1(At.END, p -> p.zero(Lane.of("extra", Lane.Role.COMPUTE), NONE, spare.on(1))), "?");
    add.of("buffer that is not declared", onRank1(At.END, p -> p.zero(comm, NONE, Buffer.of("extra", DType.FP32, 2, 1, 1, false).on(1))), "?");
    add.of("flag that is not declared", onRank1(At.END, p -> p.signal(comm, NONE, new Flag("extra", 1), 0, 0)), "?");
    add.of("private buffer of another rank", onRank1(At.FETCH, p -> p.copy(comm, NONE, spare.on(0), fetched(1))), "?");
    add.of("rows of two sizes", onRank1(At.FETCH, p -> p.copy(comm, NONE, x.on(0), y.on(1, new Slice(0, 3)))), "?");
    add.of("deadlock", gather(At.SIGNAL_READY, p -> p.await(comm, NONE, ready, 1 - p.rank(), 1 - p.rank()).signal(comm, NONE, ready, p.rank(), 1 - p.rank())), "?");
    add.of("read before the other rank is ready", onRank1(At.WAIT_READY, p -> p.await(side, NONE, ready, 0, 0)), "?");
    add.of("iteration that ends while it is read", onRank1(At.SIGNAL_READ, p -> step(p, At.SIGNAL_READY)), "?");
    add.of("two lanes without a mark", onRank1(At.END, p -> p.copy(side, NONE, fetched(1), spare.on(1))), "?");
    add.of("word raised before it was seen", wordRaisedAgain(), "?");
    add.of("moves of one copy that overlap", onRank1(At.COPY_OWN, p -> p.copy(comm, NONE, List.of(new Move(x.on(1), own(1)), new Move(x.on(1, new Slice(0, 1)), y.on(1, new Slice(7, 1)))))), "?");
    add.of("output that is never written", onRank1(At.COPY_OWN, p -> p.copy(comm, NONE, x.on(1, new Slice(0, 3)), y.on(1, new Slice(4, 3)))), "?");
    add.of("output that is written twice", onRank1(At.END, p -> p.copy(comm, NONE, x.on(1), own(1))), "?");
    add.of("rows that nobody wrote", onRank1(At.COPY_OWN, p -> p.copy(comm, NONE, spare.on(1), own(1))), "?");
    add.of("given rows written over", onRank1(At.END, p -> p.zero(comm, NONE, x.on(1, new Slice(0, 1)))), "?");
    return all;
  }

  private interface Case {
    void of(String name, Schedule schedule, String line);
  }

  /// Rank 1 waits for nothing of rank 0 in an iteration, so rank 0 may raise its word twice.
  private Schedule wordRaisedAgain() {
    return builder.steps(
        p -> {
          p.copy(comm, NONE, List.of(new Move(x.on(p.rank()), own(p.rank())), new Move(x.on(p.rank()), fetched(p.rank()))));
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
    assertThat(schedule.findings()).as(name).containsExactly(line);
  }

  static Stream<Arguments> wrongResults() {
    var all = new ArrayList<Arguments>();
    var gather = GemmSpec.allGatherGemm(8, 4, 4);
    var scatter = GemmSpec.gemmReduceScatter(8, 4, 4).bias();
    Planned add = (name, spec, which, change, line) -> all.add(Arguments.of(name, planned(spec, which, change), line));
    add.of("rows from the wrong place", gather, Step.Copy.class, step -> {
      var copy = (Step.Copy) step;
      var move = copy.moves().getFirst();
      return Optional.of(new Step.Copy(copy.lane(), copy.chunk(), List.of(new Move(shifted(move.from()), move.to()))));
    }, "?");
    add.of("rank left out of a sum", scatter, Step.Reduce.class, step -> {
      var sum = (Step.Reduce) step;
      return Optional.of(new Step.Reduce(sum.lane(), sum.chunk(), sum.parts().subList(0, 1), sum.output(), sum.finish()));
    }, "?");
    add.of("rank twice in a sum", scatter, Step.Reduce.class, step -> {
      var sum = (Step.Reduce) step;
      return Optional.of(new Step.Reduce(sum.lane(), sum.chunk(), List.of(sum.parts().getFirst(), sum.parts().getLast(), sum.parts().getLast()), sum.output(), sum.finish()));
    }, "?");
    add.of("bias left out", scatter, Step.Reduce.class, step -> {
      var sum = (Step.Reduce) step;
      return Optional.of(new Step.Reduce(sum.lane(), sum.chunk(), sum.parts(), sum.output(), Finish.NONE));
    }, "?");
    add.of("bias in each part", scatter, Step.Gemm.class, step -> {
      var gemm = (Step.Gemm) step;
      var bias = planned(scatter, Step.Gemm.class, Optional::of).buffers().stream().filter(b -> b.name().equals("bias")).findFirst();
      return Optional.of(new Step.Gemm(gemm.lane(), gemm.chunk(), gemm.tiles(), gemm.weight(), new Finish(true, false, bias, Optional.empty(), Optional.empty())));
    }, "?");
    add.of("weight not prepared", scatter, Step.Prepare.class, _ -> Optional.empty(), "?");
    add.of("largest value not cleared", gather.dtype(DType.FP8_E4M3), Step.Zero.class, _ -> Optional.empty(), "?");
    add.of("output not scaled", gather.dtype(DType.FP8_E4M3), Step.Gemm.class, step -> {
      var gemm = (Step.Gemm) step;
      return Optional.of(new Step.Gemm(gemm.lane(), gemm.chunk(), gemm.tiles(), gemm.weight(), gemm.finish().withScaled(false)));
    }, "?");
    add.of("gelu left out", gather.gelu(), Step.Gemm.class, step -> {
      var gemm = (Step.Gemm) step;
      return Optional.of(new Step.Gemm(gemm.lane(), gemm.chunk(), gemm.tiles(), gemm.weight(), Finish.SCALED));
    }, "?");
    return all.stream();
  }

  private interface Planned {
    void of(
        String name,
        GemmSpec spec,
        Class<? extends Step> which,
        java.util.function.Function<Step, Optional<Step>> change,
        String line);
  }

  private static Region shifted(Region region) {
    return region.buffer().on(region.rank(), region.slice().shifted(1));
  }

  /// The schedule of two ranks in two chunks, with the first such step of rank 1 changed.
  private static Schedule planned(
      GemmSpec spec,
      Class<? extends Step> which,
      java.util.function.Function<Step, Optional<Step>> change) {
    var schedule = Schedule.of(spec, Overlap.splits(2), 2);
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
}
