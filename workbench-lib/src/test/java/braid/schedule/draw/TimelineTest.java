package braid.schedule.draw;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.xml.sax.InputSource;

/// Timelines show every step once, in a possible order, and terminate for any schedule.
class TimelineTest {
  private static final List<GemmSpec> SPECS =
      List.of(
          GemmSpec.allGatherGemm(96, 64, 64),
          GemmSpec.gemmReduceScatter(96, 64, 64),
          GemmSpec.gemmAllReduce(96, 64, 64),
          GemmSpec.besideAllGather(96, 64, 64, 960),
          GemmSpec.besideReduceScatter(96, 64, 64, 960));

  private static final List<Overlap> OVERLAPS =
      List.of(
          Overlap.pipelined(3).streams(2),
          Overlap.bulk(),
          Overlap.direct(2),
          Overlap.ring(2),
          Overlap.unfused());

  /// Returns the tunings that exist for a problem.
  private static List<Overlap> overlaps(GemmSpec spec) {
    return OVERLAPS.stream()
        .filter(overlap -> overlap.method() != Method.BULK || spec.pattern().beside())
        .toList();
  }

  /// Returns a schedule of two ranks: each copies and signals, and the other sums.
  private static Schedule pair(boolean signaled) {
    var builder = Schedule.on("a pair", 2);
    var data = builder.symmetric("data", DType.FP32, 4, 4);
    var inbox = builder.symmetric("inbox", DType.FP32, 4, 4);
    var sum = builder.local("sum", DType.FP32, 4, 4);
    var arrived = builder.flag("arrived", 2);
    var comm = builder.lane("comm", Lane.Role.COMMUNICATION);
    var adder = builder.lane("add", Lane.Role.COMPLETION);
    return builder.steps(
        program -> {
          int rank = program.rank();
          int other = 1 - rank;
          program.copy(comm, 0, data.on(rank), inbox.on(other));
          if (signaled || rank == 0) {
            program.signal(comm, 0, arrived, rank, other);
          }
          program.await(adder, 0, arrived, other, other);
          program.reduce(
              adder, 0, List.of(data.on(rank), inbox.on(rank)), sum.on(rank), Finish.NONE);
        });
  }

  @Test
  void aUsersScheduleIsDrawn() {
    assertThat(pair(true).timeline())
        .isEqualTo(
            """
            rank 0
            comm  | send 0 @1 >
            add               | sum 0 |
                              ^ arrived 0 @1
            rank 1
            comm  | send 0 @0 >
            add               | sum 0 |
                              ^ arrived 0 @0""");
  }

  @Test
  void stepsThatNeverStartAreDrawnAtTheEnd() {
    assertThat(pair(false).timeline())
        .isEqualTo(
            """
            rank 0
            comm  | send 0 @1 >
            add                         ? sum 0 ?
                                        ^ arrived 0 @1: never
            rank 1
            comm  | send 0 @0 |
            add               | sum 0 |
                              ^ arrived 0 @0""");
  }

  @Test
  void aLibraryCallStartsWhenAllRanksHaveComeToIt() {
    var builder = Schedule.on("calls", 3);
    var x = builder.symmetric("x", DType.FP32, 3, 1);
    var y = builder.symmetric("y", DType.FP32, 3, 1);
    var comm = builder.add(Lane.of("comm", Transport.NCCL_KERNELS));
    var calls =
        builder.steps(
            program -> {
              int rank = program.rank();
              for (int i = 0; i < rank; i++) {
                program.copy(comm, i, x.on(rank), y.on(rank));
              }
              for (int i = 0; i < 2; i++) {
                program.call(
                    new Step.LibraryCall(
                        comm,
                        Step.NO_CHUNK,
                        Collective.ALL_REDUCE,
                        x.on(rank),
                        y.on(rank),
                        0,
                        false));
              }
            });
    var timeline = Timeline.of(calls);
    for (int rank = 0; rank < 3; rank++) {
      assertThat(
              timeline.steps(rank).stream()
                  .filter(placed -> placed.step() instanceof Step.LibraryCall)
                  .map(Timeline.Placed::start))
          .containsExactly(2, 3);
    }
    var short2 = calls.with(2, calls.steps(2).subList(0, 3));
    assertThat(Timeline.of(short2).steps(0).stream().map(Timeline.Placed::start))
        .containsExactly(2, Timeline.NEVER);
  }

  /// Checks the times of all steps against their dependencies.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5})
  void noStepStartsBeforeItMay(int ranks) {
    for (var spec : SPECS) {
      for (var overlap : overlaps(spec)) {
        var schedule = Schedule.of(spec, overlap, ranks);
        var timeline = Timeline.of(schedule);
        for (int rank = 0; rank < ranks; rank++) {
          assertThat(timeline.steps(rank)).allMatch(Timeline.Placed::starts);
          for (var lane : timeline.lanes(rank).values()) {
            for (int i = 1; i < lane.size(); i++) {
              assertThat(lane.get(i).start()).isGreaterThanOrEqualTo(lane.get(i - 1).end());
            }
          }
          for (var placed : timeline.steps(rank)) {
            if (placed.step() instanceof Step.After after) {
              assertThat(placed.start()).isGreaterThanOrEqualTo(mark(timeline, rank, after.mark()));
            } else if (placed.step() instanceof Step.Wait wait) {
              assertThat(placed.start()).isGreaterThanOrEqualTo(signal(timeline, wait, rank));
            }
          }
        }
      }
    }
  }

  private static int mark(Timeline timeline, int rank, int number) {
    return timeline.steps(rank).stream()
        .filter(placed -> placed.step() instanceof Step.Mark mark && mark.number() == number)
        .mapToInt(Timeline.Placed::start)
        .sum();
  }

  private static int signal(Timeline timeline, Step.Wait wait, int rank) {
    return timeline.steps(wait.from()).stream()
        .filter(
            placed ->
                placed.step() instanceof Step.Signal signal
                    && signal.to() == rank
                    && signal.flag().equals(wait.flag())
                    && signal.index() == wait.index())
        .mapToInt(Timeline.Placed::start)
        .sum();
  }

  @Test
  void linesAreNoLongerThanAPageAndAscii() {
    for (var spec : SPECS) {
      for (var overlap : overlaps(spec)) {
        for (int ranks : new int[] {1, 2, 4, 12}) {
          var schedule = Schedule.of(spec, overlap, ranks);
          assertThat(schedule.timeline().lines())
              .as("%s", schedule)
              .allMatch(line -> line.length() <= 92 && line.matches("[ -~]*"));
          assertThat(schedule.toString()).doesNotContain("\n");
        }
      }
    }
  }

  @Test
  void longTimelinesAreCutInTheMiddle() {
    var text = Schedule.of(SPECS.get(1), Overlap.pipelined(8), 8).timeline(0);
    assertThat(text)
        .contains(" ... ")
        .contains("gemm 0@1")
        .contains("gemm 7 own")
        .doesNotContain("gemm 4")
        .endsWith("... leaves out 57 of 65 units of time and all steps of 6 chunks");
  }

  @Test
  void aRankThatIsNotThereIsRefused() {
    assertThatThrownBy(() -> pair(true).timeline(2))
        .isInstanceOf(BraidException.class)
        .hasMessage("the rank of a timeline must be 0..1 but was 2");
  }

  /// Any step may be missing or moved: the timeline still terminates and shows all steps.
  @Test
  void wrongSchedulesAreDrawnToo() throws Exception {
    long seed = Long.getLong("braid.seed", System.nanoTime());
    var random = new Random(seed);
    for (int i = 0; i < 200; i++) {
      var spec = SPECS.get(random.nextInt(SPECS.size()));
      var overlaps = overlaps(spec);
      var schedule =
          Schedule.of(spec, overlaps.get(random.nextInt(overlaps.size())), 2 + random.nextInt(3));
      int rank = random.nextInt(schedule.ranks());
      var steps = new ArrayList<>(schedule.steps(rank));
      var removed = steps.remove(random.nextInt(steps.size()));
      if (random.nextBoolean()) {
        steps.add(random.nextInt(steps.size() + 1), removed);
      }
      var wrong = schedule.with(rank, steps);
      assertThat(wrong.timeline()).as("-Dbraid.seed=%d", seed).contains("rank " + rank);
      everyStepIsDrawn(wrong);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void picturesShowEveryStepAndSignal(int ranks) throws Exception {
    for (var spec : SPECS) {
      for (var overlap : overlaps(spec)) {
        everyStepIsDrawn(Schedule.of(spec, overlap, ranks));
      }
    }
  }

  private static void everyStepIsDrawn(Schedule schedule) throws Exception {
    var svg = svg(schedule);
    var document =
        DocumentBuilderFactory.newInstance()
            .newDocumentBuilder()
            .parse(new InputSource(new StringReader(svg)));
    int cells = 0;
    int waits = 0;
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      for (var placed : Timeline.of(schedule).steps(rank)) {
        switch (placed.step()) {
          case Step.Wait _ -> waits += placed.starts() ? 1 : 0;
          case Step.Signal _, Step.Mark _, Step.After _ -> {}
          default -> cells++;
        }
      }
    }
    // The first rectangle is the background.
    assertThat(document.getElementsByTagName("rect").getLength()).isEqualTo(1 + cells);
    var counts = Pattern.compile("(\\d+) of (\\d+) signals are drawn").matcher(svg);
    int arrows = document.getElementsByTagName("circle").getLength();
    if (counts.find()) {
      assertThat(arrows).isEqualTo(Integer.parseInt(counts.group(1)));
      assertThat(waits).isEqualTo(Integer.parseInt(counts.group(2)));
    } else {
      assertThat(arrows).isEqualTo(waits);
    }
    assertThat(svg(schedule)).isEqualTo(svg);
  }

  private static String svg(Schedule schedule) {
    return Objects.requireNonNull(schedule.display().data().get(MimeBundle.SVG));
  }

  @Test
  void ofManyRanksTheFirstAreDrawn() {
    var schedule = Schedule.of(SPECS.getFirst(), Overlap.pipelined(8), 12);
    assertThat(schedule.timeline())
        .contains("rank 7\n")
        .doesNotContain("rank 8\n")
        .endsWith("ranks 8 to 11 are not drawn; timeline(11) draws the last");
    assertThat(svg(schedule)).contains("Order of one iteration on ranks 0 to 7 of 12");
  }

  @Test
  void namesCannotBreakThePicture() throws Exception {
    var builder = Schedule.on("<a> & \"b\"", 1);
    var data = builder.local("data", DType.FP32, 1, 1);
    var lane = builder.lane("<&>", Lane.Role.COMPUTE);
    everyStepIsDrawn(builder.steps(program -> program.zero(lane, 0, data.on(0))));
  }
}
