package braid.shapes;

import static braid.model.GemmSpec.allGatherGemm;
import static braid.model.GemmSpec.besideAllGather;
import static braid.model.GemmSpec.besideReduceScatter;
import static braid.model.GemmSpec.gemmReduceScatter;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.TokenLayout;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The operations of a transformer's layer that communicate, for tensor, sequence and context
/// parallelism, read from a Hugging Face `config.json`.
///
/// Tensor parallelism divides every layer's weights among `tp` ranks, sequence parallelism the
/// tokens between the layers. A GEMM of T tokens is then one of two kinds:
///
/// - The weight (n × k) is divided by columns of the output (`qkv`, `fc1`). Forward gathers the
///   input and multiplies. Backward has two forms. In bulk, the gradient of the input is multiplied
///   beside the all-gather of the input, which the gradient of the weight needs, and that is
///   multiplied beside the reduce-scatter of the gradient of the input. Or the gradient of the
///   input is multiplied and reduce-scattered as one operation; the gradient of the weight then
///   communicates nothing.
/// - The weight is divided by the depth (`proj`, `fc2`). Forward multiplies and reduce-scatters.
///   Backward gathers the output's gradient and multiplies; the gathered gradient is kept for the
///   gradient of the weight, which communicates nothing.
///
/// Every GEMM has the tokens of one rank of context parallelism: `tokens / cp`. Weights are stored
/// as n × k. A gradient of the weight is rounded to the type of the layer, not added in fp32: the
/// data that travel beside it must have the layer's type.
///
/// @param model the configuration's `model_type`
/// @param tp ranks of tensor and sequence parallelism
/// @param cp ranks of context parallelism
/// @param tokens tokens of one sequence, of all ranks together
/// @param attention attention of one rank of tensor parallelism, over the `cp` ranks; it reads the
///   output of `qkv`
/// @param refused operations of the layer that are not among these, and why
public record ModelShapes(
    String model,
    int tp,
    int cp,
    int tokens,
    List<Operation> operations,
    Optional<AttentionSpec> attention,
    List<Refusal> refused) {
  /// More ranks than any group has; a larger number is taken for a mistake.
  public static final int MOST_RANKS = 1 << 14;

  /// A GEMM of the layer.
  ///
  /// @param gemm layer and direction, such as `fc1_fprop`, `fc1_dgrad` or `fc1_wgrad`
  public record Operation(String gemm, GemmSpec spec) {
    @Override
    public String toString() {
      return gemm + ": " + spec;
    }
  }

  /// An operation that is left out.
  public record Refusal(String name, String reason) {
    @Override
    public String toString() {
      return name + ": " + reason;
    }
  }

  /// Configurations that are part of Braid.
  public enum Example {
    LLAMA_3_1_70B,
    QWEN3_32B,
    MIXTRAL_8X7B,
    DEEPSEEK_V3;

    /// Returns the text of the configuration.
    public String json() {
      var name = "/braid/shapes/%s.json".formatted(name().toLowerCase(Locale.ROOT));
      try (var stream = ModelShapes.class.getResourceAsStream(name)) {
        if (stream == null) {
          throw new IllegalStateException(name + " is missing");
        }
        return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  public ModelShapes {
    operations = List.copyOf(operations);
    refused = List.copyOf(refused);
  }

  /// Reads a `config.json`.
  public static ModelShapes of(Path file, int tp, int cp, int tokens) {
    try {
      ModelFields.checkLength(file.toString(), Files.size(file));
      return parse(file.toString(), Files.readString(file), tp, cp, tokens);
    } catch (IOException e) {
      throw new BraidException(
          "%s must be a readable text file but was not: %s; give the path of the model's config.json"
              .formatted(file, e),
          e);
    }
  }

  /// Returns the operations of an example.
  public static ModelShapes of(Example example, int tp, int cp, int tokens) {
    return parse(example.toString(), example.json(), tp, cp, tokens);
  }

  /// Reads the text of a `config.json`.
  public static ModelShapes of(String json, int tp, int cp, int tokens) {
    return parse("config.json", json, tp, cp, tokens);
  }

  private static ModelShapes parse(String document, String json, int tp, int cp, int tokens) {
    within("tp", tp, MOST_RANKS);
    within("cp", cp, MOST_RANKS);
    within("tokens", tokens, Integer.MAX_VALUE);
    divisible("tokens", tokens, "tp × cp", (long) tp * cp);
    if (cp > 1) {
      divisible("tokens", tokens, "2 × cp (two parts of the sequence per rank)", 2L * cp);
    }
    return new Reader(ModelFields.parse(document, json), tp, cp, tokens).read();
  }

  private static void within(String name, int value, int most) {
    if (value < 1 || value > most) {
      throw new BraidException(
          "%s must be 1..%d but was %d; try %s 1".formatted(name, most, value, name));
    }
  }

  private static void divisible(String name, long value, String rule, long divisor) {
    if (value % divisor != 0) {
      long less = value / divisor * divisor;
      throw new BraidException(
          "%s must be divisible by %s = %d but was %d; try %d"
              .formatted(name, rule, divisor, value, less == 0 ? divisor : less));
    }
  }

  /// Returns the operations of a layer and direction; `qkv_dgrad` and `fc1_dgrad` have two forms.
  public List<Operation> operations(String gemm) {
    return operations.stream().filter(each -> each.gemm().equals(gemm)).toList();
  }

  /// Returns the GEMM of a layer and direction with a pattern.
  public GemmSpec spec(String gemm, Pattern pattern) {
    return operations(gemm).stream()
        .map(Operation::spec)
        .filter(each -> each.pattern() == pattern)
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "an operation must be one of this layer's but was %s %s; operations() has all"
                        .formatted(gemm, pattern)));
  }

  /// Returns one line per operation and per refusal.
  @Override
  public String toString() {
    return Stream.of(
            Stream.of("%s, tp=%d cp=%d tokens=%d".formatted(model, tp, cp, tokens)),
            operations.stream().map(each -> "  " + each),
            attention.stream().map(each -> "  attention: " + each),
            refused.stream().map(each -> "  not " + each))
        .flatMap(lines -> lines)
        .collect(Collectors.joining("\n"));
  }

  /// Families whose layers are known.
  private enum Family {
    LLAMA(false, ""),
    MISTRAL(false, ""),
    QWEN2(true, ""),
    QWEN3(false, ""),
    QWEN3_MOE(false, "num_experts"),
    MIXTRAL(false, "num_local_experts"),
    DEEPSEEK_V2(false, "n_routed_experts"),
    DEEPSEEK_V3(false, "n_routed_experts");

    /// True if query, key and value have a bias also if the configuration does not mention it.
    private final boolean queryBias;

    /// Field with the number of experts; empty if there are none.
    private final String expertField;

    Family(boolean queryBias, String expertField) {
      this.queryBias = queryBias;
      this.expertField = expertField;
    }

    static Family of(ModelFields fields) {
      var found = fields.text("model_type");
      return Stream.of(values())
          .filter(each -> each.toString().equals(found))
          .findFirst()
          .orElseThrow(
              () ->
                  new BraidException(
                      "%s: `model_type` must be one of %s but was %s; of another family give the sizes to GemmSpec"
                          .formatted(
                              fields.document(),
                              Stream.of(values())
                                  .map(Family::toString)
                                  .collect(Collectors.joining(", ")),
                              ModelFields.shortened(found))));
    }

    boolean isLatent() {
      return this == DEEPSEEK_V2 || this == DEEPSEEK_V3;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /// Collects the operations of one configuration.
  private static final class Reader {
    /// Fields of attention with a soft cap of its scores, or with sinks.
    private static final List<String> CHANGING_SCORES =
        List.of(
            "attn_logit_softcapping",
            "attention_sink",
            "attention_sinks",
            "use_attention_sinks",
            "add_full_attention_sink_bias",
            "add_swa_attention_sink_bias");

    private final ModelFields fields;
    private final Family family;
    private final int tp;
    private final int cp;
    private final int tokens;
    private final int hidden;
    private final int heads;
    private final DType dtype;
    private final List<Operation> operations = new ArrayList<>();
    private final List<Refusal> refused = new ArrayList<>();

    Reader(ModelFields fields, int tp, int cp, int tokens) {
      this.fields = fields;
      this.family = Family.of(fields);
      this.tp = tp;
      this.cp = cp;
      this.tokens = tokens;
      hidden = fields.size("hidden_size");
      heads = fields.size("num_attention_heads");
      dtype = dtype();
      divided("num_attention_heads", heads);
    }

    private DType dtype() {
      var field = fields.has("torch_dtype") ? "torch_dtype" : "dtype";
      var name = fields.text(field, "bfloat16");
      return switch (name) {
        case "bfloat16" -> DType.BF16;
        case "float16" -> DType.FP16;
        case "float32" -> DType.FP32;
        default ->
            throw new BraidException(
                "%s: `%s` must be bfloat16, float16 or float32 but was %s; take the type of the activations"
                    .formatted(fields.document(), field, ModelFields.shortened(name)));
      };
    }

    private void divided(String name, long value) {
      divisible(fields.document() + ": `" + name + "`", value, "tp", tp, name);
    }

    private static void divisible(
        String subject, long value, String rule, int divisor, String name) {
      if (value % divisor != 0) {
        int nearest = divisor;
        while (value % nearest != 0) {
          nearest--;
        }
        throw new BraidException(
            "%s must be divisible by %s = %d but was %d; try tp %d, the largest up to it that divides %s"
                .formatted(subject, rule, divisor, value, nearest, name));
      }
    }

    ModelShapes read() {
      var attention = Optional.<AttentionSpec>empty();
      if (family.isLatent()) {
        latentAttention();
      } else {
        attention = Optional.of(groupedAttention()).filter(_ -> hasPlainScores());
      }
      feedForward();
      return new ModelShapes(family.toString(), tp, cp, tokens, operations, attention, refused);
    }

    private AttentionSpec groupedAttention() {
      int groups = fields.size("num_key_value_heads", heads);
      divided("num_key_value_heads", groups);
      if (!fields.has("head_dim") && hidden % heads != 0) {
        throw new BraidException(
            "%s: `hidden_size` must be divisible by num_attention_heads = %d but was %d; correct it or add `head_dim`"
                .formatted(fields.document(), heads, hidden));
      }
      int headSize = fields.size("head_dim", Math.max(1, hidden / heads));
      boolean bias = fields.flag("attention_bias", false);
      long queries = (long) heads * headSize;
      byColumns("qkv", queries + 2L * groups * headSize, hidden, bias || family.queryBias);
      byDepth("proj", hidden, queries, bias);
      var spec =
          AttentionSpec.of(tokens, heads / tp, headSize)
              .kvHeads(groups / tp)
              .causal()
              .dtype(dtype)
              .fused(Fused.QKV)
              .layout(cp > 1 ? TokenLayout.ZIGZAG : TokenLayout.CONTIGUOUS);
      int window = window();
      return window > 0 && window < tokens ? spec.window(window) : spec;
    }

    /// Returns whether nothing but a mask changes scores and their sums. Refuses the attention
    /// otherwise.
    private boolean hasPlainScores() {
      for (var field : CHANGING_SCORES) {
        if (fields.isSet(field)) {
          refused.add(
              new Refusal(
                  "attention",
                  "`%s` is %s, and AttentionSpec has neither a soft cap of scores nor attention sinks; without it the attention would be another"
                      .formatted(field, fields.value(field))));
          return false;
        }
      }
      return true;
    }

    /// Returns the sliding window; 0 for none. Qwen has the field even if no layer uses it.
    private int window() {
      boolean used = fields.flag("use_sliding_window", !family.toString().startsWith("qwen"));
      return used ? fields.count("sliding_window") : 0;
    }

    /// Queries, keys and values come from low-rank projections. Each rank projects its own tokens
    /// down, so only the narrow result is gathered.
    private void latentAttention() {
      int positionless = fields.size("qk_nope_head_dim");
      int rotary = fields.size("qk_rope_head_dim");
      int valueSize = fields.size("v_head_dim");
      int keyRank = fields.size("kv_lora_rank");
      long queries = (long) heads * (positionless + rotary);
      if (fields.has("q_lora_rank")) {
        int queryRank = fields.size("q_lora_rank");
        byColumns("q_up", queries, queryRank, false);
        alone("q_down", hidden, queryRank);
      } else {
        byColumns("q", queries, hidden, false);
      }
      byColumns("kv_up", (long) heads * (positionless + valueSize), keyRank, false);
      alone("kv_down", hidden, keyRank + rotary);
      refused.add(
          new Refusal(
              "rotary keys",
              "their %d numbers per token are gathered without a GEMM".formatted(rotary)));
      byDepth("proj", hidden, (long) heads * valueSize, fields.flag("attention_bias", false));
      refused.add(
          new Refusal(
              "attention",
              "a head has %d numbers of the key and %d of the value, and AttentionSpec has one head size"
                  .formatted(positionless + rotary, valueSize)));
    }

    private void alone(String name, int depth, int columns) {
      refused.add(
          new Refusal(
              name,
              "each rank multiplies its own %d tokens (n=%d k=%d), so nothing is communicated"
                  .formatted(tokens / cp / tp, columns, depth)));
    }

    private void feedForward() {
      int experts = family.expertField.isEmpty() ? 0 : fields.count(family.expertField);
      if (experts > 0) {
        var field = family == Family.MIXTRAL ? "intermediate_size" : "moe_intermediate_size";
        int dense = fields.count("first_k_dense_replace");
        refused.add(
            new Refusal(
                "experts",
                "%d experts of %d columns, in all layers%s, exchange as many tokens by all-to-all as the router decides; no GemmSpec has this pattern"
                    .formatted(
                        experts, fields.size(field), dense == 0 ? "" : " but the first " + dense)));
        int shared = fields.count("n_shared_experts");
        if (shared > 0) {
          refused.add(
              new Refusal(
                  "shared experts",
                  "%d of %d columns, beside the routed experts"
                      .formatted(shared, fields.size(field))));
        }
        if (dense == 0) {
          return;
        }
      }
      boolean bias = fields.flag("mlp_bias", false);
      int columns = fields.size("intermediate_size");
      divided("intermediate_size", columns);
      byColumns("fc1", 2L * columns, hidden, bias);
      byDepth("fc2", hidden, columns, bias);
    }

    /// A layer whose weight (`n` × `k`) is divided by columns of the output.
    private void byColumns(String name, long n, int k, boolean bias) {
      int own = tokens / cp;
      long input = (long) own * k;
      int columns = size(name, n);
      var forward = allGatherGemm(own, columns, k).dtype(dtype).transposedWeight();
      add(name, "_fprop", bias ? forward.bias() : forward);
      add(name, "_dgrad", besideAllGather(own, k, columns / tp, input).dtype(dtype));
      add(
          name,
          "_wgrad",
          besideReduceScatter(columns / tp, k, own, input).dtype(dtype).transposedInput());
      add(name, "_dgrad", gemmReduceScatter(own, k, columns).dtype(dtype));
    }

    /// A layer whose weight (`n` × `k`) is divided by the depth.
    private void byDepth(String name, int n, long k, boolean bias) {
      int own = tokens / cp;
      int depth = size(name, k);
      var forward = gemmReduceScatter(own, n, depth).dtype(dtype).transposedWeight();
      add(name, "_fprop", bias ? forward.bias() : forward);
      add(name, "_dgrad", allGatherGemm(own, depth, n).dtype(dtype).gatheredInput());
      refused.add(
          new Refusal(
              name + "_wgrad",
              "it multiplies the gradient that %s_dgrad gathered, so nothing is communicated"
                  .formatted(name)));
    }

    private int size(String name, long value) {
      if (value > Integer.MAX_VALUE) {
        throw new BraidException(
            "%s: the columns of %s must be at most %d but were %d; correct heads and head size"
                .formatted(fields.document(), name, Integer.MAX_VALUE, value));
      }
      return (int) value;
    }

    private void add(String name, String direction, GemmSpec spec) {
      operations.add(new Operation(name + direction, spec));
    }
  }
}
