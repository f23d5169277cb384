package braid;

import braid.internal.backend.Stream;
import braid.internal.pipeline.PlanSource;
import braid.internal.pipeline.Tolerance;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.Auto;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Profile;
import braid.model.Scales;
import braid.model.Timing;
import braid.model.Tuning;
import braid.model.Verification;
import braid.model.VerificationFailed;
import braid.natives.kernels.Drawn;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
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
/// The problem is a [GemmSpec], an [AttentionSpec] or its gradients, an [AttentionGradientSpec];
/// each shows its result as unfused code, which no tuning changes. A schedule of your own may take
/// the place of the tuning. Each tensor of the problem has a method of its name, which refuses
/// other problems.
///
/// `build()` fills the inputs with small integers, so that the pipeline can be verified at once;
/// overwrite them with your own data. All ranks of the group build, run and measure a pipeline
/// together, alone or as a link of a [Chain].
public final class Pipeline implements Chainable, AutoCloseable {
  private static final List<Part> OF_FORWARD =
      List.of(Part.QUERY, Part.KEY, Part.VALUE, Part.KV, Part.QKV, Part.OUTPUT, Part.LSE);

  private final Builder recipe;
  private final PlanLease lease;

  private Pipeline(Builder recipe, PlanLease lease) {
    this.recipe = recipe;
    this.lease = lease;
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
    private @Nullable Problem problem;
    private @Nullable Tuning tuning;
    private @Nullable Auto automatic;
    private @Nullable Schedule schedule;
    private @Nullable MemoryKind kind;
    private @Nullable Scales scales;
    private final Bindings bindings = new Bindings();

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// Sets the problem to a GEMM with its communication. A problem is required unless a schedule
    /// is set, which has one.
    public Builder gemm(GemmSpec spec) {
      return problem("gemm", spec);
    }

    /// Sets the problem to attention over a sequence whose tokens are divided among the ranks.
    public Builder attention(AttentionSpec spec) {
      return problem("attention", spec);
    }

    /// Sets the problem to the gradients of attention; [#backward] binds the tensors of the forward
    /// pass too.
    public Builder attention(AttentionGradientSpec spec) {
      return problem("attention", spec);
    }

    private Builder problem(String name, Problem spec) {
      Given.check("spec", spec);
      SetOnce.check(name, problem);
      problem = spec;
      return this;
    }

    /// Sets the problem to the gradients of an attention, unless it is set, and reads the query,
    /// key, value, output and log-sum-exp of this attention, in place. Run it before the backward
    /// pass, and close it after.
    public Builder backward(Pipeline forward) {
      Given.check("forward", forward);
      if (!(forward.problem() instanceof AttentionSpec spec)) {
        throw new BraidException(
            "backward needs the pipeline of an attention but %s was given".formatted(forward));
      }
      if (!forward.group().equals(group)) {
        throw new BraidException(
            "the forward pass must be on group `%s` but is on `%s`; begin with Pipeline.on(...) of that group"
                .formatted(group.name(), forward.group().name()));
      }
      if (problem == null) {
        problem = spec.backward();
      } else if (!(problem instanceof AttentionGradientSpec gradient
          && gradient.forward().equals(spec))) {
        throw new BraidException(
            "the problem is `%s` but the forward pass is `%s`; leave attention(...) out"
                .formatted(problem, spec));
      }
      OF_FORWARD.stream()
          .filter(part -> forward.lease.plan().view(part).isPresent())
          .forEach(part -> forward.lease.bind(part, bindings));
      return this;
    }

    /// Sets the tuning: an [Overlap] of a GEMM, [Overlap#defaults()] by default with fewer splits
    /// if there are fewer rows; or a [ContextParallel][braid.model.ContextParallel] of attention,
    /// `ring()` by default.
    public Builder overlap(Tuning chosen) {
      Given.check("tuning", chosen);
      requireNoTuning();
      tuning = chosen;
      return this;
    }

    /// Takes the tuning that was decided for this problem on this machine:
    /// `overlap(Overlap.auto())`. If there is none, [#build] measures, decides and keeps the
    /// decision. A line says what it took.
    public Builder overlap(Auto chosen) {
      Given.check("auto", chosen);
      requireNoTuning();
      automatic = chosen;
      return this;
    }

    private void requireNoTuning() {
      SetOnce.check("overlap", tuning);
      SetOnce.check("overlap", automatic);
    }

    /// Sets a schedule of your own for the problem, instead of an overlap. It is checked before any
    /// step runs, and must be the same on all ranks.
    public Builder schedule(Schedule own) {
      Given.check("own", own);
      SetOnce.check("schedule", schedule);
      schedule = own;
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
    public Builder input(Tensor tensor) {
      return bind(Part.INPUT, tensor);
    }

    /// Sets the tensor to read the weight from; see [#input].
    public Builder weight(Tensor tensor) {
      return bind(Part.WEIGHT, tensor);
    }

    /// Sets the tensor to read the bias from; see [#input]. It may have any shape with as many
    /// numbers.
    public Builder bias(Tensor tensor) {
      return bind(Part.BIAS, tensor);
    }

    /// Sets the tensor to write the output to, or to add it to if the problem accumulates; see
    /// [#input]. The gradients of attention read it: it holds the output of the forward pass.
    public Builder output(Tensor tensor) {
      return bind(Part.OUTPUT, tensor);
    }

    /// Sets the tensor to write the pre-activation to; see [#input].
    public Builder preActivation(Tensor tensor) {
      return bind(Part.PRE_ACTIVATION, tensor);
    }

    /// Sets the tensor to gather the input into; see [#input].
    public Builder gatheredInput(Tensor tensor) {
      return bind(Part.GATHERED_INPUT, tensor);
    }

    /// Sets the tensor to communicate beside the multiplication; see [#input]. It may have any
    /// shape with as many numbers.
    public Builder besideInput(Tensor tensor) {
      return bind(Part.BESIDE_INPUT, tensor);
    }

    /// Sets the tensor for the result of the communication beside the multiplication; see [#input].
    /// It may have any shape with as many numbers.
    public Builder besideOutput(Tensor tensor) {
      return bind(Part.BESIDE_OUTPUT, tensor);
    }

    /// Sets the tensor to read the query from; see [#input]. If heads are divided among ranks,
    /// other ranks access all tensors of the attention.
    public Builder query(Tensor tensor) {
      return bind(Part.QUERY, tensor);
    }

    /// Sets the tensor to read the key from; see [#input]. Other ranks read it.
    public Builder key(Tensor tensor) {
      return bind(Part.KEY, tensor);
    }

    /// Sets the tensor to read the value from; see [#input]. Other ranks read it.
    public Builder value(Tensor tensor) {
      return bind(Part.VALUE, tensor);
    }

    /// Sets the tensor to read the fused key and value from; see [#input]. Other ranks read it.
    public Builder kv(Tensor tensor) {
      return bind(Part.KV, tensor);
    }

    /// Sets the tensor to read the fused query, key and value from; see [#input]. Other ranks read
    /// it.
    public Builder qkv(Tensor tensor) {
      return bind(Part.QKV, tensor);
    }

    /// Sets the tensor to write the log-sum-exp to; see [#input]. The gradients read it.
    public Builder lse(Tensor tensor) {
      return bind(Part.LSE, tensor);
    }

    /// Sets the tensor to read the output's gradient from; see [#input].
    public Builder outputGradient(Tensor tensor) {
      return bind(Part.OUTPUT_GRADIENT, tensor);
    }

    /// Sets the tensor to write the query's gradient to; see [#input].
    public Builder queryGradient(Tensor tensor) {
      return bind(Part.QUERY_GRADIENT, tensor);
    }

    /// Sets the tensor to write the key's gradient to; see [#input].
    public Builder keyGradient(Tensor tensor) {
      return bind(Part.KEY_GRADIENT, tensor);
    }

    /// Sets the tensor to write the value's gradient to; see [#input].
    public Builder valueGradient(Tensor tensor) {
      return bind(Part.VALUE_GRADIENT, tensor);
    }

    /// Sets the tensor to write the fused gradients of key and value to; see [#input].
    public Builder kvGradient(Tensor tensor) {
      return bind(Part.KV_GRADIENT, tensor);
    }

    /// Sets the tensor to write the fused gradients of query, key and value to; see [#input].
    public Builder qkvGradient(Tensor tensor) {
      return bind(Part.QKV_GRADIENT, tensor);
    }

    private Builder bind(Part part, Tensor tensor) {
      Given.check("tensor", tensor);
      bindings.add(part, tensor);
      return this;
    }

    /// Returns a copy, for another pipeline.
    private Builder copy() {
      var same = new Builder(group);
      same.problem = problem;
      same.tuning = tuning;
      same.schedule = schedule;
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
            OwnSchedules.problem(schedule, problem, automatic == null ? tuning : automatic, group),
            PlanSource.of(schedule));
      }
      var spec = problem;
      if (spec == null) {
        throw new BraidException(
            "the problem is missing; call gemm(GemmSpec.allGatherGemm(m, n, k)) or attention(AttentionSpec.of(sequence, heads, headSize)) before build()");
      }
      var chosen = chosen(spec);
      Feasibility.check(spec, chosen, group);
      return build(spec, PlanSource.of(chosen));
    }

    private Tuning chosen(Problem spec) {
      if (automatic != null) {
        return AutoTuning.of(group, spec, kind).tuning(automatic);
      }
      return tuning == null
          ? Feasibility.byDefault(spec, group)
          : Feasibility.grouped(tuning, group);
    }

    private Pipeline build(Problem spec, PlanSource source) {
      var settings = "";
      var scaled = Scales.NONE;
      switch (spec) {
        case GemmSpec gemm -> {
          Feasibility.checkTypes(gemm, group.context().backend().kind());
          scaled = Scales.of(gemm, scales);
          settings = ", " + scaled;
        }
        case AttentionSpec _ -> refuseScales(spec);
        case AttentionGradientSpec _ -> {
          refuseScales(spec);
          requireForward();
        }
      }
      var recipe = copy();
      var lease = PlanLease.take(group, spec, source, kind, recipe.bindings, settings);
      lease.plan().scale(scaled);
      var pipeline = new Pipeline(recipe, lease);
      group.own(pipeline);
      return pipeline;
    }

    private void refuseScales(Problem spec) {
      if (scales != null) {
        throw new BraidException(
            "scales are for fp8 but the type of `%s` is %s; leave them out"
                .formatted(spec, spec.dtype()));
      }
    }

    private void requireForward() {
      for (var part : List.of(Part.LSE, Part.OUTPUT)) {
        if (!bindings.has(part)) {
          throw new BraidException(
              "%s is missing; call backward(attention), or %s(tensor) with the %s of the forward pass, before build()"
                  .formatted(part, part, part));
        }
      }
    }
  }

  @Override
  public ProcessGroup group() {
    return lease.group();
  }

  public Problem problem() {
    return lease.plan().problem();
  }

  /// Returns the tuning; throws if the pipeline has a schedule of your own.
  public Tuning tuning() {
    return lease
        .plan()
        .source()
        .tuning()
        .orElseThrow(
            () ->
                new BraidException(
                    "%s has a schedule of its own and no tuning; see schedule()".formatted(this)));
  }

  /// Returns the schedule: the steps of every rank.
  public Schedule schedule() {
    return lease.plan().schedule();
  }

  /// Builds a pipeline of the same problem on the same tensors of the caller, with another tuning.
  /// All ranks call it together.
  public Pipeline with(Tuning tuning) {
    Given.check("tuning", tuning);
    checkOpen();
    var other = recipe.copy();
    other.problem = problem();
    other.tuning = tuning;
    other.schedule = null;
    return other.build();
  }

  /// Returns true if its problem and group allow the tuning.
  boolean isFeasible(Tuning tuning) {
    try {
      Feasibility.check(problem(), Feasibility.grouped(tuning, group()), group());
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  /// Returns true if the pipeline has this tuning.
  boolean isTuned(Tuning tuning) {
    return lease.plan().source().tuning().filter(tuning::equals).isPresent();
  }

  /// Returns a tensor of the problem on this rank. Write inputs between runs; other ranks may read
  /// them during a run.
  public TensorView tensor(Part part) {
    Given.check("part", part);
    if (lease.plan().view(part).isEmpty()
        || (part == Part.GATHERED_INPUT
            && !(problem() instanceof GemmSpec spec && spec.has(Feature.GATHERED_INPUT)))) {
      throw missing(part);
    }
    return lease.open(part);
  }

  private BraidException missing(Part part) {
    var remedy =
        switch (part) {
          case BIAS -> "bias()";
          case PRE_ACTIVATION -> "gelu()";
          case GATHERED_INPUT -> "gatheredInput()";
          case BESIDE_INPUT, BESIDE_OUTPUT -> "besideAllGather or besideReduceScatter";
          default -> "";
        };
    return new BraidException(
        "`%s` has no %s; %s"
            .formatted(
                problem(),
                part,
                problem() instanceof GemmSpec && !remedy.isEmpty()
                    ? "make the problem with " + remedy
                    : "it has "
                        + lease.plan().views().keySet().stream()
                            .map(Part::toString)
                            .collect(Collectors.joining(", "))));
  }

  /// Returns this rank's part of the input: its rows × `k` if the input is gathered, `m` × its part
  /// of `k` if products are added, and `m` × `k` otherwise; with `transposedInput()` the other way
  /// round.
  public TensorView input() {
    return tensor(Part.INPUT);
  }

  /// Returns this rank's part of the weight: `k` × its columns if the input is gathered, its part
  /// of `k` × `n` if products are added, and `k` × `n` otherwise; with `transposedWeight()` the
  /// other way round.
  public TensorView weight() {
    return tensor(Part.WEIGHT);
  }

  /// Returns the bias: one number per column of this rank, in the output's type (BF16 if that is
  /// FP8). Ranks with the same columns must have the same bias, since it is added once.
  public TensorView bias() {
    return tensor(Part.BIAS);
  }

  /// Returns this rank's part of the output of the last run: `m` × its columns if the input is
  /// gathered, its rows × `n` if a sum is scattered, and `m` × `n` otherwise. Of attention, the
  /// output of its tokens; the gradients read it.
  public TensorView output() {
    return tensor(Part.OUTPUT);
  }

  /// Returns a rank's part of the output; only for outputs in symmetric memory. Before you read
  /// another rank's part, make sure that it has been written, by a barrier for example.
  public TensorView output(int rank) {
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
  public TensorView preActivation() {
    return tensor(Part.PRE_ACTIVATION);
  }

  /// Returns the input of all ranks, `m` × `k`, as gathered by the last run; with
  /// `transposedInput()` the other way round.
  public TensorView gatheredInput() {
    return tensor(Part.GATHERED_INPUT);
  }

  /// Returns this rank's part of the tensor that is communicated beside the multiplication.
  public TensorView besideInput() {
    return tensor(Part.BESIDE_INPUT);
  }

  /// Returns the result of the communication beside the multiplication, of the last run.
  public TensorView besideOutput() {
    return tensor(Part.BESIDE_OUTPUT);
  }

  /// Returns the query of this rank's tokens: a row per token, in the order of the layout.
  public TensorView query() {
    return tensor(Part.QUERY);
  }

  /// Returns the key of this rank's tokens.
  public TensorView key() {
    return tensor(Part.KEY);
  }

  /// Returns the value of this rank's tokens.
  public TensorView value() {
    return tensor(Part.VALUE);
  }

  /// Returns key and value of this rank's tokens, if they are fused: a row per token of `kvHeads` ×
  /// `headSize` numbers of the key, then as many of the value.
  public TensorView kv() {
    return tensor(Part.KV);
  }

  /// Returns query, key and value of this rank's tokens, if they are fused: a row per token of
  /// `heads` × `headSize` numbers of the query, then the columns of [#kv].
  public TensorView qkv() {
    return tensor(Part.QKV);
  }

  /// Returns the log-sum-exp of the scores of this rank's tokens, of the last run: a number per
  /// head, in FP32. The gradients read it.
  public TensorView lse() {
    return tensor(Part.LSE);
  }

  /// Returns the gradient of the output of this rank's tokens.
  public TensorView outputGradient() {
    return tensor(Part.OUTPUT_GRADIENT);
  }

  /// Returns the gradient of the query of this rank's tokens, of the last run.
  public TensorView queryGradient() {
    return tensor(Part.QUERY_GRADIENT);
  }

  /// Returns the gradient of the key of this rank's tokens, of the last run: the sum over the
  /// queries of all ranks, and over the heads that share it.
  public TensorView keyGradient() {
    return tensor(Part.KEY_GRADIENT);
  }

  /// Returns the gradient of the value of this rank's tokens, of the last run; see [#keyGradient].
  public TensorView valueGradient() {
    return tensor(Part.VALUE_GRADIENT);
  }

  /// Returns the gradients of the last run of fused key and value, in the columns of [#kv].
  public TensorView kvGradient() {
    return tensor(Part.KV_GRADIENT);
  }

  /// Returns the gradients of the last run of fused query, key and value, in the columns of [#qkv].
  public TensorView qkvGradient() {
    return tensor(Part.QKV_GRADIENT);
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
                        problem() instanceof GemmSpec spec && spec.isScaled()
                            ? "the schedule has no buffer `%s`; add it and let multiplications raise it"
                                .formatted(Part.AMAX)
                            : "an amax is kept for fp8 but the type is %s; take output() itself"
                                .formatted(problem().dtype())));
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
    if (!(problem() instanceof GemmSpec spec)) {
      throw new BraidException(
          "scales are for fp8 but %s has none; leave them out".formatted(this));
    }
    var checked = Scales.of(spec, all);
    group().agree("scales of " + this, checked.toString());
    lease.plan().scale(checked);
    recipe.scales = all;
  }

  /// Runs one iteration and waits for its end on this rank. Then the results are in this rank's
  /// memory, and no other rank accesses this memory for the iteration any more.
  public void run() {
    run(0);
  }

  /// Starts one iteration and returns at once. This rank works on meanwhile, and awaits it later;
  /// see [Running].
  public Running start() {
    return lease.start();
  }

  /// @param iteration number of the iteration in its spans
  void run(int iteration) {
    lease.run(iteration);
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the backend's default
  /// form: [Timing#BACK_TO_BACK] on GPUs, [Timing#LATENCY] on the host.
  public long[] time(int iterations) {
    return time(iterations, group().context().backend().timing());
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the given form.
  public long[] time(int iterations, Timing form) {
    return lease.time(iterations, form);
  }

  /// Runs the iterations and returns the launch overhead of each: the nanoseconds that this rank's
  /// thread took to enqueue it. An iteration cannot be shorter than that, however fast its work is.
  public long[] timeEnqueuing(int iterations) {
    return lease.timeEnqueuing(iterations);
  }

  /// Runs the iterations one at a time and returns this rank's spans on the clock of the group's
  /// rank 0. The front receives the profile too. Some more iterations run unprofiled before and
  /// after these, so that the profile can report the cost of profiling.
  public Profile profile(int iterations) {
    return lease.profile(iterations);
  }

  /// Runs iterations in flight; `before` is called before each is enqueued, with the number of
  /// iterations that have ended.
  long[] inFlight(int count, IntConsumer before) {
    return lease.inFlight(count, before);
  }

  /// Fills the inputs that are the pipeline's with drawn numbers, and its results with zeros.
  void draw(Drawn numbers) {
    lease.draw(numbers);
  }

  /// Streams that iterations run on; iterations in flight are joined on the first.
  List<Stream> streams() {
    return lease.plan().streams();
  }

  /// Runs once and compares each rank's results with a reference that does not depend on the
  /// schedule. Each value has its own bound.
  ///
  /// A GEMM is compared with the unfused reference. Bounds follow from the types, the roundings of
  /// the method, the depth, and the magnitudes of row and column. With integers whose sums are
  /// exact in fp32, such as the first contents, every bit must agree. The RMS of all errors is
  /// bounded too. A NaN is correct where one is expected.
  ///
  /// Attention and its gradients are compared with those of the whole sequence in double precision,
  /// the gradients by the output and log-sum-exp of the forward pass. Bounds follow from the
  /// roundings of fp32 and of the type. That takes about `flops()` plain operations of the host,
  /// five times as many for gradients.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public Verification verify() {
    return verify(null, () -> {});
  }

  /// Runs once and compares with the reference: every error must be at most `atol` + `rtol` ×
  /// |expected|. A NaN is correct where one is expected.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public Verification verify(double atol, double rtol) {
    return verify(new Tolerance(atol, rtol), () -> {});
  }

  /// Verifies the results after `changed` has run, by which tests alter them.
  Verification verify(@Nullable Tolerance tolerance, Runnable changed) {
    return lease.verify(tolerance, changed);
  }

  void checkOpen() {
    lease.checkOpen();
  }

  PlanLease lease() {
    return lease;
  }

  /// Closes the pipeline; its views become invalid. The plan is kept until the group is closed, for
  /// the next pipeline of the same problem and tuning. Closing twice is harmless, and no rank waits
  /// for another.
  @Override
  public void close() {
    group().disown(this);
    lease.close();
  }

  @Override
  public String toString() {
    return lease.toString();
  }
}
