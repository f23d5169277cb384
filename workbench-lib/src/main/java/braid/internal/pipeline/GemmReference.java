package braid.internal.pipeline;

import braid.internal.resource.ErrorBound;
import braid.internal.resource.Inspection;
import braid.internal.resource.Interval;
import braid.internal.resource.Range;
import braid.internal.resource.SymmetricSource;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.internal.work.Precision;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.schedule.Part;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Computes the unfused result that every tuning of a pipeline must reach: the code that [GemmSpec]
/// shows for each pattern, with an interval around each element that contains every correct value.
/// docs/verification.md derives the interval.
final class GemmReference implements Reference {
  /// Factor by which sums of magnitudes may be too small, since they are rounded.
  private static final double MAGNITUDES_ROUNDED = 1.01;

  private final Plan plan;
  private final GemmSpec spec;
  private final Peers peers;
  private final PlainCollectives plain;
  private final Inspection access;
  private final Matrix input;
  private final Matrix weight;
  private final Matrix besideInput;
  private final Matrix initialOutput;
  private final Optional<Matrix> bias;
  private @Nullable Bounded besideOutput;
  private @Nullable Matrix gathered;
  private @Nullable Products products;
  private double confidence;
  private Differences differences = new Differences();

  /// Products of this rank and their allowed deviation; empty if they are exact on all ranks.
  private record Products(Matrix values, Optional<Deviation> deviation) {}

  /// Allowed deviation of products.
  ///
  /// @param sizes products of the factors' magnitudes
  /// @param repetition factor by which equal products enlarge a standard deviation
  private record Deviation(Matrix sizes, ProductError error, double repetition) {
    ErrorBound widening(double confidence) {
      return error.widening(Math.min(confidence * repetition, ProductError.ELEMENT_CONFIDENCE));
    }
  }

  /// A result in fp32 and the interval around it.
  private record Bounded(Matrix expected, Matrix low, Matrix high) {
    static Bounded exact(Matrix values) {
      return new Bounded(values, values, values);
    }

    boolean isExact() {
      return expected.equals(low);
    }

    /// Applies a step to the result and to both bounds: roundings and sums are monotonic, so an
    /// interval remains one.
    Bounded map(UnaryOperator<Matrix> step) {
      var result = step.apply(expected);
      return isExact() ? exact(result) : new Bounded(result, step.apply(low), step.apply(high));
    }

    Interval interval(boolean activated, float outScale) {
      return new Interval(
          expected.dtype(), expected.bytes(), low.bytes(), high.bytes(), activated, outScale);
    }
  }

  GemmReference(Plan plan, Peers peers, SymmetricSource symmetric) {
    this.plan = plan;
    this.spec = (GemmSpec) plan.problem();
    this.peers = peers;
    this.plain = new PlainCollectives(peers, plan, symmetric);
    this.access = plan.backend().access();
    this.input = plan.matrix(Part.INPUT);
    this.weight = plan.matrix(Part.WEIGHT);
    this.besideInput = plan.view(Part.BESIDE_INPUT).map(GemmReference::column).orElse(weight);
    this.bias = plan.view(Part.BIAS).map(view -> wide(view.memory()));
    // A run may add to its output.
    var output = plan.matrix(Part.OUTPUT);
    this.initialOutput = plain.matrix(spec.outputDtype(), output.rows(), output.columns());
    plain.copyLocal(output, initialOutput);
  }

  private static Matrix column(View view) {
    return Matrix.of(view.memory(), view.dtype(), Math.toIntExact(view.shape().getFirst()), 1);
  }

  private Matrix wide(MemorySegment stored) {
    int columns = plan.matrix(Part.OUTPUT).columns();
    var wide = plain.matrix(DType.FP32, 1, columns);
    plain.copy(Matrix.of(stored, spec.sumDtype(), 1, columns), wide);
    return wide;
  }

  /// Without a tolerance all values together must also be within the bound of their RMS.
  @Override
  public Optional<String> compare(@Nullable Tolerance given, Differences found) {
    differences = found;
    if (given != null) {
      return differences(unfused(), given);
    }
    confidence = ProductError.ELEMENT_CONFIDENCE;
    var each = unfused();
    var outside = outside(each);
    if (each.isExact()) {
      return outside;
    }
    confidence = ProductError.rmsConfidence((long) initialOutput.rows() * initialOutput.columns());
    var together = unfused();
    return outside.or(() -> systematic(together));
  }

  private Bounded unfused() {
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> allGatherGemm();
      case GEMM_REDUCE_SCATTER -> gemmReduceScatter();
      case GEMM_ALL_REDUCE -> gemmAllReduce();
      case GEMM_BESIDE_ALL_GATHER -> besideAllGather();
      case GEMM_BESIDE_REDUCE_SCATTER -> besideReduceScatter();
    };
  }

  private Bounded allGatherGemm() {
    var whole = allGather(input);
    return finish(times(whole, weight));
  }

  private Bounded gemmReduceScatter() {
    var partial = times(input, weight);
    return finish(reduceScatter(partial));
  }

  private Bounded gemmAllReduce() {
    var partial = times(input, weight);
    return finish(allReduce(partial));
  }

  private Bounded besideAllGather() {
    besideOutput = allGather(besideInput);
    return finish(times(input, weight));
  }

  private Bounded besideReduceScatter() {
    besideOutput = reduceScatter(besideInput);
    return finish(times(input, weight));
  }

  private Bounded times(Bounded left, Matrix right) {
    return times(left.expected(), right);
  }

  /// Multiplies once, and bounds the products by the current confidence.
  private Bounded times(Matrix left, Matrix right) {
    var result = products;
    if (result == null) {
      result = multiply(left, right);
      products = result;
    }
    var values = result.values();
    if (result.deviation().isEmpty()) {
      return Bounded.exact(values);
    }
    var deviation = result.deviation().get();
    var low = plain.matrix(DType.FP32, values.rows(), values.columns());
    var high = plain.matrix(DType.FP32, values.rows(), values.columns());
    plain.copyLocal(values, low);
    plain.copyLocal(values, high);
    access.widen(
        low.bytes(), high.bytes(), deviation.sizes().bytes(), deviation.widening(confidence));
    return new Bounded(values, low, high);
  }

  private Products multiply(Matrix left, Matrix right) {
    float scale = plan.scales().product();
    var values = plain.times(left, right, scale);
    if (confidence == 0) {
      return new Products(values, Optional.empty());
    }
    var rows = range(left);
    var columns = range(right);
    var error = ProductError.of(precision(), left.columns(), scale, rows, columns);
    double largest = scale * left.columns() * rows.largest() * columns.largest();
    // To sums of several ranks, addends are added in one order.
    if (!spec.pattern().reduces()) {
      for (var each : addends()) {
        var addend = range(each);
        error = error.and(addend);
        largest += addend.largest();
      }
    }
    // All ranks bound their products or none does, because they sum each other's.
    boolean exact = largest <= error.exactSize();
    for (double each : peers.gather().apply(exact ? 1.0 : 0.0)) {
      exact &= each == 1;
    }
    return new Products(
        values,
        exact
            ? Optional.empty()
            : Optional.of(
                new Deviation(
                    whole(plain.times(sizes(left), sizes(right), scale), true),
                    error,
                    Repetition.of(access, left, right))));
  }

  private Precision precision() {
    return plan.backend().precision(spec.dtype(), spec.weightDtype());
  }

  private List<Matrix> addends() {
    return Stream.concat(
            spec.has(Feature.ACCUMULATE) ? Stream.of(initialOutput) : Stream.empty(), bias.stream())
        .toList();
  }

  private Range range(Matrix matrix) {
    return access.range(matrix.dtype(), stored(matrix));
  }

  /// Returns the magnitudes of a matrix's numbers, in the same layout.
  private Matrix sizes(Matrix matrix) {
    var sizes = plain.matrix(matrix.dtype(), matrix.rows(), matrix.columns());
    access.sizes(matrix.dtype(), stored(matrix), sizes.segment());
    return new Matrix(
        sizes.segment(),
        matrix.dtype(),
        matrix.rows(),
        matrix.columns(),
        matrix.stride(),
        matrix.transposed());
  }

  private static MemorySegment stored(Matrix matrix) {
    return matrix
        .segment()
        .asSlice(0, (long) matrix.rows() * matrix.columns() * matrix.dtype().bytes());
  }

  private Bounded allGather(Matrix mine) {
    var whole = gathered;
    if (whole == null) {
      int total = spec.pattern().beside() ? (int) spec.besideElements() : spec.m();
      whole = plain.allGather(mine, total);
      gathered = whole;
    }
    return Bounded.exact(whole);
  }

  /// Adds once: the numbers beside a multiplication do not change.
  private Bounded reduceScatter(Matrix mine) {
    var sum = besideOutput;
    return sum == null ? reduceScatter(Bounded.exact(mine)) : sum;
  }

  private Bounded reduceScatter(Bounded mine) {
    return sum(mine, each -> plain.reduceScatter(each, spec.sumDtype()));
  }

  private Bounded allReduce(Bounded mine) {
    return sum(mine, each -> plain.allReduce(each, spec.sumDtype()));
  }

  /// Sums the parts of all ranks. A library adds them in an order of its own and may round after
  /// each addition, so of three or more parts its sum lies in an interval. One that multiplies may
  /// add parts that it has not rounded.
  private Bounded sum(Bounded parts, UnaryOperator<Matrix> adding) {
    var sums = parts.map(adding);
    int ranks = plan.place().size();
    if (!plan.libraryAdds() || (ranks <= 2 && !plan.libraryMultiplies())) {
      return sums;
    }
    var magnitudes = wide(adding.apply(sizes(parts.expected())));
    var low = wide(sums.low());
    var high = wide(sums.high());
    boolean integers = parts.isExact() && range(parts.expected()).integers();
    access.widen(
        low.bytes(), high.bytes(), magnitudes.bytes(), additions(ranks, spec.sumDtype(), integers));
    return new Bounded(wide(sums.expected()), low, high);
  }

  /// Returns by how much a sum of rounded additions in any order may differ from the reference, by
  /// the sum of magnitudes: each addition, and the reference itself, rounds by at most half a unit
  /// in the last place.
  static ErrorBound additions(int parts, DType type, boolean integers) {
    return new ErrorBound(
        (float) (parts * type.epsilon() / 2 * MAGNITUDES_ROUNDED),
        Float.MIN_NORMAL,
        integers ? (float) (2 / type.epsilon()) : -1,
        false);
  }

  /// Returns a copy in fp32.
  private Matrix wide(Matrix values) {
    var copy = plain.matrix(DType.FP32, values.rows(), values.columns());
    plain.copy(values, copy);
    return copy;
  }

  /// Adds the bias and the initial output.
  private Bounded finish(Bounded sums) {
    boolean rounds =
        precision().roundsProducts()
            && spec.has(Feature.ACCUMULATE)
            && !spec.pattern().reduces()
            && !spec.outputDtype().isStoredAsFp32();
    return (rounds ? roundedOrNot(sums) : sums).map(each -> whole(each, false));
  }

  /// Widens products that a library may round to 16 bits before it adds them to the output, by that
  /// rounding.
  private Bounded roundedOrNot(Bounded products) {
    var range = range(products.expected());
    boolean integers = products.isExact() && range.integers();
    var rounding = additions(1, spec.outputDtype(), integers);
    if (integers && range.largest() <= rounding.exact()) {
      return products;
    }
    var low = wide(products.low());
    var high = wide(products.high());
    access.widen(low.bytes(), wide(low).bytes(), sizes(low).bytes(), rounding);
    access.widen(wide(high).bytes(), high.bytes(), sizes(high).bytes(), rounding);
    return new Bounded(products.expected(), low, high);
  }

  /// Returns sums plus all addends, or magnitudes plus the addends' magnitudes.
  private Matrix whole(Matrix sums, boolean sizes) {
    if (addends().isEmpty() || (sizes && spec.pattern().reduces())) {
      return sums;
    }
    var whole = plain.matrix(DType.FP32, sums.rows(), sums.columns());
    boolean accumulates = spec.has(Feature.ACCUMULATE);
    if (accumulates) {
      plain.copy(sizes ? sizes(initialOutput) : initialOutput, whole);
    }
    var line = bias.map(each -> (sizes ? sizes(each) : each).segment());
    plain.copy(
        sums, whole, new Epilogue(1, accumulates, line, Optional.empty(), Optional.empty(), 1));
    return whole;
  }

  private Matrix rounded(Matrix values, Optional<Matrix> preActivation) {
    var rounded = plain.matrix(spec.outputDtype(), values.rows(), values.columns());
    plain.copy(
        values,
        rounded,
        new Epilogue(
            1, false, Optional.empty(), preActivation, Optional.empty(), plan.scales().stored()));
    return rounded;
  }

  /// Describes the first value that is not within its bound.
  private Optional<String> outside(Bounded result) {
    return first(Part.OUTPUT, output(result), this::origin)
        .or(
            () ->
                spec.has(Feature.GELU)
                    ? first(Part.PRE_ACTIVATION, result.interval(false, 1), this::origin)
                    : Optional.empty())
        .or(() -> communicated(null));
  }

  /// GELU is of rounded numbers.
  private Interval output(Bounded result) {
    boolean activated = spec.has(Feature.GELU);
    var values = activated ? result.map(this::kept) : result;
    return values.interval(activated, plan.scales().stored());
  }

  /// Returns the pre-activation as it is stored.
  private Matrix kept(Matrix values) {
    var kept = plain.matrix(spec.sumDtype(), values.rows(), values.columns());
    plain.copy(values, kept);
    return kept;
  }

  /// Describes the first wrong value of data that is only communicated: it must be exact, except
  /// for sums with a given tolerance and sums of a library.
  private Optional<String> communicated(@Nullable Tolerance given) {
    var whole = gathered;
    if (spec.has(Feature.GATHERED_INPUT) && whole != null) {
      return first(
          Part.GATHERED_INPUT,
          exactly(whole.asStored()),
          i -> plan.origin(Part.GATHERED_INPUT, whole.transposed() ? i % spec.m() : i / spec.k()));
    }
    var beside = besideOutput;
    if (spec.pattern().beside() && beside != null) {
      return given == null || spec.pattern() == Pattern.GEMM_BESIDE_ALL_GATHER
          ? first(Part.BESIDE_OUTPUT, beside.interval(false, 1), this::besideOrigin)
          : first(Part.BESIDE_OUTPUT, beside.expected(), given, this::besideOrigin);
    }
    return Optional.empty();
  }

  private String origin(int index) {
    return plan.origin(Part.OUTPUT, index / initialOutput.columns());
  }

  private String besideOrigin(int index) {
    return plan.origin(Part.BESIDE_OUTPUT, index);
  }

  private static Interval exactly(Matrix values) {
    return Bounded.exact(values).interval(false, 1);
  }

  private Optional<String> first(Part part, Interval expected, IntFunction<String> origin) {
    var got = plan.view(part).orElseThrow();
    var judgement = access.judge(expected, got.dtype(), got.memory());
    long first = judgement.first();
    if (first < 0) {
      long count = got.memory().byteSize() / got.dtype().bytes();
      if (expected.low().equals(expected.expected()) && !expected.activated()) {
        differences.addExact(count);
      } else {
        differences.add(
            count,
            judgement.largest(),
            expected.at(access, judgement.largestAt()).rounded(got.dtype()).reach());
      }
      return Optional.empty();
    }
    int i = Math.toIntExact(first);
    var bounds = expected.at(access, i).rounded(got.dtype());
    double reach = bounds.reach();
    return Optional.of(
        wrong(
            part,
            i,
            bounds.expected(),
            reach > 0 ? String.format(Locale.ROOT, "within %.3g", reach) : "exactly",
            origin));
  }

  private String wrong(Part part, int i, float expected, String bound, IntFunction<String> origin) {
    var got = plan.view(part).orElseThrow();
    var shape = got.shape();
    return "rank %d: %s[%s] must be %s %s but was %s; first wrong is %s of %s, %s"
        .formatted(
            plan.place().rank(),
            part,
            shape.size() == 1
                ? Integer.toString(i)
                : i / shape.getLast() + ", " + i % shape.getLast(),
            expected,
            bound,
            access.get(got.dtype(), got.memory(), i),
            origin.apply(i),
            spec,
            plan.source());
  }

  /// Describes an RMS of all values that is larger than roundings explain, though each value is
  /// within its bound. For GELU its input is compared.
  private Optional<String> systematic(Bounded result) {
    boolean activated = spec.has(Feature.GELU);
    var part = activated ? Part.PRE_ACTIVATION : Part.OUTPUT;
    var got = plan.view(part).orElseThrow();
    var expected = activated ? result.interval(false, 1) : output(result);
    var judgement = access.judge(expected, got.dtype(), got.memory());
    if (judgement.squares() <= judgement.allowed()) {
      return Optional.empty();
    }
    double count = (double) initialOutput.rows() * initialOutput.columns();
    return Optional.of(
        String.format(
            Locale.ROOT,
            "rank %d: %s is off by %.3g in the RMS of its %.0f values but roundings explain at most"
                + " %.3g; each value is within its own bound, so all of them are a little wrong; %s,"
                + " %s",
            plan.place().rank(),
            part,
            Math.sqrt(judgement.squares() / count),
            count,
            Math.sqrt(judgement.allowed() / count),
            spec,
            plan.source()));
  }

  /// Describes the first value that is not within the given tolerance.
  private Optional<String> differences(Bounded result, Tolerance tolerance) {
    var sums = result.expected();
    var kept = spec.has(Feature.GELU) ? Optional.of(kept(sums)) : Optional.<Matrix>empty();
    return first(Part.OUTPUT, rounded(sums, kept), tolerance, this::origin)
        .or(() -> kept.flatMap(each -> first(Part.PRE_ACTIVATION, each, tolerance, this::origin)))
        .or(() -> communicated(tolerance));
  }

  private Optional<String> first(
      Part part, Matrix expected, Tolerance tolerance, IntFunction<String> origin) {
    var got = plan.view(part).orElseThrow();
    var expectedBytes = expected.bytes();
    int i =
        Math.toIntExact(
            access.firstDifference(
                expected.dtype(),
                expectedBytes,
                got.dtype(),
                got.memory(),
                tolerance.atol(),
                tolerance.rtol()));
    if (i < 0) {
      var judgement = access.judge(exactly(expected), got.dtype(), got.memory());
      double position = access.get(expected.dtype(), expectedBytes, judgement.largestAt());
      differences.add(
          (long) expected.rows() * expected.columns(),
          judgement.largest(),
          tolerance.allowed(position));
      return Optional.empty();
    }
    return Optional.of(
        wrong(
            part,
            i,
            got.dtype().round(access.get(expected.dtype(), expectedBytes, i)),
            tolerance.toString(),
            origin));
  }

  @Override
  public void close() {
    plain.close();
  }
}
