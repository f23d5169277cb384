package braid.model;

import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;

/// The problem: which multiplication beside which communication, how large, in which types. It is
/// the same on every rank and independent of the tuning; that is [Overlap].
///
/// `m`, `n` and `k` are the sizes of `output (m × n) = input (m × k) · weight (k × n)`, of all
/// ranks together. The [Pattern] divides one or two of them; a rank holds its balanced part.
///
/// The result equals the unfused code quoted with each pattern, for every tuning:
///
/// - `times` returns the product in fp32, not rounded.
/// - `reduceScatter` and `allReduce` return the output's type, or BF16 if that is FP8
///   ([#sumDtype]). Each rank's part is rounded to it when it is sent; the sum is kept in fp32, in
///   the order of the ranks, and rounded once. Only [Method#RING] rounds it at every hop.
/// - `finish` computes in fp32 from its argument: an unrounded product, or a collective's rounded
///   sum. Every rank finishes its own output, in this order:
///
/// ```java
/// if (accumulate) value += output;     // this rank's, as it was before the run
/// if (bias) value += bias[column];
/// if (gelu) {
///   preActivation = value;             // rounded when it is stored
///   value = gelu(preActivation);       // of the rounded value
/// }
/// if (fp8) value *= 1 / outputScale;   // after the amax is taken
/// output = value;                      // rounded when it is stored; fp8 saturates
/// ```
///
/// A GPU may round a product to an output in 16 bits before it adds it to that output.
///
/// @param besideElements number of elements that all ranks together communicate beside the
///   multiplication; 0 if they communicate the multiplication's own data
/// @param dtype type of the input and of the gathered input
/// @param weightDtype type of the weight; see [#weight] for the pairs that backends multiply
/// @param outputDtype type of the output
public record GemmSpec(
    Pattern pattern,
    int m,
    int n,
    int k,
    long besideElements,
    DType dtype,
    DType weightDtype,
    DType outputDtype,
    Set<Feature> features)
    implements Problem {
  public static final DType DEFAULT_DTYPE = DType.FP32;

  /// Default type of the output of FP8 operands.
  public static final DType DEFAULT_FP8_OUTPUT = DType.BF16;

  /// Patterns of multiplication and communication.
  public enum Pattern {
    /// The input's rows are divided among the ranks, and the weight's columns. Every rank gathers
    /// all rows and multiplies them by its columns.
    ALL_GATHER_GEMM,
    /// The depth `k` is divided among the ranks. Every rank multiplies its part; the partial
    /// products are added, and every rank gets its part of the sum's rows.
    GEMM_REDUCE_SCATTER,
    /// The depth `k` is divided among the ranks. Every rank multiplies its part; the partial
    /// products are added, and every rank gets all of the sum.
    GEMM_ALL_REDUCE,
    /// Every rank multiplies `m` × `n` × `k` alone, while other data are gathered.
    GEMM_BESIDE_ALL_GATHER,
    /// Every rank multiplies `m` × `n` × `k` alone, while other data are added and divided among
    /// the ranks.
    GEMM_BESIDE_REDUCE_SCATTER;

    /// Returns true if other data than the multiplication's are communicated.
    public boolean beside() {
      return this == GEMM_BESIDE_ALL_GATHER || this == GEMM_BESIDE_REDUCE_SCATTER;
    }

    /// Returns true if partial products of several ranks are added.
    public boolean reduces() {
      return this == GEMM_REDUCE_SCATTER || this == GEMM_ALL_REDUCE;
    }

    @Override
    public String toString() {
      return lower(name());
    }
  }

  /// Options of a multiplication.
  public enum Feature {
    /// The input is stored as `k` × `m`, and so is the gathered input.
    TRANSPOSED_INPUT,
    /// The weight is stored as `n` × `k`.
    TRANSPOSED_WEIGHT,
    /// The result is added to what each rank's own output holds.
    ACCUMULATE,
    /// A bias is added once: one number per column of the output.
    BIAS,
    /// The output is GELU (its tanh form) of the result, which is kept as the pre-activation.
    GELU,
    /// The gathered input is a result too.
    GATHERED_INPUT;

    @Override
    public String toString() {
      return lower(name());
    }
  }

  public GemmSpec {
    positive("m", m);
    positive("n", n);
    positive("k", k);
    features =
        features.isEmpty() ? Set.of() : Collections.unmodifiableSet(EnumSet.copyOf(features));
    if (pattern.beside() != besideElements > 0) {
      throw new BraidException(
          "elements beside a %s must be %s but were %d"
              .formatted(pattern, pattern.beside() ? "1 or more" : "0", besideElements));
    }
    if (outputDtype.isFp8()) {
      checkFp8Output(dtype, weightDtype, features);
    }
    if (features.containsAll(List.of(Feature.ACCUMULATE, Feature.GELU))) {
      throw new BraidException(
          "accumulate and gelu exclude each other (the output would be added to its own activation);"
              + " leave one out");
    }
    if (features.contains(Feature.GATHERED_INPUT) && pattern != Pattern.ALL_GATHER_GEMM) {
      throw new BraidException(
          "%s gathers no input, so none can be handed out; leave out gatheredInput()"
              .formatted(pattern));
    }
  }

  private static void checkFp8Output(DType input, DType weight, Set<Feature> features) {
    if (!input.isFp8() || !weight.isFp8()) {
      throw new BraidException(
          "an fp8 output needs an fp8 input and weight but they are %s and %s; try output(%s), or dtype(%s) before it"
              .formatted(input, weight, DEFAULT_FP8_OUTPUT, DType.FP8_E4M3));
    }
    if (features.contains(Feature.ACCUMULATE)) {
      throw new BraidException(
          "accumulate adds to what the output holds, and fp8 holds too few digits to be added to; try output(%s)"
              .formatted(DEFAULT_FP8_OUTPUT));
    }
  }

  /// Gathers the input's rows from all ranks and multiplies them by this rank's columns:
  ///
  /// ```java
  /// var whole = allGather(input);
  /// return finish(times(whole, weight));
  /// ```
  public static GemmSpec allGatherGemm(int m, int n, int k) {
    return of(Pattern.ALL_GATHER_GEMM, m, n, k, 0);
  }

  /// Multiplies this rank's part of the depth, adds all ranks' products and keeps this rank's rows:
  ///
  /// ```java
  /// var partial = times(input, weight);
  /// return finish(reduceScatter(partial));
  /// ```
  public static GemmSpec gemmReduceScatter(int m, int n, int k) {
    return of(Pattern.GEMM_REDUCE_SCATTER, m, n, k, 0);
  }

  /// Multiplies this rank's part of the depth and adds all ranks' products:
  ///
  /// ```java
  /// var partial = times(input, weight);
  /// return finish(allReduce(partial));
  /// ```
  public static GemmSpec gemmAllReduce(int m, int n, int k) {
    return of(Pattern.GEMM_ALL_REDUCE, m, n, k, 0);
  }

  /// Multiplies alone while the ranks gather `elements` other numbers, of which each rank holds a
  /// part:
  ///
  /// ```java
  /// besideOutput = allGather(besideInput);
  /// return finish(times(input, weight));
  /// ```
  public static GemmSpec besideAllGather(int m, int n, int k, long elements) {
    return of(Pattern.GEMM_BESIDE_ALL_GATHER, m, n, k, elements);
  }

  /// Multiplies alone while the ranks add `elements` other numbers, of which each rank receives a
  /// part:
  ///
  /// ```java
  /// besideOutput = reduceScatter(besideInput);
  /// return finish(times(input, weight));
  /// ```
  public static GemmSpec besideReduceScatter(int m, int n, int k, long elements) {
    return of(Pattern.GEMM_BESIDE_REDUCE_SCATTER, m, n, k, elements);
  }

  private static GemmSpec of(Pattern pattern, int m, int n, int k, long besideElements) {
    return new GemmSpec(
        pattern, m, n, k, besideElements, DEFAULT_DTYPE, DEFAULT_DTYPE, DEFAULT_DTYPE, Set.of());
  }

  /// Sets the number of rows, `m`.
  public GemmSpec rows(int count) {
    return new GemmSpec(
        pattern, count, n, k, besideElements, dtype, weightDtype, outputDtype, features);
  }

  /// Sets the type of input, weight and output; [#input], [#weight] and [#output] change one of
  /// them afterwards. The output of FP8 operands is [#DEFAULT_FP8_OUTPUT].
  public GemmSpec dtype(DType other) {
    return types(other, other, other.isFp8() ? DEFAULT_FP8_OUTPUT : other);
  }

  /// Sets the type of the input and of the gathered input only.
  public GemmSpec input(DType other) {
    return types(other, weightDtype, outputDtype);
  }

  /// Sets the type of the weight only. The host multiplies every pair of types. CUDA multiplies FP8
  /// by FP8, FP32 by TF32 (as FP32) and other types only by themselves.
  public GemmSpec weight(DType other) {
    return types(dtype, other, outputDtype);
  }

  /// Sets the type of the output only. FP8 needs FP8 operands and an output scale; its sums, bias
  /// and pre-activation are [#sumDtype].
  public GemmSpec output(DType other) {
    return types(dtype, weightDtype, other);
  }

  /// Returns the type of the partial sums that ranks exchange, of bias and pre-activation: the
  /// output's, or BF16 if that is FP8.
  public DType sumDtype() {
    return outputDtype.sumType();
  }

  private GemmSpec types(DType input, DType weight, DType output) {
    return new GemmSpec(pattern, m, n, k, besideElements, input, weight, output, features);
  }

  /// Returns true if an operand is FP8, whose numbers need a scale.
  public boolean isScaled() {
    return dtype.isFp8() || weightDtype.isFp8();
  }

  /// Returns true if ranks do more with a sum than store it.
  public boolean finishesSum() {
    return has(Feature.ACCUMULATE) || has(Feature.BIAS) || has(Feature.GELU) || outputDtype.isFp8();
  }

  /// Stores the input as `k` × `m`, as a weight gradient needs it. In [Pattern#ALL_GATHER_GEMM]
  /// each rank's part is stored as `k` × its rows, and the gathered input as `k` × `m`: a rank's
  /// rows are columns of it, so chunks travel as rows with a stride.
  public GemmSpec transposedInput() {
    return with(Feature.TRANSPOSED_INPUT);
  }

  /// Stores the weight as `n` × `k`, as linear layers keep it.
  public GemmSpec transposedWeight() {
    return with(Feature.TRANSPOSED_WEIGHT);
  }

  /// Adds the result to this rank's output as it is before a run: `output += result`. Each rank
  /// adds to its own output, which may differ by rank even if all ranks get the same sum. Every run
  /// adds again.
  public GemmSpec accumulate() {
    return with(Feature.ACCUMULATE);
  }

  /// Adds a bias: one number per column, added once to the sum of all ranks' products, not to each
  /// of them.
  public GemmSpec bias() {
    return with(Feature.BIAS);
  }

  /// Keeps the result, bias included, as the pre-activation, rounded to the output's type, and
  /// applies GELU to that, in its tanh form.
  public GemmSpec gelu() {
    return with(Feature.GELU);
  }

  /// Keeps the whole gathered input after a run, this rank's own rows included.
  public GemmSpec gatheredInput() {
    return with(Feature.GATHERED_INPUT);
  }

  public boolean has(Feature feature) {
    return features.contains(feature);
  }

  private GemmSpec with(Feature feature) {
    var more = EnumSet.of(feature);
    more.addAll(features);
    return new GemmSpec(pattern, m, n, k, besideElements, dtype, weightDtype, outputDtype, more);
  }

  /// Returns the multiplications and additions of `m` × `n` × `k`.
  public double flops() {
    return 2.0 * m * n * k;
  }

  @Override
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("pattern", pattern.toString());
    columns.put("m", Integer.toString(m));
    columns.put("n", Integer.toString(n));
    columns.put("k", Integer.toString(k));
    columns.put("dtype", dtype.toString());
    if (weightDtype != dtype) {
      columns.put("weight", weightDtype.toString());
    }
    if (outputDtype != dtype) {
      columns.put("output", outputDtype.toString());
    }
    if (besideElements > 0) {
      columns.put("beside", Long.toString(besideElements));
    }
    if (!features.isEmpty()) {
      columns.put("features", featureNames());
    }
    return columns;
  }

  private String featureNames() {
    return features.stream().map(Feature::toString).collect(Collectors.joining("+"));
  }

  private static void positive(String name, int value) {
    if (value < 1) {
      throw new BraidException(
          "%s must be 1 or more but was %d; give the size of the whole problem"
              .formatted(name, value));
    }
  }

  private static String lower(String name) {
    return name.toLowerCase(Locale.ROOT).replace('_', '-');
  }

  @Override
  public String toString() {
    var text = new StringBuilder("%s m=%d n=%d k=%d %s".formatted(pattern, m, n, k, dtype));
    if (weightDtype != dtype) {
      text.append(" x ").append(weightDtype);
    }
    if (outputDtype != dtype) {
      text.append(" to ").append(outputDtype);
    }
    if (besideElements > 0) {
      text.append(" beside ").append(besideElements);
    }
    if (!features.isEmpty()) {
      text.append(' ').append(featureNames());
    }
    return text.toString();
  }
}
