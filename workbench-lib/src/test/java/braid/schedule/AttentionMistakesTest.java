package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import braid.schedule.Step.Signal;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The messages of the check for mistakes in steps of attention.
class AttentionMistakesTest {
  private static final AttentionSpec SPEC = AttentionSpec.of(8, 2, 3).causal().dtype(DType.BF16);

  private final Schedule right = Schedule.of(SPEC, ContextParallel.ring().streams(2), 2);

  /// Returns the mistakes of the schedule with a changed attention on rank 1.
  ///
  /// @param number number of the attention among those of the rank
  private List<String> attending(int number, UnaryOperator<Attend> change) {
    int at = steps(Attend.class).get(number);
    return with(at, change.apply((Attend) right.steps(1).get(at)));
  }

  private List<String> merging(UnaryOperator<Merge> change) {
    int at = steps(Merge.class).getFirst();
    return with(at, change.apply((Merge) right.steps(1).get(at)));
  }

  private List<Integer> steps(Class<? extends Step> type) {
    var numbers = new ArrayList<Integer>();
    for (int i = 0; i < right.steps(1).size(); i++) {
      if (type.isInstance(right.steps(1).get(i))) {
        numbers.add(i);
      }
    }
    return numbers;
  }

  private List<String> with(int at, Step other) {
    var steps = new ArrayList<>(right.steps(1));
    steps.set(at, other);
    return right.with(1, steps).findings();
  }

  private static Attend changed(
      Attend of, AttentionSpec spec, long queryPosition, Region value, boolean continued) {
    return new Attend(
        of.lane(),
        of.chunk(),
        spec,
        of.query(),
        Tokens.from(queryPosition, of.query().rows()),
        of.key(),
        value,
        of.keys(),
        of.result(),
        continued);
  }

  @Test
  void theRightSchedulePasses() {
    assertThat(right.findings()).isEmpty();
    assertThat(steps(Attend.class)).hasSize(2);
    assertThat(steps(Merge.class)).hasSize(1);
  }

  @Test
  void aWrongPositionIsFound() {
    assertThat(
            attending(
                0, of -> changed(of, SPEC, of.queries().first() - 1, of.value(), of.continued())))
        .startsWith(
            "rank 1, lane attend-0, step 8 (merge to output@1[0..3]) merges what is "
                + "not attention of the same rows; merge blocks of one query");
    assertThat(attending(0, of -> changed(of, SPEC, 5, of.value(), of.continued())))
        .containsExactly(
            "rank 1, lane attend-0, step 0 (attention of query@1[0..3] to "
                + "key@1[0..3]): positions are 0..7 but query@1[0..3] has 5..8");
  }

  /// The queries of a chunk are at its last keys, not at its first.
  @Test
  void aPositionByTheNumberOfTheRowIsFound() {
    var chunk = AttentionSpec.of(4, 2, 3).keys(8).causal();
    var planned = Schedule.of(chunk, ContextParallel.ring(), 1);
    assertThat(planned.findings()).isEmpty();
    var attend = (Attend) planned.steps(0).getFirst();
    assertThat(attend.queries()).isEqualTo(Tokens.from(4, 4));
    var wrong = changed(attend, chunk, 0, attend.value(), false);
    assertThat(planned.with(0, List.of(wrong)).findings())
        .first()
        .asString()
        .contains("has attention of query@0[0..3] at position 0 to key@0[0..3]");
  }

  @Test
  void otherValuesAreFound() {
    assertThat(
            attending(1, of -> changed(of, SPEC, of.queries().first(), of.key(), of.continued())))
        .first()
        .asString()
        .startsWith(
            "output@1[0..3], written by rank 1, lane attend-0, step 8 (merge to "
                + "output@1[0..3]), has attention of query@1[0..3] at position 4 to "
                + "key@0[0..3] with key@0[0..3] and key@1[0..3] with value@1[0..3] instead "
                + "of attention of query@1[0..3] at position 4 to key@0[0..3] with "
                + "value@0[0..3] and key@1[0..3] with value@1[0..3]");
  }

  @Test
  void anotherAttentionIsFound() {
    assertThat(
            attending(
                0,
                of -> changed(of, SPEC.scale(2), of.queries().first(), of.value(), of.continued())))
        .containsExactly(
            "rank 1, lane attend-0, step 0 (attention of query@1[0..3] to "
                + "key@1[0..3]): it is of attention sequence=8 heads=2 headSize=3 bf16 "
                + "causal contiguous scale=2.0 but the schedule is of "
                + SPEC);
  }

  @Test
  void aResultThatWasNotBegunIsFound() {
    assertThat(attending(0, of -> changed(of, SPEC, of.queries().first(), of.value(), true)))
        .containsExactly(
            "rank 1, lane attend-0, step 0 (attention of query@1[0..3] to key@1[0..3]) "
                + "reads output 0@1[0..3], but 4 of its rows were not written in this "
                + "iteration; write them first, and at 1 more place of the rank");
  }

  @Test
  void aResultThatIsBegunAgainIsFound() {
    var ring = Schedule.of(SPEC, ContextParallel.ring(), 2);
    var steps = new ArrayList<>(ring.steps(1));
    for (int i = 0; i < steps.size(); i++) {
      if (steps.get(i) instanceof Attend block && block.continued()) {
        steps.set(i, changed(block, SPEC, block.queries().first(), block.value(), false));
      }
    }
    assertThat(ring.with(1, steps).findings())
        .first()
        .asString()
        .contains(" overwrites lse@1[0..3]", "; write each output row once, or continue it");
  }

  @Test
  void aMissingPartIsFound() {
    assertThat(
            merging(of -> new Merge(of.lane(), of.chunk(), of.parts().subList(0, 1), of.result())))
        .containsExactly(
            "output@1[0..3], written by rank 1, lane attend-0, step 8 (merge to "
                + "output@1[0..3]), has attention of query@1[0..3] at position 4 to "
                + "key@1[0..3] with value@1[0..3] instead of attention of query@1[0..3] at "
                + "position 4 to key@0[0..3] with value@0[0..3] and key@1[0..3] with "
                + "value@1[0..3], and at 1 more place of the rank");
  }

  @Test
  void theStatisticsOfAnotherResultAreFound() {
    assertThat(
            merging(
                of ->
                    new Merge(
                        of.lane(),
                        of.chunk(),
                        List.of(
                            of.parts().getFirst(),
                            new Partial(
                                of.parts().getLast().output(), of.parts().getFirst().lse())),
                        of.result())))
        .containsExactly(
            "rank 1, lane attend-0, step 8 (merge to output@1[0..3]) uses output "
                + "1@1[0..3] and lse@1[0..3], which are not of one attention; use the lse "
                + "that the output was written with");
  }

  @Test
  void aNarrowPartIsFound() {
    assertThat(
            merging(
                of ->
                    new Merge(
                        of.lane(),
                        of.chunk(),
                        List.of(new Partial(of.result().output(), of.result().lse())),
                        of.result())))
        .containsExactly(
            "rank 1, lane attend-0, step 8 (merge to output@1[0..3]): output@1[0..3] "
                + "must be fp32, as partial results are, but is bf16");
  }

  private static final AttentionSpec HEADS = AttentionSpec.of(8, 4, 3).kvHeads(2).causal();

  private final Schedule divided = Schedule.of(HEADS, ContextParallel.ulysses(), 2);

  private List<String> copying(int number, UnaryOperator<Move> change) {
    return copying(divided, 1, number, change);
  }

  /// Returns the mistakes of a schedule with changed moves in a copy of one rank.
  static List<String> copying(Schedule of, int rank, int number, UnaryOperator<Move> change) {
    var steps = new ArrayList<>(of.steps(rank));
    int at =
        IntStream.range(0, steps.size())
            .filter(i -> steps.get(i) instanceof Copy)
            .skip(number)
            .findFirst()
            .orElseThrow();
    var copy = (Copy) steps.get(at);
    var moves = copy.moves().stream().map(change).toList();
    assertThat(moves).isNotEqualTo(copy.moves());
    steps.set(at, new Copy(copy.lane(), copy.chunk(), moves));
    return of.with(rank, steps).findings();
  }

  /// Returns as many columns beside some.
  static Region otherHeads(Region of) {
    return of.columns(of.columnSlice().shifted(of.column() == 0 ? of.columns() : -of.columns()));
  }

  private static boolean isOf(Part part, Region region) {
    return region.buffer().name().equals(part.port());
  }

  @Test
  void dividedHeadsPass() {
    assertThat(divided.findings()).isEmpty();
  }

  @Test
  void aHeadOfAnotherRankIsFound() {
    var swapped =
        copying(
            0,
            move ->
                isOf(Part.KEY, move.from()) ? new Move(otherHeads(move.from()), move.to()) : move);
    assertThat(swapped)
        .hasSize(1)
        .first()
        .asString()
        .startsWith(
            "output@0[0..3, 6..11], written by rank 1, lane comm, step 9 (copy of "
                + "output of heads 0@1[0..3] to output@0[0..3, 6..11] and 1 more), has "
                + "attention of query@0[0..3] at position 0 to key@0[0..3] 3 columns back "
                + "with value@0[0..3] instead of attention of query@0[0..3] at position 0 to "
                + "key@0[0..3] with value@0[0..3]");
    assertThat(
            copying(
                0,
                move ->
                    isOf(Part.QUERY, move.from())
                        ? new Move(otherHeads(move.from()), move.to())
                        : move))
        .isNotEmpty()
        .allMatch(line -> line.contains(" 6 columns back at position "));
  }

  /// Both ranks then write the same columns.
  @Test
  void anOutputInColumnsOfAnotherRankIsFound() {
    assertThat(
            copying(
                2,
                move ->
                    isOf(Part.LSE, move.to())
                        ? new Move(move.from(), otherHeads(move.to()))
                        : move))
        .first()
        .asString()
        .startsWith("race on lse of rank 0, rows 0..3: ");
  }

  @Test
  void headsThatShareOtherKeysAreFound() {
    var steps = new ArrayList<>(divided.steps(1));
    steps.replaceAll(
        step ->
            step instanceof Attend attend
                ? changed(
                    attend,
                    HEADS.heads(2, 2),
                    attend.queries().first(),
                    attend.value(),
                    attend.continued())
                : step);
    assertThat(divided.with(1, steps).findings())
        .first()
        .asString()
        .contains("heads=2 headSize=3 fp32 causal contiguous but the schedule is of " + HEADS);
  }

  @Test
  void aClearingOfSomeColumnsIsFound() {
    var steps = new ArrayList<>(right.steps(1));
    steps.replaceAll(
        step ->
            step instanceof Merge merge
                ? new Step.Zero(
                    merge.lane(), merge.chunk(), merge.result().lse().columns(new Slice(0, 1)))
                : step);
    assertThat(right.with(1, steps).findings())
        .containsExactly(
            "rank 1, lane attend-0, step 8 (clearing lse@1[0..3, 0..0]): only copies, sums without "
                + "a finish, and query, key and value of attention take some of the columns but it "
                + "takes lse@1[0..3, 0..0] of 2; copy them to a buffer of their own");
  }

  /// Columns that a step reads together must come from the same rows.
  @Test
  void columnsOfOtherRowsAreFound() {
    var builder = Schedule.on("columns", 1);
    var from = builder.local("from", DType.FP32, 2, 4);
    var both = builder.local("both", DType.FP32, 1, 4);
    var sum = builder.local("sum", DType.FP32, 1, 4);
    builder.given("in", from::on).made("out", sum::on);
    var lane = builder.lane("lane", Lane.Role.COMPUTE);
    for (int row : new int[] {0, 1}) {
      var schedule =
          builder.steps(
              program -> {
                for (int part = 0; part < 2; part++) {
                  var columns = new Slice(2L * part, 2);
                  program.copy(
                      lane,
                      part,
                      from.on(0, new Slice((long) row * part, 1), columns),
                      both.on(0, new Slice(0, 1), columns));
                }
                program.reduce(lane, 2, List.of(both.on(0)), sum.on(0), Finish.NONE);
              });
      if (row == 0) {
        assertThat(schedule.findings()).isEmpty();
      } else {
        assertThat(schedule.findings())
            .containsExactly(
                "rank 0, lane lane, step 2 (sum to sum@0[0..0]) reads both@0[0..0, "
                    + "0..1] and both@0[0..0, 2..3], which are not columns of the same rows; "
                    + "copy both from one row");
      }
    }
  }

  /// Rank 1 fetches its third chunk into the slot of the first, which rank 2 fetches out of it.
  @Test
  void aSlotThatIsFreedBeforeItIsFetchedIsFound() {
    var ring =
        Schedule.of(
            AttentionSpec.of(8, 2, 3).dtype(DType.BF16),
            ContextParallel.ring().neighborToNeighbor(),
            4);
    assertThat(ring.findings()).isEmpty();
    var steps = new ArrayList<>(ring.steps(2));
    var freed =
        steps.stream()
            .filter(step -> step instanceof Signal signal && signal.flag().name().equals("free"))
            .findFirst()
            .orElseThrow();
    int at = steps.indexOf(freed);
    steps.remove(at);
    while (!(steps.get(at) instanceof Copy)) {
      at--;
    }
    steps.add(at, freed);
    assertThat(ring.with(2, steps).findings())
        .singleElement()
        .asString()
        .startsWith(
            "race on fetched key 0 of rank 1, rows 0..1: rank 1, lane comm, step 19 "
                + "(copy of fetched key 1@0[0..1] to fetched key 0@1[0..1] and 1 more) in "
                + "iteration 0 and rank 2, lane comm, step 11 (copy of fetched key 0@1[0..1] "
                + "to fetched key 1@2[0..1] and 1 more) in iteration 0 have no order");
  }
}
