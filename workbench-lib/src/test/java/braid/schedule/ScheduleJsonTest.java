package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.AllReduce;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.schedule.plan.CollectivePlanner;
import braid.schedule.plan.CollectiveSpec;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Schedules that are written as JSON and read again.
class ScheduleJsonTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(6, 4, 8);

  /// Equality compares the goal, all declarations and the steps of every rank.
  @Test
  void everyPlannedScheduleIsReadAsItWasWritten() {
    for (var way : ScheduleCases.ways()) {
      var schedule = way.cases(3).getFirst().schedule();
      assertThat(Schedule.fromJson(schedule.toJson())).as(schedule.toString()).isEqualTo(schedule);
    }
  }

  @Test
  void packedAttentionIsReadAsItWasWritten() {
    var spec =
        AttentionSpec.of(24, 4, 8).kvHeads(2).causal().window(5).dtype(DType.BF16).packed(0, 7, 24);
    for (var each : List.of(spec, spec.packedKeys(0, 9, 40))) {
      for (var method : List.of(ContextParallel.ring().splits(2), ContextParallel.ulysses())) {
        for (var schedule :
            List.of(Schedule.of(each, method, 2), Schedule.of(each.backward(), method, 2))) {
          assertThat(Schedule.fromJson(schedule.toJson())).isEqualTo(schedule);
        }
      }
    }
    // Earlier versions wrote one packing.
    assertThat(Schedule.of(spec, ContextParallel.ring(), 2).toJson()).doesNotContain("sides");
  }

  @Test
  void nameReplayAndCollectiveAreKept() {
    var own = Schedule.on("mine", 2).steps(_ -> {}).named("two \"levels\"").replay();
    var read = Schedule.fromJson(own.toJson());
    assertThat(read).isEqualTo(own);
    assertThat(read.name()).isEqualTo("two \"levels\"");
    assertThat(read.replayed()).isTrue();
    var sum =
        CollectivePlanner.plan(
            new CollectiveSpec(
                Collective.ALL_REDUCE,
                DType.FP32,
                8,
                0,
                false,
                AllReduce.TWO_SHOT,
                CollectiveWay.COPY_ENGINE,
                0,
                CollectiveSpec.LibraryNeeds.NONE),
            2);
    assertThat(Schedule.fromJson(sum.toJson())).isEqualTo(sum);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '~',
      value = {
        "\"ranks\":2 | \"ranks\":3 | `weight` must have a shape for each of 3 ranks but has 2",
        "\"ranks\":2 | \"ranks\":2.5 | schedule.ranks must be a whole number but was 2.5",
        "\"ranks\":2 | \"rank\":2 | schedule: unknown field `rank`; known are name, replayed, goal,",
        "\"replayed\":false | \"replayed\":0 | schedule.replayed must be true or false but was 0",
        "\"type\":\"Copy\" | \"type\":\"Move\" | .type must be one of Copy, Recode, Gemm, Reduce, Attend,",
        "\"lane\":\"comm\" | \"lane\":\"com\" | .lane must be one of comm, ",
        "\"dtype\":\"FP32\" | \"dtype\":\"FP31\" | .dtype must be one of FP32, ",
        "\"rows\":3 | \"rows\":9 | a region must lie in rows 0..5 of `gathered input` on rank 0 but was 9",
        "braid-schedule-1 | braid-schedule-2 | field `format` must be \"braid-schedule-1\"",
        "{\"format\" | [{\"format\" | schedule must be JSON but is not: line 1 column ",
      })
  void wrongDocumentIsRefusedInOneLine(String right, String wrong, String message) {
    var json = Schedule.of(SPEC, Overlap.unfused(), 2).toJson();
    assertThat(json).contains(right);
    var changed = json.replace(right, wrong);
    assertThatThrownBy(() -> Schedule.fromJson(changed))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .message()
        .doesNotContain("\n");
  }

  @Test
  void stepOfAnUndeclaredBufferIsNotWritten() {
    var builder = Schedule.on("mine", 1);
    var lane = builder.lane("comm", Lane.Role.COMMUNICATION);
    var foreign = Buffer.of("foreign", DType.FP32, 1, 2, 2, false);
    var schedule = builder.steps(program -> program.zero(lane, Step.NO_CHUNK, foreign.on(0)));
    assertThatThrownBy(schedule::toJson)
        .hasMessage("buffer `foreign` is not declared; add it to the builder");
  }
}
