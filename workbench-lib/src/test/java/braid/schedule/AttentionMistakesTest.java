package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
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
        queryPosition,
        of.key(),
        value,
        of.keyPosition(),
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
                0, of -> changed(of, SPEC, of.queryPosition() - 1, of.value(), of.continued())))
        .startsWith(
            "merge to output@1[0..3] on lane attend-0 of rank 1 merges what is not attention of the"
                + " same rows; merge blocks of one query");
    assertThat(attending(0, of -> changed(of, SPEC, 5, of.value(), of.continued())))
        .containsExactly(
            "attention of query@1[0..3] to key@1[0..3] on lane attend-0 of rank 1: positions are"
                + " 0..7 but query@1[0..3] has 5..8");
  }

  @Test
  void otherValuesAreFound() {
    assertThat(attending(1, of -> changed(of, SPEC, of.queryPosition(), of.key(), of.continued())))
        .startsWith(
            "output@1[0..3], written by merge to output@1[0..3] on lane attend-0 of rank 1, has"
                + " attention of query@1[0..3] at position 4 to key@0[0..3] with key@0[0..3] and"
                + " key@1[0..3] with value@1[0..3] instead of attention of query@1[0..3] at"
                + " position 4 to key@0[0..3] with value@0[0..3] and key@1[0..3] with"
                + " value@1[0..3]");
  }

  @Test
  void anotherAttentionIsFound() {
    assertThat(
            attending(
                0,
                of -> changed(of, SPEC.scale(2), of.queryPosition(), of.value(), of.continued())))
        .containsExactly(
            "attention of query@1[0..3] to key@1[0..3] on lane attend-0 of rank 1: it is of"
                + " attention sequence=8 heads=2 headSize=3 bf16 causal contiguous scale=2.0 but"
                + " the schedule is of "
                + SPEC);
  }

  @Test
  void aResultThatWasNotBegunIsFound() {
    assertThat(attending(0, of -> changed(of, SPEC, of.queryPosition(), of.value(), true)))
        .containsExactly(
            "attention of query@1[0..3] to key@1[0..3] on lane attend-0 of rank 1 reads"
                + " output 0@1[0..3], but 4 of its rows were not written in this iteration; write"
                + " them first",
            "attention of query@1[0..3] to key@1[0..3] on lane attend-0 of rank 1 reads"
                + " lse@1[0..3], but 4 of its rows were not written in this iteration; write them"
                + " first");
  }

  @Test
  void aMissingPartIsFound() {
    assertThat(
            merging(of -> new Merge(of.lane(), of.chunk(), of.parts().subList(0, 1), of.result())))
        .hasSize(2)
        .startsWith(
            "output@1[0..3], written by merge to output@1[0..3] on lane attend-0 of rank 1, has"
                + " attention of query@1[0..3] at position 4 to key@1[0..3] with value@1[0..3]"
                + " instead of attention of query@1[0..3] at position 4 to key@0[0..3] with"
                + " value@0[0..3] and key@1[0..3] with value@1[0..3]");
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
            "merge to output@1[0..3] on lane attend-0 of rank 1 uses output 1@1[0..3] and"
                + " lse@1[0..3], which are not of one attention; use the lse that the output was"
                + " written with");
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
            "merge to output@1[0..3] on lane attend-0 of rank 1: output@1[0..3] must be fp32, as"
                + " partial results are, but is bf16");
  }
}
