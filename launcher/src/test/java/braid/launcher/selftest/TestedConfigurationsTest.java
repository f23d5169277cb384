package braid.launcher.selftest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.groups.Tuple.tuple;

import braid.launcher.ExitCode;
import braid.launcher.cell.CellFailure;
import braid.launcher.selftest.TestedConfiguration.Outcome;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/// Progress of a self-test, from a rank's output to the screen.
class TestedConfigurationsTest {
  private static TestedConfiguration way(
      String method, String memory, String dtype, Outcome outcome) {
    return new TestedConfiguration(
        List.of("gather", method, "workers", memory, dtype),
        outcome,
        outcome == Outcome.OK ? 3 : 0,
        outcome == Outcome.OK ? "" : "too hot");
  }

  @Test
  void linesAreReadHoweverTheyArrive() {
    var progress = new ArrayList<TestedConfiguration>();
    var other = new StringBuilder();
    var ways = new TestedConfigurations(progress::add, other::append);
    var mark = TestedConfiguration.MARK;
    ways.stdout("a library says hello\n" + mark + "\tgather\tring\twor");
    assertThat(progress).isEmpty();
    ways.stdout("kers\tnative\tbf16\tOK\t3\t\n" + mark + "\tno row\nand\tgoes");
    ways.stdout(" on\n" + mark + "\tgather\tring\tworkers\tipc\tbf16\tWRONG\t1\ttoo hot\n");
    ways.stderr("[1] warned\n");
    assertThat(ways.ways())
        .isEqualTo(progress)
        .extracting(
            TestedConfiguration::words,
            TestedConfiguration::outcome,
            TestedConfiguration::cases,
            TestedConfiguration::said)
        .containsExactly(
            tuple("gather, ring, workers, native, bf16", Outcome.OK, 3, ""),
            tuple("gather, ring, workers, ipc, bf16", Outcome.WRONG, 1, "too hot"));
    assertThat(other)
        .hasToString("a library says hello\n" + mark + "\tno row\nand\tgoes on\n[1] warned\n");
  }

  @Test
  void whatIsAlikeIsPutTogetherAndWhatIsWrongIsNot() {
    var ways = new ArrayList<TestedConfiguration>();
    for (var method : List.of("ring", "direct")) {
      for (var dtype : List.of("bf16", "fp16")) {
        ways.add(way(method, "native", dtype, Outcome.OK));
        ways.add(way(method, "ipc", dtype, Outcome.WRONG));
      }
    }
    ways.add(way("bulk", "native", "bf16", Outcome.OK));
    ways.add(way("-", "nccl", "-", Outcome.NOT_AVAILABLE));
    assertThat(SelfTestTable.lines(ways))
        .containsExactly(
            "ok             gather  ring direct  workers  native  bf16 fp16  12 cases",
            "ok             gather  bulk         workers  native  bf16       3 cases",
            "not available  gather  -  workers  nccl  -  too hot",
            "WRONG  gather, ring, workers, ipc, bf16: too hot",
            "WRONG  gather, ring, workers, ipc, fp16: too hot",
            "WRONG  gather, direct, workers, ipc, bf16: too hot",
            "WRONG  gather, direct, workers, ipc, fp16: too hot");
  }

  private static ExitCode exitCode(Outcome... outcomes) {
    var ways = new ArrayList<TestedConfiguration>();
    for (var outcome : outcomes) {
      ways.add(way("ring", "native", "bf16", outcome));
    }
    return new SelfTestResult(ways, Optional.empty()).exitCode();
  }

  @Test
  void theWorstDecidesHowItEnds() {
    assertThat(exitCode(Outcome.OK, Outcome.NOT_AVAILABLE)).isEqualTo(ExitCode.OK);
    assertThat(exitCode(Outcome.OK, Outcome.WRONG)).isEqualTo(ExitCode.VERIFICATION_FAILED);
    assertThat(exitCode(Outcome.OK, Outcome.NOT_RUN)).isEqualTo(ExitCode.VERIFICATION_FAILED);
    assertThat(exitCode(Outcome.NOT_AVAILABLE)).isEqualTo(ExitCode.USAGE);
    var died = new CellFailure(CellFailure.Cause.RANK_DIED, "RankDied", "rank 1 died", List.of());
    assertThat(new SelfTestResult(List.of(), Optional.of(died)).exitCode())
        .isEqualTo(ExitCode.RANK_DIED);
  }

  @Test
  void theJsonHasEveryWay() {
    var ways =
        List.of(
            way("ring", "native", "bf16", Outcome.OK),
            way("-", "nccl", "-", Outcome.NOT_AVAILABLE));
    var about = new JsonObject();
    about.addProperty("backend", "cuda");
    var json =
        JsonParser.parseString(new SelfTestResult(ways, Optional.empty()).json(about))
            .getAsJsonObject();
    assertThat(json.get("selftest").getAsInt()).isEqualTo(1);
    assertThat(json.get("backend").getAsString()).isEqualTo("cuda");
    assertThat(json.get("ok").getAsBoolean()).isTrue();
    assertThat(json.get("failure").isJsonNull()).isTrue();
    assertThat(json.get("summary").getAsString())
        .isEqualTo("1 ways right (3 cases), 0 wrong, 1 not available");
    var last = json.getAsJsonArray("ways").get(1).getAsJsonObject();
    assertThat(last.keySet())
        .containsExactly(
            "what", "method", "transport", "memory", "dtype", "outcome", "cases", "said");
    assertThat(last.get("outcome").getAsString()).isEqualTo("not_available");
  }
}
