package braid.internal.pipeline;

import braid.DType;
import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.ProcessGroup;
import braid.internal.exchange.Rig;
import braid.internal.resource.Inspection;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import java.util.Optional;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// The unfused result that every way of a pipeline must come to: what [GemmSpec] says of each
/// pattern, as it is said there.
public final class Reference implements AutoCloseable {
  private final Plan plan;
  private final GemmSpec spec;
  private final ProcessGroup group;
  private final PlainCollectives plain;
  private final Inspection access;
  private final Matrix input;
  private final Matrix weight;
  private final Matrix besideInput;
  private final Matrix output;
  private final Optional<Matrix> preActivation;
  private Matrix besideOutput;
  private Matrix gathered;
  private double largestPartial;

  private Reference(Plan plan, ProcessGroup group, Rig.SymmetricSource symmetric) {
    this.plan = plan;
    this.spec = plan.spec;
    this.group = group;
    this.plain = new PlainCollectives(group, plan.rig.backend, symmetric);
    this.access = plan.rig.backend.access();
    this.input = plan.input();
    this.weight = plan.multiplication.weight();
    this.besideInput = plan.view(Part.BESIDE_INPUT).map(Reference::column).orElse(weight);
    this.besideOutput = besideInput;
    this.gathered = input;
    this.output = plain.matrix(spec.outputDtype(), plan.output.rows(), plan.output.columns());
    this.preActivation =
        plan.preActivation.map(
            kept -> plain.matrix(spec.outputDtype(), kept.rows(), kept.columns()));
    // What a run adds to.
    plain.keep(plan.output, output);
  }

  /// Keeps what a run would add to. All ranks call it, before the run that is to be compared.
  public static Reference before(Plan plan, ProcessGroup group, Rig.SymmetricSource symmetric) {
    return new Reference(plan, group, symmetric);
  }

  private static Matrix column(View view) {
    return Matrix.of(view.memory(), view.dtype(), Math.toIntExact(view.shape().getFirst()), 1);
  }

  /// Computes what should have come of the run and says what is wrong first; nothing where all is
  /// right. Without a tolerance it is as exact as the inputs allow. All ranks call it.
  public Optional<String> compare(@Nullable Tolerance given) {
    var _ = unfused();
    var tolerance = given == null ? fitting() : given;
    return differences(tolerance);
  }

  private Matrix unfused() {
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> allGatherGemm();
      case GEMM_REDUCE_SCATTER -> gemmReduceScatter();
      case GEMM_ALL_REDUCE -> gemmAllReduce();
      case GEMM_BESIDE_ALL_GATHER -> besideAllGather();
      case GEMM_BESIDE_REDUCE_SCATTER -> besideReduceScatter();
    };
  }

  private Matrix allGatherGemm() {
    var whole = allGather(input);
    return finish(times(whole, weight));
  }

  private Matrix gemmReduceScatter() {
    var partial = times(input, weight);
    return finish(reduceScatter(partial));
  }

  private Matrix gemmAllReduce() {
    var partial = times(input, weight);
    return finish(allReduce(partial));
  }

  private Matrix besideAllGather() {
    besideOutput = allGather(besideInput);
    return finish(times(input, weight));
  }

  private Matrix besideReduceScatter() {
    besideOutput = reduceScatter(besideInput);
    return finish(times(input, weight));
  }

  private Matrix times(Matrix left, Matrix right) {
    return plain.times(left, right, plan.scale());
  }

  private Matrix allGather(Matrix mine) {
    int total = spec.pattern().beside() ? (int) spec.besideElements() : spec.m();
    gathered = plain.allGather(mine, total);
    return gathered;
  }

  private Matrix reduceScatter(Matrix mine) {
    measure(mine);
    return plain.reduceScatter(mine, spec.outputDtype());
  }

  private Matrix allReduce(Matrix mine) {
    measure(mine);
    return plain.allReduce(mine, spec.outputDtype());
  }

  private void measure(Matrix partial) {
    double mine = access.range(partial.dtype(), partial.bytes()).largest();
    for (double each : group.gather(mine)) {
      largestPartial = Math.max(largestPartial, each);
    }
  }

  /// Bias, activation and rounding, and what the output held before.
  private Matrix finish(Matrix sum) {
    plain.copy(
        sum,
        output,
        new Epilogue(
            1,
            spec.has(Feature.ACCUMULATE),
            plan.multiplication.bias(),
            preActivation,
            Optional.empty()));
    return output;
  }

  private Tolerance fitting() {
    return Tolerance.fitting(
        spec,
        group.size(),
        plan.scale(),
        largestPartial,
        access.range(spec.dtype(), (spec.pattern().beside() ? input : gathered).segment()),
        access.range(spec.dtype(), weight.segment()));
  }

  private Optional<String> differences(Tolerance tolerance) {
    int columns = output.columns();
    return first(Part.OUTPUT, output, tolerance, i -> plan.origin(i / columns))
        .or(
            () ->
                preActivation.flatMap(
                    kept ->
                        first(Part.PRE_ACTIVATION, kept, tolerance, i -> plan.origin(i / columns))))
        .or(
            () ->
                spec.has(Feature.GATHERED_INPUT)
                    ? first(
                        Part.GATHERED_INPUT,
                        gathered,
                        Tolerance.EXACT,
                        i -> plan.origin(i / spec.k()))
                    : Optional.empty())
        .or(
            () ->
                plan instanceof GemmBeside beside
                    ? first(
                        Part.BESIDE_OUTPUT, besideOutput, beside(tolerance), beside::besideOrigin)
                    : Optional.empty());
  }

  /// What is gathered is copied; what is added up is added in the same order, but for the ring.
  private Tolerance beside(Tolerance given) {
    return spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER
        ? Tolerance.EXACT
        : Tolerance.ofSum(spec.outputDtype(), group.size(), largestPartial, given);
  }

  /// Compares a part of the plan with what it should be.
  private Optional<String> first(
      Part part, Matrix expected, Tolerance tolerance, IntFunction<String> origin) {
    var got = plan.view(part).orElseThrow();
    DType dtype = got.dtype();
    var wanted = expected.bytes();
    int i =
        Math.toIntExact(
            access.firstDifference(
                expected.dtype(), wanted, dtype, got.memory(), tolerance.atol(), tolerance.rtol()));
    if (i < 0) {
      return Optional.empty();
    }
    return Optional.of(
        "rank %d: %s[%s] must be %s %s but was %s; first wrong is %s of %s, %s"
            .formatted(
                plan.place().rank(),
                part,
                got.shape().size() == 1
                    ? Integer.toString(i)
                    : i / expected.columns() + ", " + i % expected.columns(),
                dtype.round(access.get(expected.dtype(), wanted, i)),
                tolerance,
                access.get(dtype, got.memory(), i),
                origin.apply(i),
                spec,
                plan.how()));
  }

  @Override
  public void close() {
    plain.close();
  }
}
