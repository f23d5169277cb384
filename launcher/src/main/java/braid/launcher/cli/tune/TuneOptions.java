package braid.launcher.cli.tune;

import braid.launcher.Nearest;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Fused;
import braid.model.TokenLayout;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// Options that describe a problem, beside its sizes.
final class TuneOptions {
  private static final int DEFAULT_HEAD_SIZE = 128;

  @Option(
      names = "--dtype",
      paramLabel = "TYPE",
      description =
          "Type of all tensors: fp32, tf32, bf16, fp16, fp8_e4m3 or fp8_e5m2. Default: bf16.")
  private @Nullable String dtype;

  @Option(
      names = "--heads",
      paramLabel = "HEADS",
      description = "Attention: number of query heads, required.")
  private @Nullable Integer heads;

  @Option(
      names = "--kv-heads",
      paramLabel = "HEADS",
      description = "Attention: number of key and value heads. Default: the query heads.")
  private @Nullable Integer kvHeads;

  @Option(
      names = "--head-size",
      paramLabel = "SIZE",
      description = "Attention: numbers per head. Default: " + DEFAULT_HEAD_SIZE + ".")
  private @Nullable Integer headSize;

  @Option(
      names = "--keys",
      paramLabel = "KEYS",
      description =
          "Attention: tokens that are keys and values, if they are others than the queries."
              + " Default: the tokens of the sequence.")
  private @Nullable Integer keys;

  @Option(
      names = "--causal",
      description = "Attention: no token sees later ones; tokens are dealt in zigzag.")
  private boolean causal;

  @Option(
      names = "--fused",
      paramLabel = "TENSORS",
      description =
          "Attention: kv or qkv, the tensors that are columns of one tensor, or none. Default: none.")
  private @Nullable String fused;

  @Option(
      names = "--exchanged",
      paramLabel = "TYPE",
      description =
          "Attention: fp8_e4m3 to round key and value before they are exchanged. Default: the type of the attention.")
  private @Nullable String exchanged;

  @Option(names = "--backward", description = "Attention: its gradients instead.")
  private boolean backward;

  /// Refuses options of attention for another operation.
  void refuseAttention(String operation) {
    refuse("of attention but the operation is " + operation, ofAttention());
  }

  /// Refuses all options beside another one, which takes no operation.
  void refuseAll(String option) {
    refuse(
        "of an operation but %s was given".formatted(option),
        Stream.concat(Stream.of(dtype == null ? "" : "--dtype"), ofAttention()));
  }

  private Stream<String> ofAttention() {
    return Stream.of(
        heads == null ? "" : "--heads",
        kvHeads == null ? "" : "--kv-heads",
        headSize == null ? "" : "--head-size",
        keys == null ? "" : "--keys",
        causal ? "--causal" : "",
        fused == null ? "" : "--fused",
        exchanged == null ? "" : "--exchanged",
        backward ? "--backward" : "");
  }

  /// @param options names of the options that were given, and empty texts
  private static void refuse(String contradiction, Stream<String> options) {
    options
        .filter(name -> !name.isEmpty())
        .findFirst()
        .ifPresent(
            name -> {
              throw new BraidException("%s is %s; leave it out".formatted(name, contradiction));
            });
  }

  DType dtype() {
    if (dtype == null) {
      return DType.BF16;
    }
    return type(dtype);
  }

  private static DType type(String name) {
    try {
      return DType.parse(name);
    } catch (BraidException e) {
      var shortened =
          name.replaceFirst("(?i)^b(?:rain_?)?float", "bf").replaceFirst("(?i)^float", "fp");
      var names = Stream.of(DType.values()).map(DType::toString).toList();
      throw new BraidException(
          "%s; did you mean %s?".formatted(e.getMessage(), Nearest.to(shortened, names)), e);
    }
  }

  int heads() {
    if (heads == null) {
      throw new BraidException(
          "attention needs the number of its heads; for example braid tune attention 32768 --heads 32 --kv-heads 8");
    }
    return heads;
  }

  int kvHeads() {
    return kvHeads == null ? heads() : kvHeads;
  }

  int headSize() {
    return headSize == null ? DEFAULT_HEAD_SIZE : headSize;
  }

  /// Returns the number of keys, if it was given.
  OptionalInt keys() {
    return keys == null ? OptionalInt.empty() : OptionalInt.of(keys);
  }

  boolean isCausal() {
    return causal;
  }

  /// Layout of causal attention, which gives each rank as much work.
  TokenLayout layout() {
    return causal ? TokenLayout.ZIGZAG : AttentionSpec.DEFAULT_LAYOUT;
  }

  Fused fused() {
    if (fused == null) {
      return Fused.NONE;
    }
    return Stream.of(Fused.values())
        .filter(each -> each.toString().equals(fused))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "--fused must be kv, qkv or none but was `%s`; try qkv".formatted(fused)));
  }

  /// Returns the type in which key and value are exchanged.
  DType exchanged() {
    return exchanged == null ? dtype() : type(exchanged);
  }

  boolean isBackward() {
    return backward;
  }
}
