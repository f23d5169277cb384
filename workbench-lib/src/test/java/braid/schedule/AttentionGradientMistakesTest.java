package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Move;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/// The messages of the check for mistakes in the backward pass of attention.
class AttentionGradientMistakesTest {
  private static final AttentionSpec SPEC = AttentionSpec.of(6, 2, 3).causal().dtype(DType.BF16);
  private static final String OWN =
      "rank 1, lane attend-0, step 1 (backward of query@1[0..1] to key@1[0..1])";
  private static final String FIRST =
      "rank 1, lane attend-0, step 7 (backward of query@1[0..1] to fetched key " + "0@1[0..1])";

  /// Rank 1 of 3 sees the keys of ranks 0 and 1; ranks 1 and 2 send gradients to rank 0.
  private final Schedule right = Schedule.of(SPEC.backward(), ContextParallel.ring(), 3);

  private int numberOf(int rank, Class<? extends Step> type, int index) {
    var steps = right.steps(rank);
    int count = 0;
    for (int i = 0; i < steps.size(); i++) {
      if (type.isInstance(steps.get(i)) && count++ == index) {
        return i;
      }
    }
    throw new AssertionError("only %d of %s".formatted(count, type));
  }

  private List<String> without(int rank, Predicate<Step> step) {
    var steps = new ArrayList<>(right.steps(rank));
    assertThat(steps.removeIf(step)).isTrue();
    return right.with(rank, steps).findings();
  }

  private List<String> with(int rank, int at, Step other) {
    var steps = new ArrayList<>(right.steps(rank));
    steps.set(at, other);
    return right.with(rank, steps).findings();
  }

  private List<String> gradient(int number, Gradients result, boolean query, boolean keys) {
    int at = numberOf(1, AttendGradient.class, number);
    var of = (AttendGradient) right.steps(1).get(at);
    return with(1, at, new AttendGradient(of.block(), of.outputGradient(), result, query, keys));
  }

  private AttendGradient gradient(int number) {
    return (AttendGradient) right.steps(1).get(numberOf(1, AttendGradient.class, number));
  }

  @Test
  void theRightSchedulePasses() {
    assertThat(right.findings()).isEmpty();
    assertThat(right.steps(1).stream().filter(AttendGradient.class::isInstance)).hasSize(2);
  }

  @Test
  void aMissingBlockIsFound() {
    var last = gradient(1);
    assertThat(without(1, last::equals))
        .contains(
            "query gradient@1[0..1], written by rank 1, lane attend-0, step 17 (sum to "
                + "query gradient@1[0..1]), has the gradient of query in query@1[0..1] with "
                + "output@1[0..1] with lse@1[0..1] with output gradient@1[0..1] at position "
                + "2 by key@1[0..1] with value@1[0..1] instead of the gradient of query in "
                + "query@1[0..1] with output@1[0..1] with lse@1[0..1] with output "
                + "gradient@1[0..1] at position 2 by key@0[0..1] with value@0[0..1] and "
                + "key@1[0..1] with value@1[0..1]");
  }

  @Test
  void aBlockThatIsAddedTwiceIsFound() {
    int at = numberOf(1, AttendGradient.class, 1);
    var steps = new ArrayList<>(right.steps(1));
    var of = gradient(1);
    steps.add(at + 1, new AttendGradient(of.block(), of.outputGradient(), of.result(), true, true));
    assertThat(right.with(1, steps).findings())
        .anyMatch(
            line ->
                line.startsWith("query gradient@1[0..1]")
                    && line.contains(
                        "by key@0[0..1] with value@0[0..1] and key@0[0..1] with value@0[0..1] and"
                            + " key@1[0..1]"))
        .anyMatch(
            line ->
                line.startsWith("key gradient@0[0..1]")
                    && line.contains("query@1[0..1]")
                    && line.contains("instead of"));
  }

  @Test
  void aBlockThatBeginsAnewIsFound() {
    assertThat(gradient(1, gradient(1).result(), false, false))
        .anyMatch(
            line ->
                line.startsWith("query gradient@1[0..1]") && line.contains("by key@0[0..1] with"));
  }

  @Test
  void aGradientThatWasNotBegunIsFound() {
    assertThat(gradient(0, gradient(0).result(), true, false))
        .containsExactly(
            OWN
                + " reads query gradient 0@1[0..1], but 2 of its rows were not written in this"
                + " iteration; write them first");
  }

  @Test
  void exchangedGradientsAreFound() {
    var of = gradient(1).result();
    assertThat(gradient(1, new Gradients(of.query(), of.value(), of.key()), true, false))
        .anyMatch(line -> line.startsWith("key gradient@0[0..1]") && line.contains("of value in"))
        .anyMatch(line -> line.startsWith("value gradient@0[0..1]") && line.contains("of key in"));
  }

  @Test
  void aContributionThatIsNotAddedIsFound() {
    var added = right.steps(0).get(numberOf(0, Reduce.class, 0));
    assertThat(without(0, added::equals))
        .containsExactly(
            "key gradient@0[0..1], written by rank 0, lane add, step 10 (sum to key "
                + "gradient@0[0..1]), has the gradient of key in key@0[0..1] with "
                + "value@0[0..1] at position 0 by query@0[0..1] with output@0[0..1] with "
                + "lse@0[0..1] with output gradient@0[0..1] and query@2[0..1] with "
                + "output@2[0..1] with lse@2[0..1] with output gradient@2[0..1] instead of "
                + "the gradient of key in key@0[0..1] with value@0[0..1] at position 0 by "
                + "query@0[0..1] with output@0[0..1] with lse@0[0..1] with output "
                + "gradient@0[0..1] and query@1[0..1] with output@1[0..1] with lse@1[0..1] "
                + "with output gradient@1[0..1] and query@2[0..1] with output@2[0..1] with "
                + "lse@2[0..1] with output gradient@2[0..1]");
  }

  @Test
  void aContributionThatIsNotSentIsFound() {
    assertThat(without(1, step -> step instanceof Copy && step.lane().name().equals("return")))
        .anyMatch(
            line ->
                line.startsWith(
                    "rank 0, lane add, step 6 (sum to sum of key gradient@0[0..1]) "
                        + "reads inbox of key gradient@0["));
  }

  @Test
  void contributionsToExchangedRowsAreFound() {
    int at = numberOf(0, Reduce.class, 0);
    var of = (Reduce) right.steps(0).get(at);
    var steps = new ArrayList<>(right.steps(0));
    steps.set(at, rowOf(of, 0, 1));
    steps.add(at, rowOf(of, 1, 0));
    assertThat(right.with(0, steps).findings())
        .hasSize(1)
        .anyMatch(
            line ->
                line.startsWith("key gradient@0[0..0], written by ")
                    && line.contains(
                        "the gradient of key in key@0[1..1] with value@0[1..1] at position 1 by"
                            + " query@1[0..1]"));
  }

  /// Returns the sum of one row with another row of the contribution.
  private static Reduce rowOf(Reduce of, long row, long other) {
    var sum = of.output().buffer().on(0, new Slice(of.output().row() + row, 1));
    var inbox = of.parts().getLast();
    var part = inbox.buffer().on(0, new Slice(inbox.row() + other, 1));
    return new Reduce(of.lane(), of.chunk(), List.of(sum, part), sum, of.finish());
  }

  @Test
  void aContributionThatMayNotHaveArrivedIsFound() {
    int at = numberOf(0, Reduce.class, 1);
    var of = (Reduce) right.steps(0).get(at);
    var inbox = of.parts().getLast();
    var next = inbox.buffer().on(inbox.rank(), inbox.slice().shifted(inbox.rows()));
    assertThat(
            with(
                0,
                at,
                new Reduce(
                    of.lane(), of.chunk(), List.of(of.output(), next), of.output(), of.finish())))
        .containsExactly(
            "race on inbox of value gradient of rank 0, rows 2..3: rank 2, lane "
                + "return, step 17 (copy of part of key gradient 1@2[0..1] to inbox of key "
                + "gradient@0[2..3] and 1 more) in iteration 0 and rank 0, lane add, step 7 "
                + "(sum to sum of value gradient@0[0..1]) in iteration 0 have no order; let "
                + "rank 0 wait for a signal that rank 2 raises after the first step");
  }

  /// Rank 0 has an inbox of two slots: the third contribution takes that of the first.
  @Test
  void aSlotThatIsFreedTooEarlyIsFound() {
    var four = Schedule.of(SPEC.backward(), ContextParallel.ring(), 4);
    var steps = new ArrayList<>(four.steps(0));
    var freed =
        steps.stream()
            .filter(step -> step instanceof Signal signal && signal.flag().name().equals("free"))
            .findFirst()
            .orElseThrow();
    steps.remove(freed);
    int first = 0;
    while (!(steps.get(first) instanceof Reduce)) {
      first++;
    }
    steps.add(first, freed);
    assertThat(four.with(0, steps).findings())
        .hasSize(1)
        .first()
        .asString()
        .endsWith("let rank 3 wait for a signal that rank 0 raises after the second step")
        .startsWith(
            "race on inbox of value gradient of rank 0, rows 0..1: rank 3, lane "
                + "return, step 30 (copy of part of key gradient 0@3[0..1] to inbox of key "
                + "gradient@0[0..1] and 1 more) in iteration 0 and rank 0, lane add, step 9 "
                + "(sum to sum of value gradient@0[0..1]) in iteration 0 have no order");
  }

  /// Gradients of the keys of rank 0 go from rank 1 to rank 2, and on to rank 0; those of rank 1
  /// from rank 2 to rank 0, which sees none of them, and on to rank 1.
  @Test
  void gradientsThatAreNotSentOnAreFound() {
    var ring = Schedule.of(SPEC.backward(), ContextParallel.ring().neighborToNeighbor(), 3);
    assertThat(ring.findings()).isEmpty();
    var unadded =
        ring.without(
            2,
            step ->
                step instanceof Reduce reduce
                    && reduce.output().buffer().name().startsWith("part of "));
    assertThat(unadded.findings())
        .hasSize(2)
        .allMatch(
            line ->
                line.matches("(key|value) gradient@0\\[0..1\\], written by .*")
                    && line.split("query@1", -1).length == 2
                    && line.split("query@2", -1).length == 3);
    var unforwarded =
        ring.without(0, step -> step instanceof Copy && step.lane().name().equals("add"));
    assertThat(unforwarded.findings())
        .hasSize(1)
        .allMatch(
            line ->
                line.matches(
                    "rank 0, lane return, step \\d+ \\(copy .*\\) reads part of (key|value) gradient .*, but 2"
                        + " of its rows were not written in this iteration; write them first"
                        + ", and at 1 more place of the rank"));
  }

  @Test
  void anotherAttentionIsFound() {
    int at = numberOf(1, AttendGradient.class, 0);
    var of = gradient(0);
    var block = of.block();
    var other =
        new Attend(
            block.lane(),
            block.chunk(),
            SPEC.scale(2),
            block.query(),
            block.queries(),
            block.key(),
            block.value(),
            block.keys(),
            block.result(),
            false);
    assertThat(
            with(1, at, new AttendGradient(other, of.outputGradient(), of.result(), false, false)))
        .containsExactly(
            "%s: it is of %s but the schedule is of %s".formatted(OWN, SPEC.scale(2), SPEC));
  }

  @Test
  void aNarrowGradientIsFound() {
    var of = gradient(1).result();
    var port = right.port(Part.QUERY_GRADIENT.port()).orElseThrow().on(1);
    assertThat(gradient(1, new Gradients(port, of.key(), of.value()), true, false))
        .containsExactly(
            FIRST + ": query gradient@1[0..1] must be fp32, as partial results are, but is bf16");
  }

  private static final AttentionSpec HEADS = AttentionSpec.of(8, 4, 3).kvHeads(2).causal();

  private final Schedule divided = Schedule.of(HEADS.backward(), ContextParallel.ulysses(), 2);

  /// Ranks 2 and 3 send gradients of the keys of ranks 0 and 1.
  private final Schedule twoLevel = Schedule.of(HEADS.backward(), ContextParallel.twoLevel(2), 4);

  private static UnaryOperator<Move> fromOtherHeads(Part part) {
    return move ->
        move.from().buffer().name().equals(part.port())
            ? new Move(AttentionMistakesTest.otherHeads(move.from()), move.to())
            : move;
  }

  private static UnaryOperator<Move> toOtherHeads(Part part) {
    return move ->
        move.to().buffer().name().equals(part.port())
            ? new Move(move.from(), AttentionMistakesTest.otherHeads(move.to()))
            : move;
  }

  @Test
  void dividedHeadsPass() {
    assertThat(divided.findings()).isEmpty();
    assertThat(twoLevel.findings()).isEmpty();
  }

  @Test
  void inputsOfAnotherHeadAreFound() {
    var of =
        Map.of(
            Part.QUERY, "query@0[0..3] 6 columns back with output@0",
            Part.OUTPUT, "output@0[0..3] 6 columns back with lse@0",
            Part.LSE, "lse@0[0..3] 2 columns back with output gradient@0",
            Part.OUTPUT_GRADIENT, "output gradient@0[0..3] 6 columns back",
            Part.KEY, "key@0[0..3] 3 columns back with value@0",
            Part.VALUE, "value@0[0..3] 3 columns back");
    of.forEach(
        (part, text) ->
            assertThat(AttentionMistakesTest.copying(divided, 1, 0, fromOtherHeads(part)))
                .as("%s", part)
                .hasSize(1)
                .allMatch(line -> line.contains(text)));
  }

  /// Both ranks then write the same columns.
  @Test
  void gradientsInColumnsOfAnotherRankAreFound() {
    for (var part : List.of(Part.QUERY_GRADIENT, Part.KEY_GRADIENT, Part.VALUE_GRADIENT)) {
      assertThat(AttentionMistakesTest.copying(divided, 1, 2, toOtherHeads(part)))
          .first()
          .asString()
          .startsWith("race on %s of rank 0, rows 0..3: ".formatted(part.port()));
    }
  }

  /// Ranks 0 and 1 then have each other's columns.
  @Test
  void gradientsInExchangedColumnsAreFound() {
    var exchanged = divided;
    for (int rank = 0; rank < 2; rank++) {
      var steps = new ArrayList<>(divided.steps(rank));
      steps.replaceAll(
          step ->
              step instanceof Copy copy && copy.chunk() == 1
                  ? new Copy(
                      copy.lane(),
                      copy.chunk(),
                      copy.moves().stream().map(toOtherHeads(Part.KEY_GRADIENT)).toList())
                  : step);
      exchanged = exchanged.with(rank, steps);
    }
    assertThat(exchanged.findings())
        .hasSize(1)
        .allMatch(line -> line.startsWith("key gradient@"))
        .anyMatch(
            line ->
                line.contains(
                    "has the gradient of key in key@0[0..3] 3 columns on with value@0[0..3] 3"
                        + " columns on at position 0 by query@0[0..3] 6 columns on with"
                        + " output@0[0..3] 6 columns on with lse@0[0..3] 2 columns on"));
  }

  /// The gradient of two heads is moved by one.
  @Test
  void aGradientOfPartOfAGroupOfHeadsIsFound() {
    assertThat(
            AttentionMistakesTest.copying(
                divided,
                1,
                3,
                move ->
                    move.to().buffer().name().equals(Part.QUERY_GRADIENT.port())
                        ? new Move(
                            move.from().columns(new Slice(0, 3)),
                            move.to().columns(new Slice(9, 3)))
                        : move))
        .anyMatch(
            line ->
                line.startsWith("query gradient@1[0..3, 9..11], written by ")
                    && line.contains(" at position 4 from column 3 of its heads on by "));
  }

  @Test
  void gradientsOfAnotherGroupThatAreNotAddedAreFound() {
    var steps = new ArrayList<>(twoLevel.steps(1));
    assertThat(steps.removeIf(Reduce.class::isInstance)).isTrue();
    assertThat(twoLevel.with(1, steps).findings())
        .hasSize(1)
        .allMatch(
            line ->
                line.matches("(key|value) gradient@[01]\\[0..1, 3..5\\], written by .*")
                    && line.contains("query@3[0..1]"));
  }

  @Test
  void gradientsSentToTheRankOfOtherHeadsAreFound() {
    // Copies of rank 3: fetch, its own, fetch of the other group, and what it sends to rank 1.
    assertThat(
            AttentionMistakesTest.copying(
                twoLevel,
                3,
                3,
                move -> new Move(move.from(), move.to().buffer().on(0, move.to().slice()))))
        .first()
        .asString()
        .startsWith("race on inbox of value gradient of rank 0, rows 0..3: ");
    assertThat(
            AttentionMistakesTest.copying(
                twoLevel,
                3,
                3,
                move ->
                    new Move(
                        twoLevel.buffers().stream()
                            .filter(each -> each.name().equals("gradient of fetched value 1"))
                            .findFirst()
                            .orElseThrow()
                            .on(3, move.from().slice()),
                        move.to())))
        .hasSize(1)
        .allMatch(
            line -> line.startsWith("key gradient@") && line.contains("the gradient of value in"));
  }
}
