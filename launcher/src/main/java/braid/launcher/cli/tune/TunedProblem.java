package braid.launcher.cli.tune;

import braid.launcher.Nearest;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Problem;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A problem with the Java that makes it in a notebook.
///
/// @param spec expression that makes the problem
/// @param methods methods to search among; empty for all
record TunedProblem(Problem problem, String spec, List<Method> methods) {
  private static final String ATTENTION = "attention";

  /// Returns the names that [#of] accepts.
  static List<String> names() {
    return Stream.concat(Stream.of(Pattern.values()).map(Pattern::toString), Stream.of(ATTENTION))
        .toList();
  }

  /// @param name pattern of a GEMM, or `attention`
  /// @param words m, n, k, and the elements beside; of attention, the sequence
  static TunedProblem of(String name, List<String> words, TuneOptions options) {
    var sizes = words.stream().map(TunedProblem::size).toList();
    if (name.equals(ATTENTION)) {
      requireSizes(name, sizes, List.of("SEQUENCE"));
      return attention(sizes.getFirst(), options);
    }
    var pattern =
        Stream.of(Pattern.values())
            .filter(each -> each.toString().equals(name))
            .findFirst()
            .orElseThrow(
                () ->
                    new BraidException(
                        "the operation must be one of %s but was `%s`; did you mean %s?"
                            .formatted(
                                String.join(", ", names()), name, Nearest.to(name, names()))));
    options.refuseAttention(name);
    requireSizes(
        name,
        sizes,
        pattern.beside() ? List.of("M", "N", "K", "ELEMENTS") : List.of("M", "N", "K"));
    return gemm(pattern, sizes, options);
  }

  private static int size(String word) {
    try {
      return Integer.parseInt(word);
    } catch (NumberFormatException e) {
      throw new BraidException(
          "a size must be a whole number up to %d but was `%s`; try 8192"
              .formatted(Integer.MAX_VALUE, word),
          e);
    }
  }

  private static void requireSizes(String name, List<Integer> sizes, List<String> names) {
    if (sizes.size() != names.size()) {
      throw new BraidException(
          "%s must have the sizes %s but has %s; for example braid tune %s"
              .formatted(
                  name,
                  String.join(" ", names),
                  sizes.isEmpty()
                      ? "none"
                      : String.join(" ", sizes.stream().map(String::valueOf).toList()),
                  example(name, names.size())));
    }
  }

  private static String example(String name, int sizes) {
    return name
        + Stream.of(" 8192", " 28672", " 8192", " 1048576")
            .limit(sizes)
            .collect(Collectors.joining());
  }

  private static TunedProblem gemm(Pattern pattern, List<Integer> sizes, TuneOptions options) {
    int m = sizes.get(0);
    int n = sizes.get(1);
    int k = sizes.get(2);
    var spec =
        switch (pattern) {
          case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(m, n, k);
          case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(m, n, k);
          case GEMM_ALL_REDUCE -> GemmSpec.gemmAllReduce(m, n, k);
          case GEMM_BESIDE_ALL_GATHER -> GemmSpec.besideAllGather(m, n, k, sizes.get(3));
          case GEMM_BESIDE_REDUCE_SCATTER -> GemmSpec.besideReduceScatter(m, n, k, sizes.get(3));
        };
    return of(spec.dtype(options.dtype()));
  }

  /// Returns the problem of a GEMM.
  static TunedProblem of(GemmSpec spec) {
    var call =
        switch (spec.pattern()) {
          case ALL_GATHER_GEMM -> "allGatherGemm";
          case GEMM_REDUCE_SCATTER -> "gemmReduceScatter";
          case GEMM_ALL_REDUCE -> "gemmAllReduce";
          case GEMM_BESIDE_ALL_GATHER -> "besideAllGather";
          case GEMM_BESIDE_REDUCE_SCATTER -> "besideReduceScatter";
        };
    var text =
        new StringBuilder("GemmSpec.%s(%d, %d, %d".formatted(call, spec.m(), spec.n(), spec.k()));
    if (spec.pattern().beside()) {
      text.append(", ").append(spec.besideElements());
    }
    text.append(").dtype(DType.%s)".formatted(spec.dtype().name()));
    for (var feature : spec.features()) {
      text.append(
          switch (feature) {
            case TRANSPOSED_INPUT -> ".transposedInput()";
            case TRANSPOSED_WEIGHT -> ".transposedWeight()";
            case ACCUMULATE -> ".accumulate()";
            case BIAS -> ".bias()";
            case GELU -> ".gelu()";
            case GATHERED_INPUT -> ".gatheredInput()";
          });
    }
    return new TunedProblem(spec, text.toString(), List.of());
  }

  private static TunedProblem attention(int sequence, TuneOptions options) {
    int heads = options.heads();
    int size = options.headSize();
    int kvHeads = options.kvHeads();
    var spec = AttentionSpec.of(sequence, heads, size).kvHeads(kvHeads).dtype(options.dtype());
    var text =
        "AttentionSpec.of(%d, %d, %d).kvHeads(%d).dtype(DType.%s)"
            .formatted(sequence, heads, size, kvHeads, options.dtype().name());
    if (options.keys().isPresent()) {
      int keys = options.keys().getAsInt();
      spec = spec.keys(keys);
      text += ".keys(%d)".formatted(keys);
    }
    if (options.isCausal()) {
      spec = spec.causal().layout(options.layout());
      text += ".causal().layout(TokenLayout." + options.layout().name() + ")";
    }
    if (options.fused() != Fused.NONE) {
      spec = spec.fused(options.fused());
      text += ".fused(Fused." + options.fused().name() + ")";
    }
    if (options.exchanged() != options.dtype()) {
      spec = spec.exchanged(options.exchanged());
      text += ".exchanged(DType." + options.exchanged().name() + ")";
    }
    return options.isBackward()
        ? new TunedProblem(spec.backward(), text + ".backward()", List.of())
        : new TunedProblem(spec, text, List.of());
  }

  /// Returns the problem with other methods to search among.
  TunedProblem among(List<Method> some) {
    return new TunedProblem(problem, spec, some);
  }

  /// Returns the lines of a cell that tunes it and keeps the decision.
  ///
  /// @param seconds budget
  List<String> cell(long seconds) {
    var among =
        methods.stream().map(method -> "Method." + method.name()).collect(Collectors.joining(", "));
    return List.of(
        "var spec = %s;\n".formatted(spec),
        "Tuner.on(world).%s(spec).search()%s.budget(Duration.ofSeconds(%d)).decide()"
            .formatted(
                problem instanceof GemmSpec ? "gemm" : "attention",
                among.isEmpty() ? "" : ".methods(%s)".formatted(among),
                seconds));
  }
}
