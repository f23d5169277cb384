package braid.launcher.cli.tune;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Decision;
import braid.evidence.Study;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.shapes.ModelShapes;
import braid.shapes.ModelShapes.Example;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Stream;
import jdk.jshell.JShell;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TunedModelTest {
  private static Decision decision(GemmSpec spec, Overlap tuning) {
    var setting = new LinkedHashMap<String, String>();
    setting.put(Decision.PROBLEM, spec.toString());
    setting.put("ranks", "4");
    setting.put("device", "NVIDIA H200");
    setting.put("link", "NVLink");
    var versions = new LinkedHashMap<String, String>();
    versions.put("braid", "0.1.0");
    versions.put("java", "25");
    versions.put("driver", "580.82.07");
    versions.put("nccl", "libnccl.so.2 2.28.3 in /usr/lib");
    return new Decision(
        setting,
        versions,
        Instant.EPOCH,
        new Study<>(
            new LinkedHashMap<>(spec.columns()),
            4,
            1,
            List.of(900_000L, 900_001L, 900_000L, 900_001L, 900_000L, 900_001L),
            List.of(900_001L, 900_000L, 900_001L, 900_000L, 900_001L, 900_000L),
            List.of(
                new Study.Trial<>(
                    tuning, List.of(700_000L, 700_001L, 700_000L, 700_001L, 700_000L, 700_001L))),
            Overlap.unfused()));
  }

  @Test
  void anUndecidedProblemHasALine() {
    var decided = GemmSpec.allGatherGemm(64, 32, 16);
    var open = GemmSpec.gemmAllReduce(64, 32, 16);
    assertThat(
            TuneCommand.undecided(
                List.of(decided.toString(), open.toString(), open.toString()),
                List.of(decision(decided, Overlap.ring(2)))))
        .containsExactly(
            "take    `unfused` for %s: undecided, so nothing is kept; a larger --budget may decide"
                .formatted(open));
  }

  @ParameterizedTest
  @EnumSource
  void theCodeOfEachGemmMakesThatGemm(Example example) {
    var model = TunedModel.of(ModelShapes.of(example, 4, 1, 8192), List.of());
    try (var shell = JShell.create()) {
      shell.addToClasspath(System.getProperty("java.class.path", ""));
      shell.eval("import braid.model.*;");
      for (var tuned : model.problems()) {
        var code = String.join("", tuned.cell(60));
        var expression = code.substring(code.indexOf('=') + 1, code.indexOf(';')).strip();
        var made = shell.eval(expression + ".toString();").getFirst();
        assertThat(made.value()).isEqualTo('"' + tuned.problem().toString() + '"');
      }
    }
    assertThat(model.gemms()).isNotEmpty();
  }

  @Test
  void exportsAreWrittenAndMissingDecisionsNamed(@TempDir Path folder) throws Exception {
    var yaml = folder.resolve("tp4.yaml");
    var vllm = folder.resolve("vllm.sh");
    var model =
        TunedModel.of(
            ModelShapes.of(Example.LLAMA_3_1_70B, 4, 1, 8192),
            List.of("megatron=" + yaml, "vllm=" + vllm));
    var decisions =
        model.gemms().entrySet().stream()
            .filter(each -> Stream.of("fc1_fprop", "proj_fprop").anyMatch(each.getKey()::equals))
            .map(
                each ->
                    decision(
                        each.getValue(),
                        each.getKey().equals("fc1_fprop") ? Overlap.ring() : Overlap.pipelined(4)))
            .toList();
    assertThat(model.problems())
        .filteredOn(each -> each.problem().equals(model.gemms().get("fc1_fprop")))
        .singleElement()
        .satisfies(
            each ->
                assertThat(each.cell(60).getLast())
                    .isEqualTo(
                        "Tuner.on(world).gemm(spec).search().methods(Method.RING).budget(Duration.ofSeconds(60)).decide()"));
    var lines = model.export(decisions);
    assertThat(lines)
        .contains("undecided qkv_fprop; raise --budget", "megatron " + yaml, "vllm " + vllm);
    assertThat(Files.readString(yaml))
        .startsWith(
            "# measured with Braid 0.1.0 on 4 x NVIDIA H200, NVLink, driver 580.82.07, nccl 2.28.3,")
        .contains("fc1_fprop:\n  method: ring_exchange\n");
    assertThat(Files.readString(vllm)).contains("\"fuse_gemm_comms\":true");
  }

  @Test
  void withoutADecisionNoFileIsWritten(@TempDir Path folder) throws Exception {
    var yaml = folder.resolve("tp4.yaml");
    var model =
        TunedModel.of(
            ModelShapes.of(Example.LLAMA_3_1_70B, 4, 1, 8192), List.of("megatron=" + yaml));
    assertThat(model.export(List.of()))
        .contains("not written %s: it needs a decision and has none".formatted(yaml));
    assertThat(yaml).doesNotExist();
  }

  @Test
  void formsAndRanksThatAreNotTunedAreNamed() {
    var model = TunedModel.of(ModelShapes.of(Example.LLAMA_3_1_70B, 4, 2, 8192), List.of());
    assertThat(model.notes())
        .contains(
            "qkv_dgrad is tuned as gemm-beside-all-gather; its other form, gemm-reduce-scatter, is not",
            "attention runs on 2 ranks of its own: braid tune attention 8192 --heads 16 --kv-heads 2 --head-size 128 --causal --fused qkv --dtype bf16 -n 2");
  }

  @Test
  void anExportWithoutTargetOrFileIsRefused(@TempDir Path folder) {
    var shapes = ModelShapes.of(Example.LLAMA_3_1_70B, 4, 1, 8192);
    for (var wrong : List.of("tp4.yaml", "slurm=tp4.yaml", "megatron=")) {
      assertThatThrownBy(() -> TunedModel.of(shapes, List.of(wrong)))
          .isInstanceOf(BraidException.class)
          .hasMessage(
              "--export must be megatron=FILE or vllm=FILE but was `%s`; for example megatron=tp4.yaml"
                  .formatted(wrong));
    }
    var file = folder.resolve("one");
    assertThatThrownBy(() -> TunedModel.of(shapes, List.of("megatron=" + file, "vllm=" + file)))
        .hasMessageStartingWith("--export must name each target and each file once but was ");
  }
}
