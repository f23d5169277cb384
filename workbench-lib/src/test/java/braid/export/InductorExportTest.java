package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.export.CollectiveRun.Interval;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class InductorExportTest {
  /// Rank 1 comes 4 µs late; the collective then takes 3 µs, and rank 0 ends last.
  private static final List<Interval> LATE =
      List.of(new Interval(1_000, 8_500), new Interval(5_250, 8_250));

  private static CollectiveRun run(Collective collective) {
    return new CollectiveRun(collective, DType.BF16, 4096, LATE);
  }

  private static JsonObject trace(List<CollectiveRun> runs, int rank) {
    var export = InductorExport.trace(runs, rank, MegatronExportTest.MACHINE);
    return JsonParser.parseString(export.text()).getAsJsonObject();
  }

  private static JsonObject event(JsonObject trace, int index) {
    return trace.getAsJsonArray("traceEvents").get(index).getAsJsonObject();
  }

  @Test
  void timesHaveNoWaiting() {
    for (int rank = 0; rank < 2; rank++) {
      var event = event(trace(List.of(run(Collective.ALL_REDUCE)), rank), 0);
      assertThat(event.get("ts").getAsDouble()).isEqualTo(5.25);
      assertThat(event.get("dur").getAsDouble()).isEqualTo(3.25);
    }
  }

  /// Newer estimators take the traces of all ranks and remove waiting by themselves: what has none
  /// stays as it is.
  @Test
  void removingTheWaitingOnceMoreChangesNothing() {
    var starts = new ArrayList<Double>();
    var ends = new ArrayList<Double>();
    for (int rank = 0; rank < 2; rank++) {
      var event = event(trace(List.of(run(Collective.ALL_GATHER)), rank), 0);
      starts.add(event.get("ts").getAsDouble());
      ends.add(event.get("ts").getAsDouble() + event.get("dur").getAsDouble());
    }
    double last = starts.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
    assertThat(ends.stream().mapToDouble(Double::doubleValue).max().orElseThrow() - last)
        .isEqualTo(3.25);
  }

  @ParameterizedTest
  @CsvSource({
    "ALL_GATHER, all_gather, 2048, 4096",
    "REDUCE_SCATTER, reduce_scatter, 4096, 2048",
    "ALL_REDUCE, all_reduce, 4096, 4096",
    "ALL_TO_ALL, all_to_all, 4096, 4096"
  })
  void theEstimatorFindsTheCollective(
      Collective collective, String found, long before, long after) {
    var event = event(trace(List.of(run(Collective.ALL_REDUCE), run(collective)), 1), 1);
    assertThat(event.get("cat").getAsString()).isEqualTo("kernel");
    var arguments = event.getAsJsonObject("args");
    assertThat(normalized(arguments.get("Collective name").getAsString())).isEqualTo(found);
    assertThat(arguments.get("In msg nelems").getAsLong()).isEqualTo(before);
    assertThat(arguments.get("Out msg nelems").getAsLong()).isEqualTo(after);
    assertThat(arguments.get("dtype").getAsString()).isEqualTo("BFloat16");
    assertThat(arguments.get("Group size").getAsInt()).isEqualTo(2);
    assertThat(arguments.get("Seq").getAsInt()).isEqualTo(1);
    assertThat(JsonParser.parseString(arguments.get("Process Group Ranks").getAsString()))
        .isEqualTo(JsonParser.parseString("[0, 1]"));
  }

  /// The names that the estimator tells apart, in the order in which it looks for them.
  private static String normalized(String name) {
    if (name.contains("allgather") || name.contains("all_gather")) {
      return "all_gather";
    }
    if (name.contains("reduce_scatter")) {
      return "reduce_scatter";
    }
    if (name.contains("allreduce") || name.contains("all_reduce")) {
      return "all_reduce";
    }
    return name.contains("alltoall") || name.contains("all_to_all") ? "all_to_all" : name;
  }

  @Test
  void theTraceNamesItsRankAndItsMachine() {
    var trace = trace(List.of(run(Collective.ALL_REDUCE)), 1);
    assertThat(trace.keySet()).first().isEqualTo("braid");
    assertThat(trace.getAsJsonArray("braid").get(0).getAsString())
        .startsWith("measured with Braid 0.1.0 on 4 x NVIDIA H200, NVLink 4, driver 580.82, ")
        .contains(", not with PyTorch Inductor");
    var info = trace.getAsJsonObject("distributedInfo");
    assertThat(info.get("rank").getAsInt()).isEqualTo(1);
    assertThat(info.get("world_size").getAsInt()).isEqualTo(2);
    assertThat(info.getAsJsonArray("pg_config").get(0).toString())
        .isEqualTo("{\"pg_name\":\"0\",\"ranks\":[0,1]}");
  }

  @ParameterizedTest
  @EnumSource(names = {"BROADCAST", "SEND", "RECEIVE", "BARRIER"})
  void otherCollectivesAreRefused(Collective collective) {
    assertThatThrownBy(() -> run(collective))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("or all-to-all but was " + collective);
  }

  @Test
  void valuesThatCannotBeMeasuredAreRefused() {
    assertThatThrownBy(
            () ->
                new CollectiveRun(
                    Collective.ALL_REDUCE,
                    DType.BF16,
                    64,
                    List.of(new Interval(0, 10), new Interval(20, 30))))
        .hasMessageContaining("one rank ended at 10 ns and one began at 20 ns; measure on one");
    assertThatThrownBy(() -> new Interval(5, 5)).hasMessageContaining("but was 5..5;");
    assertThatThrownBy(() -> new CollectiveRun(Collective.ALL_GATHER, DType.BF16, 63, LATE))
        .hasMessageContaining("on 2 ranks must be 1 or more and a part for each but were 63;");
    assertThatThrownBy(
            () -> new CollectiveRun(Collective.ALL_REDUCE, DType.BF16, 63, LATE.subList(0, 1)))
        .hasMessageContaining("2 ranks or more but has 1;");
    var fp8 = new CollectiveRun(Collective.ALL_GATHER, DType.FP8_E4M3, 64, LATE);
    assertThatThrownBy(() -> trace(List.of(fp8), 0)).hasMessageContaining("but was fp8_e4m3;");
    assertThatThrownBy(() -> trace(List.of(), 0)).hasMessageContaining("has none; measure one");
    assertThatThrownBy(() -> trace(List.of(run(Collective.ALL_REDUCE)), 2))
        .hasMessageContaining("rank must be 0..1 but was 2;");
  }
}
