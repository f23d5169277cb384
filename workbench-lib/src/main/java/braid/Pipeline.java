package braid;

import braid.internal.backend.Stream;
import braid.internal.pipeline.Peers;
import braid.internal.pipeline.Reference;
import braid.internal.pipeline.Tolerance;
import braid.internal.pipeline.Tuning;
import braid.internal.pipeline.View;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Scales;
import braid.model.Verification;
import braid.model.VerificationFailed;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/// A problem and a tuning, built once and ready to run many times:
///
/// ```java
/// try (var pipe = Pipeline.on(group).gemm(spec).overlap(how).build()) {
///   pipe.verify();
///   var profile = pipe.profile(50);
/// }
/// ```
///
/// The factory methods of [GemmSpec] show the result as unfused code; the overlap never changes it.
///
/// `build()` fills the inputs with small integers, so that the pipeline can be verified at once;
/// overwrite them with your own data. All ranks of the group build, run and measure a pipeline
/// together.
public final class Pipeline extends ChainLink {
  private final Builder recipe;

  private Pipeline(Builder recipe, PlanLease lease) {
    super(lease);
    this.recipe = recipe;
  }

  /// Begins a pipeline on a group.
  public static Builder on(ProcessGroup group) {
    Given.check("group", group);
    group.checkMember();
    return new Builder(group);
  }

  /// Collects the parts of a pipeline; each is set at most once.
  public static final class Builder {
    private final ProcessGroup group;
    private @Nullable GemmSpec spec;
    private @Nullable Overlap how;
    private @Nullable Schedule schedule;
    private boolean replayed;
    private @Nullable MemoryKind kind;
    private @Nullable Scales scales;
    private final Bindings bindings = new Bindings();

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// Sets the problem; required unless a schedule is set, which has one.
    public Builder gemm(GemmSpec problem) {
      Given.check("problem", problem);
      SetOnce.check("gemm", spec);
      spec = problem;
      return this;
    }

    /// Sets the tuning; [Overlap#defaults()] by default, with fewer splits if there are fewer rows.
    public Builder overlap(Overlap tuning) {
      Given.check("tuning", tuning);
      SetOnce.check("overlap", how);
      how = tuning;
      return this;
    }

    /// Sets a schedule of your own for the problem, instead of an overlap. It is checked before any
    /// step runs, and must be the same on all ranks.
    public Builder schedule(Schedule own) {
      Given.check("own", own);
      SetOnce.check("schedule", schedule);
      schedule = own;
      return this;
    }

    /// Records an iteration of a schedule of your own once and replays it: as a graph if the
    /// backend has graphs. Overlaps have their own `replay()`.
    public Builder replay() {
      SetOnce.check("replay", replayed ? "replayed" : null);
      replayed = true;
      return this;
    }

    /// Sets the kind of its symmetric memory; by default `BRAID_SYMMETRIC_MEMORY`, else the
    /// backend's choice.
    public Builder memory(MemoryKind symmetric) {
      Given.check("symmetric", symmetric);
      SetOnce.check("memory", kind);
      kind = symmetric;
      return this;
    }

    /// Sets the factors by which stored numbers of input and weight are multiplied to get their
    /// values: required for FP8, and only there.
    public Builder scales(float input, float weight) {
      return scales(new Scales(input, weight));
    }

    /// Sets the scales of a problem with an FP8 output: the stored number is the result × (1 /
    /// `output`), limited to the largest number of the type.
    public Builder scales(float input, float weight, float output) {
      return scales(new Scales(input, weight, output));
    }

    private Builder scales(Scales all) {
      SetOnce.check("scales", scales);
      scales = all;
      return this;
    }

    /// Sets the tensor to read the input from, instead of memory that the pipeline allocates. It
    /// must have the type and shape of [Pipeline#input] on this rank, and keeps its contents. A
    /// symmetric tensor may have the shape of the rank with the most rows instead; the pipeline
    /// then uses its first rows. The caller closes it, after the pipeline.
    ///
    /// A pipeline works on the tensor itself if its schedule allows it: a tensor that other ranks
    /// read or write must be symmetric. Otherwise the pipeline copies within the iteration, and the
    /// profile shows the copy. One pipeline's output may be another one's input:
    /// `input(first.output())`, or one tensor that both are bound to.
    public Builder input(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.INPUT, tensor);
    }

    /// Sets the tensor to read the weight from; see [#input].
    public Builder weight(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.WEIGHT, tensor);
    }

    /// Sets the tensor to read the bias from; see [#input]. It may have any shape with as many
    /// numbers.
    public Builder bias(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.BIAS, tensor);
    }

    /// Sets the tensor to write the output to, or to add it to if the problem accumulates; see
    /// [#input].
    public Builder output(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.OUTPUT, tensor);
    }

    /// Sets the tensor to write the pre-activation to; see [#input].
    public Builder preActivation(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.PRE_ACTIVATION, tensor);
    }

    /// Sets the tensor to gather the input into; see [#input].
    public Builder gatheredInput(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.GATHERED_INPUT, tensor);
    }

    /// Sets the tensor to communicate beside the multiplication; see [#input]. It may have any
    /// shape with as many numbers.
    public Builder besideInput(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.BESIDE_INPUT, tensor);
    }

    /// Sets the tensor for the result of the communication beside the multiplication; see [#input].
    /// It may have any shape with as many numbers.
    public Builder besideOutput(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.BESIDE_OUTPUT, tensor);
    }

    private Builder bind(Part part, PipelineTensor tensor) {
      bindings.add(part, tensor);
      return this;
    }

    /// Returns a copy, for another pipeline.
    private Builder copy() {
      var same = new Builder(group);
      same.spec = spec;
      same.how = how;
      same.schedule = schedule;
      same.replayed = replayed;
      same.kind = kind;
      same.scales = scales;
      same.bindings.addAll(bindings);
      return same;
    }

    /// Builds the pipeline, on all ranks of the group together. A failed build leaves no resources
    /// behind.
    public Pipeline build() {
      group.checkMember();
      if (schedule != null) {
        return build(
            OwnSchedules.problem(schedule, spec, how, group), Tuning.of(schedule, replayed));
      }
      if (spec == null) {
        throw new BraidException(
            "gemm is missing; call gemm(GemmSpec.allGatherGemm(m, n, k)) before build()");
      }
      if (replayed) {
        throw new BraidException(
            "replay() is for a schedule of your own but none was set; call overlap(....replay())");
      }
      var overlap = how == null ? Feasibility.byDefault(spec, group) : how;
      Feasibility.check(spec, overlap, group);
      return build(spec, Tuning.of(overlap));
    }

    private Pipeline build(GemmSpec problem, Tuning tuning) {
      var scaled = Scales.of(problem, scales);
      Feasibility.checkTypes(problem, group.context().backend().kind());
      var recipe = copy();
      var lease =
          PlanLease.take(
              "build a pipeline",
              "pipeline ",
              group,
              problem,
              tuning,
              kind,
              recipe.bindings,
              ", " + scaled);
      lease.plan().scale(scaled);
      var pipeline = new Pipeline(recipe, lease);
      group.own(pipeline);
      return pipeline;
    }
  }

  public GemmSpec spec() {
    return lease.plan().gemm();
  }

  /// Returns the tuning; throws if the pipeline has a schedule of your own.
  public Overlap overlap() {
    return lease
        .plan()
        .tuning()
        .overlap()
        .orElseThrow(
            () ->
                new BraidException(
                    "%s has a schedule of its own and no overlap; see schedule()".formatted(this)));
  }

  /// Builds a pipeline of the same problem on the same tensors of the caller, with another tuning.
  /// All ranks call it together.
  public Pipeline with(Overlap tuning) {
    Given.check("tuning", tuning);
    checkOpen();
    var other = recipe.copy();
    other.spec = spec();
    other.how = tuning;
    other.schedule = null;
    other.replayed = false;
    return other.build();
  }

  /// Returns true if its problem and group allow the tuning.
  boolean isFeasible(Overlap tuning) {
    try {
      Feasibility.check(spec(), tuning, group());
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  /// Returns true if the pipeline has this tuning.
  boolean isTuned(Overlap tuning) {
    return lease.plan().tuning().overlap().filter(tuning::equals).isPresent();
  }

  /// Returns this rank's part of the input. Write it between runs; peers may read it during a run.
  /// Its shape is this rank's rows × `k` if the input is gathered, `m` × this rank's part of `k` if
  /// products are added, and `m` × `k` otherwise; with `transposedInput()` the other way round.
  public Tensor input() {
    return lease.open(Part.INPUT);
  }

  /// Returns this rank's part of the weight: `k` × this rank's columns if the input is gathered,
  /// this rank's part of `k` × `n` if products are added, and `k` × `n` otherwise; with
  /// `transposedWeight()` the other way round.
  public Tensor weight() {
    return lease.open(Part.WEIGHT);
  }

  /// Returns the bias: one number per column of this rank, in the output's type (BF16 if that is
  /// FP8). Ranks with the same columns must have the same bias, since it is added once.
  public Tensor bias() {
    return open(Part.BIAS, "bias()");
  }

  /// Returns this rank's part of the output of the last run: `m` × this rank's columns if the input
  /// is gathered, this rank's rows × `n` if a sum is scattered, and `m` × `n` otherwise.
  public Tensor output() {
    return lease.open(Part.OUTPUT);
  }

  /// Returns a rank's part of the output; only for outputs in symmetric memory. Before you read
  /// another rank's part, make sure that it has been written, by a barrier for example.
  public Tensor output(int rank) {
    checkOpen();
    if (rank < 0 || rank >= group().size()) {
      throw new BraidException(
          "outputs are on ranks 0..%d of group `%s` but rank %d's was requested"
              .formatted(group().size() - 1, group().name(), rank));
    }
    return lease
        .plan()
        .outputOn(rank)
        .map(lease::tensor)
        .orElseThrow(
            () ->
                new BraidException(
                    "%s keeps its output in rank-local memory; call".formatted(this)
                        + " outputInSymmetricMemory() in its overlap"));
  }

  /// Returns the values before the GELU, of the last run, in the output's type (BF16 if that is
  /// FP8).
  public Tensor preActivation() {
    return open(Part.PRE_ACTIVATION, "gelu()");
  }

  /// Returns the input of all ranks, `m` × `k`, as gathered by the last run; with
  /// `transposedInput()` the other way round.
  public Tensor gatheredInput() {
    if (!spec().has(Feature.GATHERED_INPUT)) {
      throw missing(Part.GATHERED_INPUT, "gatheredInput()");
    }
    return lease.open(Part.GATHERED_INPUT);
  }

  /// Returns this rank's part of the tensor that is communicated beside the multiplication.
  public Tensor besideInput() {
    return open(Part.BESIDE_INPUT, "besideAllGather or besideReduceScatter");
  }

  /// Returns the result of the communication beside the multiplication, of the last run.
  public Tensor besideOutput() {
    return open(Part.BESIDE_OUTPUT, "besideAllGather or besideReduceScatter");
  }

  /// Returns the largest absolute value of the output on all ranks in the last run, before it was
  /// divided by the output's scale and rounded; choose the next scale by it. Only for FP8. All
  /// ranks call it together.
  public float amax() {
    checkOpen();
    var kept =
        lease
            .plan()
            .amax()
            .orElseThrow(
                () ->
                    new BraidException(
                        spec().isScaled()
                            ? "the schedule has no buffer `%s`; add it and let multiplications raise it"
                                .formatted(Part.AMAX)
                            : "an amax is kept for fp8 but the type is %s; take output() itself"
                                .formatted(spec().dtype())));
    double largest = 0;
    for (double each :
        group().gather((double) lease.plan().backend().access().get(DType.FP32, kept, 0))) {
      largest = Math.max(largest, each);
    }
    return (float) largest;
  }

  /// Changes the scales from the next run on. All ranks call it together with the same values.
  public void scales(float input, float weight) {
    scales(new Scales(input, weight));
  }

  /// Changes the scales of a problem with an FP8 output.
  public void scales(float input, float weight, float output) {
    scales(new Scales(input, weight, output));
  }

  private void scales(Scales all) {
    checkOpen();
    var checked = Scales.of(spec(), all);
    group().agree("scales of " + this, checked.toString());
    lease.plan().scale(checked);
    recipe.scales = all;
  }

  private Tensor open(Part part, String need) {
    if (lease.plan().view(part).isEmpty()) {
      throw missing(part, need);
    }
    return lease.open(part);
  }

  private BraidException missing(Part part, String need) {
    return new BraidException(
        "`%s` has no %s; make the problem with %s".formatted(spec(), part, need));
  }

  /// Runs iterations in flight; `before` is called before each is enqueued, with the number of
  /// iterations that have ended.
  long[] inFlight(int count, IntConsumer before) {
    return lease.inFlight(count, before);
  }

  /// Streams that iterations run on; iterations in flight are joined on the first.
  List<Stream> streams() {
    return lease.plan().streams();
  }

  /// Runs once and compares each rank's part with the unfused reference. Each value has its own
  /// bound, from the types, the roundings of the method, the depth, and the magnitudes of its row
  /// and column. With integers whose sums are exact in fp32, such as the first contents, every bit
  /// must agree. The RMS of all errors is bounded too. A NaN is correct where one is expected.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  @Override
  public Verification verify() {
    return verify(null, () -> {});
  }

  /// Runs once and compares with the unfused reference: every error must be at most `atol` + `rtol`
  /// × |expected|. A NaN is correct where one is expected.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public Verification verify(double atol, double rtol) {
    return verify(new Tolerance(atol, rtol), () -> {});
  }

  /// Verifies the results after `changed` has run, by which tests alter them.
  Verification verify(@Nullable Tolerance tolerance, Runnable changed) {
    return lease.verify(progress -> verify(tolerance, changed, progress));
  }

  private Verification verify(
      @Nullable Tolerance tolerance, Runnable changed, Consumer<String> progress) {
    progress.accept("running once");
    // Marks values that a run leaves unwritten.
    lease.plan().results().stream()
        .filter(view -> !(isOutput(view) && spec().has(Feature.ACCUMULATE)))
        .forEach(view -> lease.tensor(view).fill(Float.NaN));
    try (var reference =
        Reference.before(
            lease.plan(),
            new Peers(group().place(), group()::barrier, group()::gather),
            group().symmetric(lease.kind()))) {
      run();
      changed.run();
      progress.accept("computing the unfused reference and comparing");
      return lease.together(differences -> reference.compare(tolerance, differences));
    }
  }

  private boolean isOutput(View view) {
    return lease.plan().view(Part.OUTPUT).filter(view::equals).isPresent();
  }
}
