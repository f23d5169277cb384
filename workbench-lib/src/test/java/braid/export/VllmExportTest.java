package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Overlap;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class VllmExportTest {
  private static List<TunedGemm> decisions(int tokens, Overlap gather, Overlap scatter) {
    return List.of(
        MegatronExportTest.decision(GemmSpec.allGatherGemm(tokens, 28672, 8192), gather),
        MegatronExportTest.decision(GemmSpec.gemmReduceScatter(tokens, 8192, 28672), scatter));
  }

  private static JsonElement passes(Export export) {
    var line =
        export.text().lines().filter(each -> !each.isEmpty() && !each.startsWith("#")).toList();
    assertThat(line).hasSize(1);
    assertThat(line.getFirst()).startsWith("--compilation-config '").endsWith("'");
    var json = line.getFirst().replace("--compilation-config ", "").replace("'", "");
    return JsonParser.parseString(json).getAsJsonObject().get("pass_config");
  }

  private static JsonElement json(String text) {
    return JsonParser.parseString(text);
  }

  @Test
  void theThresholdIsTheLeastNumberOfTokensThatOverlaps() {
    var all = new ArrayList<TunedGemm>();
    all.addAll(decisions(4096, Overlap.direct(), Overlap.pipelined(4)));
    all.addAll(decisions(256, Overlap.unfused(), Overlap.unfused()));
    all.addAll(decisions(1024, Overlap.direct(), Overlap.direct()));
    all.addAll(decisions(512, Overlap.direct(), Overlap.unfused()));
    var export = VllmExport.compilationConfig(all);
    assertThat(passes(export))
        .isEqualTo(
            json("{\"enable_sp\": true, \"fuse_gemm_comms\": true, \"sp_min_token_num\": 1024}"));
    assertThat(export.text()).startsWith("# measured with Braid 0.1.0 on 4 x NVIDIA H200, ");
    assertThat(export.omitted())
        .anyMatch(each -> each.startsWith("direct, 1 split; pipelined, 4 splits: vLLM overlaps by"))
        .anyMatch(each -> each.startsWith("measured for [256, 512, 1024, 4096] tokens"))
        .noneMatch(each -> each.contains("one threshold"));
  }

  @Test
  void noOverlapIsExportedIfTheLargestProblemHasNone() {
    var all = new ArrayList<TunedGemm>();
    all.addAll(decisions(256, Overlap.direct(), Overlap.direct()));
    all.addAll(decisions(1024, Overlap.unfused(), Overlap.direct()));
    var export = VllmExport.compilationConfig(all);
    assertThat(passes(export))
        .isEqualTo(json("{\"enable_sp\": false, \"fuse_gemm_comms\": false}"));
    assertThat(export.omitted())
        .anyMatch(each -> each.startsWith("256 tokens: every GEMM is faster"));
  }

  @Test
  void otherPatternsAreRefused() {
    var spec = GemmSpec.gemmAllReduce(1024, 8192, 28672);
    assertThatThrownBy(
            () ->
                VllmExport.compilationConfig(
                    List.of(MegatronExportTest.decision(spec, Overlap.direct()))))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("but was on a gemm-all-reduce;");
    assertThatThrownBy(() -> VllmExport.compilationConfig(List.of()))
        .hasMessageContaining("needs 1 decision or more");
  }
}
