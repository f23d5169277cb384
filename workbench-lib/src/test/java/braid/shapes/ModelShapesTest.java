package braid.shapes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.TokenLayout;
import braid.schedule.Shares;
import braid.shapes.ModelShapes.Example;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ModelShapesTest {
  /// Qwen2.5-72B, whose query, key and value have a bias that its configuration does not mention.
  private static final String QWEN_2_5_72B =
      """
      {"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 29568,
       "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
       "vocab_size": 152064, "tie_word_embeddings": false, "use_sliding_window": false,
       "sliding_window": 131072, "max_window_layers": 80, "torch_dtype": "bfloat16"}
      """;

  /// Parameters of the published weights, counted by others. DeepSeek-V3 without the module that
  /// predicts further tokens.
  private static final Map<Example, Long> PUBLISHED =
      Map.of(
          Example.LLAMA_3_1_70B, 70_553_706_496L,
          Example.QWEN3_32B, 32_762_123_264L,
          Example.MIXTRAL_8X7B, 46_702_792_704L,
          Example.DEEPSEEK_V3, 671_026_419_200L);

  @TempDir Path directory;

  @ParameterizedTest
  @EnumSource
  void theWeightsOfALayerAddUpToThePublishedParameters(Example example) {
    var shapes = ModelShapes.of(example, 8, 1, 8192);
    assertThat(parameters(shapes, fields(example.json()))).isEqualTo(PUBLISHED.get(example));
  }

  @Test
  void theWeightsOfQwen25AddUpToThePublishedParameters() {
    var shapes = ModelShapes.of(QWEN_2_5_72B, 8, 1, 8192);
    assertThat(parameters(shapes, fields(QWEN_2_5_72B))).isEqualTo(72_706_203_648L);
    assertThat(shapes.spec("qkv_fprop", Pattern.ALL_GATHER_GEMM).has(Feature.BIAS)).isTrue();
    assertThat(shapes.spec("proj_fprop", Pattern.GEMM_REDUCE_SCATTER).has(Feature.BIAS)).isFalse();
    assertThat(shapes.attention().orElseThrow().window()).isZero();
  }

  private static JsonObject fields(String json) {
    return JsonParser.parseString(json).getAsJsonObject();
  }

  /// Adds the weights of the GEMMs, and what no GEMM that communicates has: norms, projections that
  /// each rank has whole, experts, router and embeddings.
  private static long parameters(ModelShapes shapes, JsonObject fields) {
    long hidden = number(fields, "hidden_size");
    long layers = number(fields, "num_hidden_layers");
    long total = 2 * number(fields, "vocab_size") * hidden + hidden;
    total += layers * (weights(shapes, "qkv", "q_up", "kv_up", "proj") + 2 * hidden);
    long dense = layers;
    switch (shapes.model()) {
      case "qwen2" -> total += layers * shapes.spec("qkv_fprop", Pattern.ALL_GATHER_GEMM).n();
      case "qwen3" -> total += layers * 2 * number(fields, "head_dim");
      case "mixtral" -> {
        long expert = 3 * hidden * number(fields, "intermediate_size");
        total += layers * 8 * (expert + hidden);
        dense = 0;
      }
      case "deepseek_v3" -> {
        long down = 1536 + 512 + 64;
        total += layers * (hidden * down + 1536 + 512);
        dense = 3;
        long expert = 3 * hidden * 2048;
        total += (layers - dense) * (257 * expert + 256 * hidden + 256);
      }
      default -> {}
    }
    return total + dense * weights(shapes, "fc1", "fc2");
  }

  private static long weights(ModelShapes shapes, String... layers) {
    long sum = 0;
    for (var layer : layers) {
      for (var operation : shapes.operations(layer + "_fprop")) {
        sum += (long) operation.spec().n() * operation.spec().k();
      }
    }
    return sum;
  }

  private static long number(JsonObject fields, String name) {
    return fields.get(name).getAsLong();
  }

  /// Sizes of the weights per rank, as k × n, of 4 ranks: the benchmarks of serving systems list
  /// them for models of these sizes.
  @ParameterizedTest
  @CsvSource({
    "qkv_fprop, ALL_GATHER_GEMM, 8192, 2560",
    "proj_fprop, GEMM_REDUCE_SCATTER, 2048, 8192",
    "fc1_fprop, ALL_GATHER_GEMM, 8192, 14336",
    "fc2_fprop, GEMM_REDUCE_SCATTER, 7168, 8192"
  })
  void sharesOfLlamaAreThePublishedGemms(String gemm, Pattern pattern, int depth, int columns) {
    var spec = ModelShapes.of(Example.LLAMA_3_1_70B, 4, 1, 8192).spec(gemm, pattern);
    assertThat(share(spec, 4)).isEqualTo(List.of(8192L, (long) columns, (long) depth));
  }

  /// Sizes per rank, of 16 ranks, for which serving systems have tuned FP8 kernels by name.
  @ParameterizedTest
  @CsvSource({
    "q_up_fprop, ALL_GATHER_GEMM, 1536, 1536",
    "kv_up_fprop, ALL_GATHER_GEMM, 512, 2048",
    "proj_fprop, GEMM_REDUCE_SCATTER, 1024, 7168",
    "fc1_fprop, ALL_GATHER_GEMM, 7168, 2304",
    "fc2_fprop, GEMM_REDUCE_SCATTER, 1152, 7168"
  })
  void sharesOfDeepSeekAreThePublishedGemms(String gemm, Pattern pattern, int depth, int columns) {
    var spec = ModelShapes.of(Example.DEEPSEEK_V3, 16, 1, 4096).spec(gemm, pattern);
    assertThat(share(spec, 16)).isEqualTo(List.of(4096L, (long) columns, (long) depth));
  }

  private static List<Long> share(GemmSpec spec, int ranks) {
    var share = Shares.of(spec, ranks, ranks - 1);
    return List.of((long) spec.m(), share.columns().length(), share.inner().length());
  }

  /// All three GEMMs of a layer multiply as much on a rank: tokens × weight.
  @ParameterizedTest
  @EnumSource
  void forwardAndBothGradientsMultiplyAsMuch(Example example) {
    var shapes = ModelShapes.of(example, 8, 2, 8192);
    assertThat(shapes.operations()).isNotEmpty();
    for (var operation : shapes.operations()) {
      var layer = operation.gemm().replaceAll("_(fprop|dgrad|wgrad)$", "");
      var forward = shapes.operations(layer + "_fprop").getFirst().spec();
      var spec = operation.spec();
      double own = spec.pattern().beside() ? 8 * spec.flops() : spec.flops();
      assertThat(own).as(operation.toString()).isEqualTo(forward.flops());
      assertThat(forward.m()).isEqualTo(8192 / 2);
      if (spec.pattern().beside()) {
        assertThat(spec.besideElements()).isEqualTo((long) forward.m() * forward.k());
      }
    }
  }

  @Test
  void attentionHasTheHeadsOfARank() {
    var attention = ModelShapes.of(Example.QWEN3_32B, 4, 2, 16384).attention().orElseThrow();
    assertThat(attention.sequence()).isEqualTo(16384);
    assertThat(attention.heads()).isEqualTo(16);
    assertThat(attention.kvHeads()).isEqualTo(2);
    assertThat(attention.headSize()).isEqualTo(128);
    assertThat(attention.isCausal()).isTrue();
    assertThat(attention.dtype()).isEqualTo(DType.BF16);
    assertThat(attention.layout()).isEqualTo(TokenLayout.ZIGZAG);
    var alone = ModelShapes.of(Example.QWEN3_32B, 4, 1, 16384).attention().orElseThrow();
    assertThat(alone.layout()).isEqualTo(TokenLayout.CONTIGUOUS);
  }

  @Test
  void aWindowIsKeptIfTheLayerUsesIt() {
    var window = "{\"sliding_window\": 4096, \"model_type\": \"mistral\",";
    var mistral = llama().replace("{\"model_type\": \"llama\",", window);
    assertThat(ModelShapes.of(mistral, 2, 1, 8192).attention().orElseThrow().window())
        .isEqualTo(4096);
    assertThat(ModelShapes.of(mistral, 2, 1, 2048).attention().orElseThrow().window()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "attn_logit_softcapping, 50.0, false",
    "attn_logit_softcapping, null, true",
    "use_attention_sinks, true, false",
    "use_attention_sinks, false, true"
  })
  void attentionWithASoftCapOrSinksIsRefusedByName(String field, String value, boolean accepted) {
    var changed = "{\"%s\": %s, \"model_type\": \"llama\",".formatted(field, value);
    var shapes =
        ModelShapes.of(llama().replace("{\"model_type\": \"llama\",", changed), 2, 1, 8192);
    assertThat(shapes.attention().isPresent()).isEqualTo(accepted);
    assertThat(shapes.operations("qkv_fprop")).isNotEmpty();
    assertThat(shapes.toString().contains("not attention: `%s` is %s, and".formatted(field, value)))
        .isEqualTo(!accepted);
  }

  @Test
  void expertsAreRefusedByName() {
    assertThat(ModelShapes.of(Example.MIXTRAL_8X7B, 8, 1, 4096).refused().toString())
        .contains("experts: 8 experts of 14336 columns, in all layers, exchange")
        .contains("proj_wgrad: ");
    var mixtral = ModelShapes.of(Example.MIXTRAL_8X7B, 8, 1, 4096);
    assertThat(mixtral.operations("fc1_fprop")).isEmpty();
    var deepSeek = ModelShapes.of(Example.DEEPSEEK_V3, 8, 1, 4096);
    assertThat(deepSeek.attention()).isEmpty();
    assertThat(deepSeek.toString())
        .contains("experts: 256 experts of 2048 columns, in all layers but the first 3, exchange")
        .contains("not attention: a head has 192 numbers of the key and 128 of the value")
        .contains("not q_down: each rank multiplies its own 512 tokens (n=1536 k=7168)")
        .contains("not kv_down: each rank multiplies its own 512 tokens (n=576 k=7168)");
  }

  @Test
  void aQueryWithoutLowRankIsProjectedDirectly() {
    var lite = Example.DEEPSEEK_V3.json().replace("\"q_lora_rank\": 1536", "\"q_lora_rank\": null");
    var spec = ModelShapes.of(lite, 8, 1, 4096).spec("q_fprop", Pattern.ALL_GATHER_GEMM);
    assertThat(spec.n()).isEqualTo(128 * 192);
    assertThat(spec.k()).isEqualTo(7168);
  }

  private static String llama() {
    return Example.LLAMA_3_1_70B.json().replaceAll("\\s+", " ").replace("{ \"", "{\"");
  }

  @Test
  void aFileIsReadLikeItsText() throws IOException {
    var file = Files.writeString(directory.resolve("config.json"), llama());
    assertThat(ModelShapes.of(file, 8, 2, 8192)).isEqualTo(ModelShapes.of(llama(), 8, 2, 8192));
    assertThat(ModelShapes.of(file, 8, 2, 8192))
        .isEqualTo(ModelShapes.of(Example.LLAMA_3_1_70B, 8, 2, 8192));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "\"hidden_size\": 8192,|`hidden_size` must be given but is missing; add it",
        "\"intermediate_size\": 28672,|`intermediate_size` must be given but is missing; add it",
        "\"model_type\": \"llama\",|`model_type` must be given but is missing; add it"
      })
  void aMissingFieldIsNamed(String removed, String message) {
    refuses(llama().replace(removed, ""), 8, message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "0|whole number of 1..4194304 but was 0;",
        "-8192|whole number of 1..4194304 but was -8192;",
        "8192.5|whole number of 1..4194304 but was 8192.5;",
        "1e999999999|whole number of 1..4194304 but was 1e999999999;",
        "1e-999999999|whole number of 1..4194304 but was 1e-999999999;",
        "99999999999999999999|whole number of 1..4194304 but was 99999999999999999999;",
        "\"8192\"|whole number of 1..4194304 but was \"8192\";",
        "[8192]|whole number of 1..4194304 but was [8192];",
        "{\"a\": {\"b\": 1}}|whole number of 1..4194304 but was {\"a\":{\"b\":1}};",
        "true|whole number of 1..4194304 but was true;",
        "null|must be given but is missing;"
      })
  void aWrongSizeIsNamed(String value, String message) {
    var json = llama().replace("\"hidden_size\": 8192", "\"hidden_size\": " + value);
    refuses(json, 8, "`hidden_size` ");
    refuses(json, 8, message);
  }

  @Test
  void anUnknownModelIsNamed() {
    refuses(llama().replace("\"llama\"", "\"mamba\\n2\""), 8, "but was mamba?2; of another family");
    refuses(llama().replace("bfloat16", "int4"), 8, "`torch_dtype` must be bfloat16, float16");
    refuses(llama().replace("\"attention_bias\": false", "\"attention_bias\": 0"), 8, "true or");
    refuses("{\"text_config\": " + llama() + "}", 8, "`model_type` must be given");
  }

  @Test
  void textThatIsNoObjectIsRefused() {
    refuses("[1, 2]", 8, "must be a JSON object but was [1,2];");
    refuses("", 8, "must be JSON but is not");
    refuses("model_type: llama", 8, "must be JSON but is not");
    refuses("[".repeat(100_000), 8, "must be JSON but is not");
    refuses(llama().replace("\"hidden_size\"", "\"hidden_size\": 1, \"hidden_size\""), 8, "twice");
  }

  @Test
  void headsMustBeDivisible() {
    refuses(llama(), 16, "`num_key_value_heads` must be divisible by tp = 16 but was 8; try tp 8");
    refuses(llama(), 3, "tokens must be divisible by tp × cp = 3 but was 8192; try 8190");
    refuses(
        llama().replace("28672", "28673"), 8, "`intermediate_size` must be divisible by tp = 8");
    refuses(llama().replace("\"hidden_size\": 8192", "\"hidden_size\": 8193"), 8, "add `head_dim`");
    refuses(llama(), 0, "tp must be 1..16384 but was 0; try tp 1");
    assertThatThrownBy(() -> ModelShapes.of(llama(), 8, -1, 8192)).hasMessageContaining("cp must");
    assertThatThrownBy(() -> ModelShapes.of(llama(), 1, 8, 8))
        .hasMessageContaining("2 × cp (two parts of the sequence per rank) = 16 but was 8; try 16");
    var wide =
        llama()
            .replace("\"num_attention_heads\": 64", "\"num_attention_heads\": 4194304")
            .replace("\"attention_bias\"", "\"head_dim\": 4194304, \"attention_bias\"");
    refuses(wide, 8, "the columns of qkv must be at most 2147483647 but were 17592253153280;");
  }

  @Test
  void aFileOfWeightsIsNotRead() throws IOException {
    var file = directory.resolve("model.safetensors");
    try (var weights = new RandomAccessFile(file.toFile(), "rw")) {
      weights.setLength(100 << 20);
    }
    assertThatThrownBy(() -> ModelShapes.of(file, 8, 1, 8192))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("at most 4194304 characters but has 104857600; give");
    assertThatThrownBy(() -> ModelShapes.of(directory.resolve("none.json"), 8, 1, 8192))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("none.json must be a readable text file");
    Files.write(file, new byte[] {(byte) 0xff, (byte) 0xfe});
    assertThatThrownBy(() -> ModelShapes.of(file, 8, 1, 8192))
        .hasMessageContaining("must be a readable text file");
  }

  private static void refuses(String json, int tp, String message) {
    assertThatThrownBy(() -> ModelShapes.of(json, tp, 1, 8192))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .message()
        .hasLineCount(1)
        .hasSizeLessThan(400);
  }
}
