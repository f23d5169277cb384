package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.export.MeasuredOn;
import braid.export.MegatronExport;
import braid.export.TunedGemm;
import braid.export.UserbuffersRules;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Overlap;
import braid.shapes.ModelShapes;
import java.util.LinkedHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;

/// A small model's layer, from its configuration to verified pipelines and to a table.
class ModelLayerTest {
  private static final int RANKS = 2;

  private static final String LLAMA =
      """
      {"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 8,
       "num_key_value_heads": 4, "attention_bias": true, "torch_dtype": "bfloat16"}
      """;

  private static final String DEEPSEEK =
      """
      {"model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 48,
       "num_attention_heads": 4, "q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_head_dim": 6,
       "qk_rope_head_dim": 2, "v_head_dim": 6, "n_routed_experts": 0}
      """;

  private static Overlap overlap(GemmSpec spec) {
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> Overlap.ring();
      case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE -> Overlap.direct();
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> Overlap.bulk();
    };
  }

  @ParameterizedTest
  @ValueSource(strings = {LLAMA, DEEPSEEK})
  void everyOperationIsVerified(String json) {
    var shapes = ModelShapes.of(json, RANKS, 1, 24);
    assertThat(shapes.operations()).hasSizeGreaterThanOrEqualTo(12);
    LocalRanks.run(
        RANKS,
        world -> {
          for (var operation : shapes.operations()) {
            var spec = operation.spec();
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(overlap(spec)).build()) {
              pipe.verify();
            }
          }
        });
  }

  @Test
  void attentionOfTheRanksIsVerified() {
    var attention = ModelShapes.of(LLAMA, 2, RANKS, 32).attention().orElseThrow();
    assertThat(attention.heads()).isEqualTo(4);
    LocalRanks.run(
        RANKS,
        world -> {
          try (var pipe =
              Pipeline.on(world).attention(attention).overlap(ContextParallel.ring()).build()) {
            pipe.verify();
          }
        });
  }

  @Test
  void aTunedLayerBecomesATable() {
    var shapes = ModelShapes.of(LLAMA, RANKS, 1, 24);
    var machine = new MeasuredOn("test", "host", "shared memory", "none", "OpenBLAS");
    LocalRanks.run(
        RANKS,
        world -> {
          var tuned = new LinkedHashMap<String, TunedGemm>();
          for (var operation : shapes.operations()) {
            var spec = operation.spec();
            boolean fused =
                operation.gemm().matches("(qkv|fc1)_dgrad")
                    && spec.pattern() == Pattern.GEMM_REDUCE_SCATTER;
            if (!fused) {
              var study = Tuner.on(world).gemm(spec).overlaps(overlap(spec)).repeats(6).run();
              tuned.put(
                  operation.gemm(),
                  new TunedGemm(
                      spec,
                      study.fastest(),
                      RANKS,
                      study.medianNanos(study.fastest()),
                      study.unfusedMedianNanos(),
                      machine));
            }
          }
          var text = MegatronExport.yaml(tuned).text();
          var table = new Load(LoadSettings.builder().build()).loadFromString(text);
          assertThat(UserbuffersRules.of().check(table)).isEmpty();
          assertThat(table.toString()).contains("fc2_dgrad={method=ring_exchange, use_ce=true}");
        });
  }
}
