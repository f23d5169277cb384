package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.export.MegatronExport.BridgeName;
import braid.export.UserbuffersRules.Mode;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import braid.shapes.ModelShapes;
import braid.shapes.ModelShapes.Example;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MegatronExportTest {
  static final MeasuredOn MACHINE =
      new MeasuredOn("0.1.0", "4 x NVIDIA H200", "NVLink 4", "580.82", "cuBLAS 13.1, NCCL 2.29");

  private static final ModelShapes SHAPES = ModelShapes.of(Example.LLAMA_3_1_70B, 4, 1, 8192);
  private static final BridgeName NAME = new BridgeName("h200", 8192, 1, 1, 8192);

  @TempDir Path directory;

  static TunedGemm decision(GemmSpec spec, Overlap tuning) {
    return new TunedGemm(spec, tuning, 4, 812_340, 1_100_000, MACHINE);
  }

  private static TunedGemm decision(String gemm, Pattern pattern, Overlap tuning) {
    return decision(SHAPES.spec(gemm, pattern), tuning);
  }

  private static Map<String, TunedGemm> layer() {
    var layer = new LinkedHashMap<String, TunedGemm>();
    layer.put("qkv_fprop", decision("qkv_fprop", Pattern.ALL_GATHER_GEMM, Overlap.ring()));
    layer.put(
        "qkv_dgrad", decision("qkv_dgrad", Pattern.GEMM_BESIDE_ALL_GATHER, workers(bulk(), 8)));
    layer.put("qkv_wgrad", decision("qkv_wgrad", Pattern.GEMM_BESIDE_REDUCE_SCATTER, bulk()));
    layer.put(
        "proj_fprop",
        decision("proj_fprop", Pattern.GEMM_REDUCE_SCATTER, workers(Overlap.pipelined(4), 24)));
    layer.put(
        "proj_dgrad",
        decision("proj_dgrad", Pattern.ALL_GATHER_GEMM, Overlap.ring().priority(Priority.EQUAL)));
    layer.put(
        "fc1_fprop", decision("fc1_fprop", Pattern.ALL_GATHER_GEMM, workers(Overlap.ring(2), 2)));
    layer.put("fc1_dgrad", decision("fc1_dgrad", Pattern.GEMM_REDUCE_SCATTER, Overlap.direct()));
    layer.put("fc2_fprop", decision("fc2_fprop", Pattern.GEMM_REDUCE_SCATTER, Overlap.direct()));
    layer.put(
        "fc2_dgrad",
        decision("fc2_dgrad", Pattern.ALL_GATHER_GEMM, Overlap.ring().priority(Priority.GEMM)));
    return layer;
  }

  private static Overlap bulk() {
    return Overlap.bulk();
  }

  private static Overlap workers(Overlap tuning, int count) {
    return tuning.over(Transport.WORKERS).workers(count);
  }

  @Test
  void methodsWithACounterpartAreListed() {
    assertThat(MegatronExport.methods(GemmSpec.Pattern.ALL_GATHER_GEMM))
        .containsExactly(Method.RING);
    assertThat(MegatronExport.methods(GemmSpec.Pattern.GEMM_REDUCE_SCATTER))
        .containsExactly(Method.PIPELINED, Method.DIRECT);
    assertThat(MegatronExport.methods(GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER))
        .containsExactly(Method.BULK);
    assertThat(MegatronExport.methods(GemmSpec.Pattern.GEMM_ALL_REDUCE)).isEmpty();
  }

  @Test
  void aLayerIsATableThatTransformerEngineAccepts() {
    var export = MegatronExport.yaml(layer());
    var table = UserbuffersRulesTest.yaml(export.text());
    assertThat(UserbuffersRules.of(Mode.NONE).check(table)).isEmpty();
    assertThat(table)
        .isEqualTo(
            Map.of(
                "qkv_fprop", Map.of("method", "ring_exchange", "use_ce", true),
                "qkv_dgrad", Map.of("method", "bulk", "num_sm", 8),
                "qkv_wgrad", Map.of("method", "bulk"),
                "proj_fprop", Map.of("method", "pipeline", "num_sm", 24, "num_splits", 4),
                "proj_dgrad",
                    Map.of(
                        "method",
                        "ring_exchange",
                        "use_ce",
                        true,
                        "comm_priority",
                        0,
                        "gemm_priority",
                        0),
                "fc1_fprop", Map.of("method", "ring_exchange", "use_ce", false, "num_sm", 2),
                "fc1_dgrad", Map.of("method", "ring_exchange", "use_ce", true),
                "fc2_fprop", Map.of("method", "ring_exchange", "use_ce", true),
                "fc2_dgrad",
                    Map.of(
                        "method",
                        "ring_exchange",
                        "use_ce",
                        true,
                        "comm_priority",
                        0,
                        "gemm_priority",
                        -1)));
    assertThat(export.omitted())
        .anyMatch(each -> each.startsWith("qkv_wgrad: measured over copy engines, but bulk"))
        .anyMatch(each -> each.startsWith("proj_fprop: measured with 4 splits of each rank's rows"))
        .anyMatch(each -> each.startsWith("fc1_fprop: measured with 2 splits of each rank's part"))
        .anyMatch(each -> each.startsWith("fc1_dgrad: it needs tp_comm_overlap_rs_dgrad"))
        .anyMatch(each -> each.startsWith("streams: measured with 1 for GEMMs"));
  }

  @Test
  void theFileBeginsWithMachineAndOmissions() {
    var export = MegatronExport.yaml(layer());
    assertThat(export.text())
        .startsWith("# measured with Braid 0.1.0 on 4 x NVIDIA H200, NVLink 4, driver 580.82,");
    var text = export.text().replace("\n#   ", " ");
    assertThat(text.lines().findFirst().orElseThrow())
        .endsWith("cuBLAS 13.1, NCCL 2.29, not with Megatron-LM, " + UserbuffersRules.VERSION);
    assertThat(text).contains("\n# not expressed by it (%d):\n".formatted(export.omitted().size()));
    export.omitted().forEach(each -> assertThat(text).contains("\n# - " + each + "\n"));
    assertThat(text).contains(": ring, 1 split, 812.3 us, unfused 1100.0 us\nqkv_fprop:\n");
    assertThat(export.text().lines()).allMatch(line -> line.length() < 256);
  }

  @Test
  void aMethodWithoutCounterpartHasNoEntry() {
    var layer = new LinkedHashMap<String, TunedGemm>();
    var all = List.of(Overlap.direct(4), Overlap.pipelined(4), Overlap.doubling());
    for (var tuning : all) {
      layer.put("qkv_fprop", decision("qkv_fprop", Pattern.ALL_GATHER_GEMM, tuning));
      layer.put("fc2_fprop", decision("fc2_fprop", Pattern.GEMM_REDUCE_SCATTER, Overlap.ring()));
      var export = MegatronExport.yaml(layer);
      assertThat(UserbuffersRulesTest.yaml(export.text())).isEqualTo(Map.of());
      assertThat(export.omitted())
          .containsExactly(
              "qkv_fprop: `%s` has no counterpart; without an entry Transformer Engine takes its default, ring_exchange"
                  .formatted(tuning),
              "fc2_fprop: `ring, 1 split` has no counterpart; without an entry Transformer Engine takes its default, pipeline");
    }
  }

  @Test
  void theUnfusedReferenceNamesItsSwitch() {
    var layer = new LinkedHashMap<String, TunedGemm>();
    for (var operation : SHAPES.operations()) {
      layer.put(operation.gemm(), decision(operation.spec(), Overlap.unfused()));
    }
    layer.put("qkv_dgrad", decision("qkv_dgrad", Pattern.GEMM_BESIDE_ALL_GATHER, unfused()));
    var export = MegatronExport.yaml(layer);
    assertThat(UserbuffersRulesTest.yaml(export.text())).isEqualTo(Map.of());
    assertThat(export.omitted())
        .hasSize(10)
        .allMatch(each -> each.contains("unfused is fastest, and a table cannot turn an overlap"))
        .anyMatch(
            each -> each.startsWith("qkv_fprop") && each.contains("tp_comm_overlap_disable_q"))
        .anyMatch(each -> each.startsWith("qkv_dgrad") && each.contains("no tp_comm_bulk_dgrad"))
        .anyMatch(each -> each.startsWith("fc1_dgrad") && each.contains("overlap_rs_dgrad"))
        .anyMatch(each -> each.startsWith("fc1_wgrad") && each.contains("no tp_comm_bulk_wgrad"))
        .anyMatch(each -> each.startsWith("fc2_fprop") && each.contains("no tp_comm_overlap_rs,"));
  }

  private static Overlap unfused() {
    return Overlap.unfused();
  }

  @Test
  void optionsWithoutKeysAreListed() {
    var tuning =
        Overlap.direct()
            .order(ChunkOrder.PREVIOUS_FIRST)
            .boundaries(0, 100, 2048)
            .replay()
            .outputInSymmetricMemory();
    var export =
        MegatronExport.yaml(
            Map.of("fc2_fprop", decision("fc2_fprop", Pattern.GEMM_REDUCE_SCATTER, tuning)));
    assertThat(export.omitted())
        .anyMatch(each -> each.startsWith("fc2_fprop: measured in order previous_first"))
        .anyMatch(each -> each.startsWith("fc2_fprop: boundaries [0, 100, 2048]"))
        .anyMatch(each -> each.startsWith("fc2_fprop: replayed as a graph"))
        .anyMatch(each -> each.startsWith("fc2_fprop: output in symmetric memory"));
  }

  @Test
  void layersOfOtherNamesAreListed() {
    var shapes = ModelShapes.of(Example.DEEPSEEK_V3, 4, 1, 4096);
    var export =
        MegatronExport.yaml(
            Map.of(
                "q_up_fprop",
                decision(shapes.spec("q_up_fprop", Pattern.ALL_GATHER_GEMM), Overlap.ring())));
    assertThat(export.omitted())
        .containsExactly(
            "q_up_fprop: Transformer Engine overlaps the layers qkv, proj, fc1 and fc2 only");
  }

  @Test
  void decisionsThatContradictAreRefused() {
    refuses(
        Map.of("qkv_fprop", decision("fc2_fprop", Pattern.GEMM_REDUCE_SCATTER, Overlap.direct())),
        "qkv_fprop must be all-gather-gemm but was gemm-reduce-scatter;");
    refuses(
        Map.of("proj_wgrad", decision("qkv_wgrad", Pattern.GEMM_BESIDE_REDUCE_SCATTER, bulk())),
        "proj_wgrad must be left out, because it is tuned with its dgrad,");
    refuses(
        Map.of(
            "fc1_dgrad", decision("fc1_dgrad", Pattern.GEMM_REDUCE_SCATTER, Overlap.direct()),
            "fc1_wgrad", decision("fc1_wgrad", Pattern.GEMM_BESIDE_REDUCE_SCATTER, bulk())),
        "fc1_wgrad: it has an entry although fc1_dgrad is ring_exchange, not bulk");
    refuses(Map.of(), "an export needs 1 decision or more");
    var fp8 = SHAPES.spec("fc1_fprop", Pattern.ALL_GATHER_GEMM).dtype(DType.FP8_E4M3);
    refuses(
        Map.of(
            "fc1_fprop", decision(fp8, Overlap.ring()),
            "fc2_fprop", decision("fc2_fprop", Pattern.GEMM_REDUCE_SCATTER, Overlap.direct())),
        "decisions of one table must all be FP8 or none");
    var elsewhere =
        new TunedGemm(
            SHAPES.spec("fc1_fprop", Pattern.ALL_GATHER_GEMM), Overlap.ring(), 8, 1, 1, MACHINE);
    refuses(
        Map.of("qkv_fprop", layer().values().iterator().next(), "fc1_fprop", elsewhere),
        "one machine and one number of ranks");
  }

  private static void refuses(Map<String, TunedGemm> decisions, String message) {
    assertThatThrownBy(() -> MegatronExport.yaml(decisions))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .message()
        .hasLineCount(1);
  }

  @Test
  void aValueOfAnExportIsChecked() {
    var spec = GemmSpec.allGatherGemm(64, 64, 64);
    assertThatThrownBy(() -> new TunedGemm(spec, Overlap.ring(), 1, 1, 1, MACHINE))
        .hasMessageContaining("needs 2 ranks or more but was measured on 1;");
    assertThatThrownBy(() -> new TunedGemm(spec, Overlap.ring(), 2, Double.NaN, 1, MACHINE))
        .hasMessageContaining("must be more than 0 ns and finite but was NaN;");
    assertThatThrownBy(() -> new TunedGemm(spec, Overlap.bulk(), 2, 1, 1, MACHINE))
        .hasMessageContaining("bulk does not exist for all-gather-gemm");
    for (var text : List.of("", " ", "a\nimport os", "a\u2028b", "x".repeat(201))) {
      assertThatThrownBy(() -> new MeasuredOn("0.1.0", text, "NVLink", "580", "NCCL 2.29"))
          .isInstanceOf(BraidException.class)
          .hasMessageContaining("the device of a measurement must be one line of 1..200 characters")
          .message()
          .hasLineCount(1);
    }
    assertThatThrownBy(() -> new BridgeName("H200", 8192, 1, 1, 8192))
        .hasMessageContaining("all small, but was `H200`; try h200");
    assertThatThrownBy(() -> new BridgeName("h200", 0, 1, 1, 8192))
        .hasMessageContaining("hidden must be 1 or more but was 0;");
  }

  /// Classes that have the fields of Megatron-Bridge's, without its defaults of a block overlap.
  private static final String DATACLASSES =
      """
      from dataclasses import dataclass
      from typing import Any
      @dataclass
      class PipelineOverlapCfg:
          num_sm: int
          cga_size: int
          num_splits: int
          set_sm_margin: bool
          fp8_buf: bool = (False,)
          atomic_gemm: bool = False
          method: str = "pipeline"
      @dataclass
      class RingExchangeOverlapCfg:
          aggregate: bool = False
          method: str = "ring_exchange"
          num_sm: int = 1
          cga_size: int = 1
          set_sm_margin: bool = False
          fp8_buf: bool = False
          atomic_gemm: bool = False
      @dataclass
      class BulkOverlapCfg:
          num_sm: int
          cga_size: int
          set_sm_margin: bool
          method: str = "bulk"
      @dataclass
      class TransformerLayerTPOverlapCfg:
          qkv_dgrad: Any
          qkv_wgrad: Any
          fc1_dgrad: Any
          fc1_wgrad: Any
          qkv_fprop: Any
          proj_dgrad: Any
          fc1_fprop: Any
          fc2_dgrad: Any
          proj_fprop: Any
          fc2_fprop: Any
      """;

  @Test
  void aDataclassIsReadByPython() throws IOException, InterruptedException {
    var folder = Files.createDirectories(directory.resolve("megatron/bridge/training"));
    Files.writeString(folder.resolve("comm_overlap.py"), DATACLASSES);
    var export = MegatronExport.dataclass(layer(), NAME);
    var printed =
        Python.run(
            directory,
            export.text(),
            """
            import json
            from dataclasses import asdict
            import exported
            found = [name for name in dir(exported) if name.startswith("userbuffers")]
            table = asdict(getattr(exported, found[0]))
            table = {key: value for key, value in table.items() if value is not None}
            print(json.dumps({"names": found, "table": table}))
            """);
    var read = JsonParser.parseString(printed).getAsJsonObject();
    assertThat(read.get("names").toString())
        .isEqualTo("[\"userbuffers_bf16_h200_h8192_tp4_mbs1_seqlen8192\"]");
    var table = UserbuffersRulesTest.yaml(read.get("table").toString());
    assertThat(UserbuffersRules.of(Mode.NONE).fatal(table)).isEmpty();
    assertThat(table)
        .asInstanceOf(InstanceOfAssertFactories.MAP)
        .hasSize(9)
        .doesNotContainKey("fc1_wgrad")
        .containsEntry(
            "proj_fprop",
            Map.of(
                "num_sm",
                24,
                "cga_size",
                2,
                "num_splits",
                4,
                "set_sm_margin",
                true,
                "fp8_buf",
                false,
                "atomic_gemm",
                false,
                "method",
                "pipeline"))
        .containsEntry(
            "qkv_wgrad",
            Map.of("num_sm", 16, "cga_size", 2, "set_sm_margin", true, "method", "bulk"));
    assertThat(export.omitted())
        .contains("fc1_fprop: use_ce = false, which the dataclasses do not have")
        .contains("fc2_dgrad: gemm_priority = -1, which the dataclasses do not have")
        .anyMatch(each -> each.startsWith("qkv_wgrad: num_sm = 16 was not measured"))
        .noneMatch(each -> each.startsWith("qkv_dgrad: num_sm"));
  }

  @Test
  void theNameHasTheSizesOfTheRun() {
    var layer = layer();
    assertThat(MegatronExport.dataclass(layer, new BridgeName("b300", 16384, 2, 3, 4096)).text())
        .contains("\nuserbuffers_bf16_b300_h16384_tp4_cp2_mbs3_seqlen4096 = Transformer");
    var fp8 = SHAPES.spec("fc1_fprop", Pattern.ALL_GATHER_GEMM).dtype(DType.FP8_E4M3);
    assertThat(
            MegatronExport.dataclass(Map.of("fc1_fprop", decision(fp8, Overlap.ring())), NAME)
                .text())
        .contains("\nuserbuffers_fp8_h200_h8192_tp4_mbs1_seqlen8192 = ");
  }
}
