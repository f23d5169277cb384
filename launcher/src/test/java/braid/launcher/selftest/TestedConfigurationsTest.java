package braid.launcher.selftest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.groups.Tuple.tuple;

import braid.launcher.ExitCode;
import braid.launcher.cell.CellFailure;
import braid.launcher.machine.BackendChoice;
import braid.launcher.selftest.TestedConfiguration.Outcome;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.selftest.SelfTestRecord;
import braid.selftest.TestedPath;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// Progress of a self-test, from a rank's output to the screen.
class TestedConfigurationsTest {
  private static TestedConfiguration way(
      String method, String memory, String dtype, Outcome outcome) {
    return new TestedConfiguration(
        0,
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
    ways.stdout("a library says hello\n" + mark + "\t0\tgather\tring\twor");
    assertThat(progress).isEmpty();
    ways.stdout("kers\tnative\tbf16\tOK\t3\t\n" + mark + "\tno row\nand\tgoes");
    ways.stdout(" on\n" + mark + "\t1\tgather\tring\tworkers\tipc\tbf16\tWRONG\t1\ttoo hot\n");
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

  /// Output over the limit is left out.
  @Test
  void resultsThatDoNotArriveAreNotRight() {
    var ways = new TestedConfigurations(_ -> {}, _ -> {});
    for (int number : new int[] {0, 1, 4}) {
      ways.stdout(
          "%s\t%d\tgather\tring\tworkers\tnative\tbf16\tOK\t3\t\n"
              .formatted(TestedConfiguration.MARK, number));
    }
    var result = new SelfTestResult(ways.ways(), "", Optional.empty());
    assertThat(result.exitCode()).isEqualTo(ExitCode.VERIFICATION_FAILED);
    assertThat(result.summary())
        .isEqualTo("3 ways right (9 cases), 0 wrong, 0 not available, 1 NOT RUN");
    assertThat(SelfTestTable.lines(ways.ways()))
        .anyMatch(
            line -> line.endsWith("2 of them were left out of the output; raise --output-limit"));
  }

  @Test
  void anAbortedRunNamesTheCaseThatRan() {
    var ways = new TestedConfigurations(_ -> {}, _ -> {});
    var row = TestedConfiguration.MARK + "\t0\tgather\tring\tworkers\tnative\tbf16\tOK\t3\t\n";
    ways.stdout(TestedConfiguration.BEGINS + "\tgather, ring (case 7)\n");
    assertThat(ways.running()).isEqualTo("gather, ring (case 7)");
    ways.stdout(row);
    assertThat(ways.running()).isEmpty();
    ways.stdout(TestedConfiguration.BEGINS + "\tscatter, ring (case 8)\n");
    var late = new CellFailure(CellFailure.Cause.RANK_DIED, "RankDied", "rank 1 died", List.of());
    assertThat(new SelfTestResult(ways.ways(), ways.running(), Optional.of(late)).summary())
        .isEqualTo(
            "1 ways right (3 cases), 0 wrong, 0 not available, ABORTED in scatter, ring (case 8)");
  }

  @Test
  void equalConfigurationsAreGroupedAndWrongOnesAreNot() {
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
    return new SelfTestResult(ways, "", Optional.empty()).exitCode();
  }

  @Test
  void theWorstDecidesHowItEnds() {
    assertThat(exitCode(Outcome.OK, Outcome.NOT_AVAILABLE)).isEqualTo(ExitCode.OK);
    assertThat(exitCode(Outcome.OK, Outcome.WRONG)).isEqualTo(ExitCode.VERIFICATION_FAILED);
    assertThat(exitCode(Outcome.OK, Outcome.NOT_RUN)).isEqualTo(ExitCode.VERIFICATION_FAILED);
    assertThat(exitCode(Outcome.NOT_AVAILABLE)).isEqualTo(ExitCode.USAGE);
    var died = new CellFailure(CellFailure.Cause.RANK_DIED, "RankDied", "rank 1 died", List.of());
    assertThat(new SelfTestResult(List.of(), "", Optional.of(died)).exitCode())
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
        JsonParser.parseString(new SelfTestResult(ways, "", Optional.empty()).json(about))
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

  private static JsonObject facts(BackendChoice backend, int ranks) {
    return SelfTestFacts.of(
        "0.1.0",
        LocalDate.of(2026, 11, 24),
        new SessionOptions(ranks, backend, Optional.empty(), Path.of("")),
        true,
        "580.95.05, CUDA 13.0",
        Map.of("nccl", "2.28.9"));
  }

  private static BackendChoice onGpus(String... devices) {
    return new BackendChoice(BackendKind.CUDA, "set in a test", List.of(devices));
  }

  @Test
  void theFactsNameTheDateTheGpusAndTheLibraries() {
    var shared = facts(onGpus("GPU 0: H200", "GPU 1: H200", "GPU 0: H200", "GPU 1: H200"), 4);
    assertThat(shared)
        .hasToString(
            "{'braid':'0.1.0','date':'2026-11-24','backend':'cuda','why':'set in a test','ranks':4,'quick':true,'gpu':'H200','gpus':2,'sharedGpus':true,'driver':'580.95.05, CUDA 13.0','libraries':{'nccl':'2.28.9'}}"
                .replace('\'', '"'));
    assertThat(facts(onGpus("GPU 0: H200"), 1).get("sharedGpus").getAsBoolean()).isFalse();
    assertThat(facts(new BackendChoice(BackendKind.HOST, "no GPU"), 2).keySet())
        .containsExactly("braid", "date", "backend", "why", "ranks", "quick");
  }

  @Test
  void aRecordIsReadAsItWasWritten() {
    var ways = new ArrayList<TestedConfiguration>();
    for (var memory : List.of("native", "ipc")) {
      for (var method : List.of("ring", "direct")) {
        ways.add(way(method, memory, "bf16", Outcome.OK));
      }
    }
    ways.add(way("bulk", "native", "bf16", Outcome.WRONG));
    ways.add(way("-", "nccl", "-", Outcome.NOT_AVAILABLE));
    var facts = facts(onGpus("GPU 0: NVIDIA H200", "GPU 0: NVIDIA H200"), 2);
    var text = new SelfTestResult(ways, "", Optional.empty()).record(facts);
    assertThat(JsonParser.parseString(text).getAsJsonObject().getAsJsonArray("groups")).hasSize(3);
    var record = SelfTestRecord.parse(text);
    var place = "2026-11-24, 2 ranks on 1 x NVIDIA H200, driver 580.95.05, quick";
    assertThat(lastRun(record, "gather: ring: native", "gather: direct: ipc")).isEqualTo(place);
    assertThat(lastRun(record, "gather: ring: native", "gather: ring: nccl"))
        .isEqualTo(place + ", without nccl memory");
    assertThat(lastRun(record, "gather: ring", "gather: telepathy"))
        .isEqualTo(place + ", without gather: telepathy");
    assertThat(lastRun(record, "gather: bulk")).isEqualTo(place + ", wrong: gather: bulk");
    assertThat(lastRun(record, "gather: nccl")).isEqualTo("not run");
  }

  private static String lastRun(SelfTestRecord record, String... paths) {
    return SelfTestRecord.lastRun(
        List.of(record), Stream.of(paths).map(TestedPath::parse).toList());
  }
}
