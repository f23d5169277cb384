package braid;

import braid.internal.backend.Stream;
import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Peers;
import braid.internal.pipeline.Plan;
import braid.internal.pipeline.PlanCache;
import braid.internal.pipeline.Reference;
import braid.internal.pipeline.Tolerance;
import braid.internal.pipeline.Tuning;
import braid.internal.pipeline.View;
import braid.internal.report.progress.Progress;
import braid.internal.resource.Access;
import braid.internal.resource.Lifetime;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Scales;
import braid.model.Timing;
import braid.model.VerificationFailed;
import braid.natives.profiling.NvtxRange;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/// A problem and a way to solve it, set up and ready to run as often as wanted:
///
/// ```java
/// try (var pipe = Pipeline.on(group).gemm(spec).overlap(how).build()) {
///   pipe.verify();
///   var profile = pipe.profile(50);
/// }
/// ```
///
/// What it computes is said, as unfused code, where [GemmSpec] makes the problem; the overlap never
/// changes it.
///
/// What a run reads is filled with small integers when it is built, so that it can be verified at
/// once; write your own over them if you like. Building, running and measuring are done by all
/// ranks of the group together.
public final class Pipeline implements AutoCloseable {
  private static final Progress.Task VERIFYING =
      new Progress.Task("verifying", "verified", "steps");

  private final ProcessGroup group;
  private final PlanCache cache;
  private final PlanCache.Key key;
  private final Plan plan;
  private final Iterations.Member member;
  private final Iterations iterations;
  private final Bindings bindings;
  private final Builder recipe;

  /// Of the views handed out: the plan, and its memory, may go on to another pipeline.
  private final Lifetime views = new Lifetime();

  private boolean closed;

  private Pipeline(Builder recipe, PlanCache cache, PlanCache.Key key, Plan plan) {
    this.recipe = recipe;
    this.group = recipe.group;
    this.cache = cache;
    this.key = key;
    this.plan = plan;
    this.bindings = recipe.bindings;
    this.member = new Iterations.Member(group, plan, this::toString);
    this.iterations = new Iterations(group, List.of(List.of(member)), what(), this::toString);
    for (var part : plan.views().keySet()) {
      if (!plan.isBound(part)) {
        FirstContents.fill(part, tensor(part), group.rank());
      }
    }
  }

  /// Begins a pipeline on that group.
  public static Builder on(ProcessGroup group) {
    group.checkMember();
    return new Builder(group);
  }

  /// Collects what a pipeline is made of; each thing is said at most once.
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

    /// The problem; required, but where a schedule has it.
    public Builder gemm(GemmSpec problem) {
      once("gemm", spec);
      spec = problem;
      return this;
    }

    /// The tuning; [Overlap#defaults()] where it is not said, in fewer pieces where there are not
    /// as many rows.
    public Builder overlap(Overlap tuning) {
      once("overlap", how);
      how = tuning;
      return this;
    }

    /// A schedule of your own for the problem, instead of an overlap. It is checked before anything
    /// runs, and must be the same on all ranks.
    public Builder schedule(Schedule own) {
      once("schedule", schedule);
      schedule = own;
      return this;
    }

    /// Records an iteration of a schedule of your own once, and replays it: a graph, where the
    /// backend has them. An overlap has a `replay()` of its own.
    public Builder replay() {
      once("replay", replayed ? "replayed" : null);
      replayed = true;
      return this;
    }

    /// What its symmetric memory is made of; where it is not said, `BRAID_SYMMETRIC_MEMORY`
    /// decides, else the backend.
    public Builder memory(MemoryKind what) {
      once("memory", kind);
      kind = what;
      return this;
    }

    /// What stored numbers of input and weight are multiplied by to be what they mean: required for
    /// FP8, and for nothing else.
    public Builder scales(float input, float weight) {
      return scales(new Scales(input, weight));
    }

    /// The same with an output in FP8: what is stored is the result × (1 / `output`), at most the
    /// largest number of the type.
    public Builder scales(float input, float weight, float output) {
      return scales(new Scales(input, weight, output));
    }

    private Builder scales(Scales all) {
      once("scales", scales);
      scales = all;
      return this;
    }

    /// A tensor to take the input from, instead of memory of the pipeline's own. It must have the
    /// shape and type that [Pipeline#input] has, and keeps what it holds. The caller closes it,
    /// after the pipeline.
    ///
    /// A pipeline works on the tensor itself where its schedule can: a tensor that other ranks read
    /// or write must be symmetric. Else it copies, within the iteration, and the profile shows the
    /// copy. One pipeline's output may be another one's input: `input(first.output())`, or a tensor
    /// that both are given.
    public Builder input(PipelineTensor tensor) {
      return bind(Part.INPUT, tensor);
    }

    /// A tensor to take the weight from; see [#input].
    public Builder weight(PipelineTensor tensor) {
      return bind(Part.WEIGHT, tensor);
    }

    /// A tensor to take the bias from; see [#input].
    public Builder bias(PipelineTensor tensor) {
      return bind(Part.BIAS, tensor);
    }

    /// A tensor to put the output into, or to add it to if the problem accumulates; see [#input].
    public Builder output(PipelineTensor tensor) {
      return bind(Part.OUTPUT, tensor);
    }

    /// A tensor to put the pre-activation into; see [#input].
    public Builder preActivation(PipelineTensor tensor) {
      return bind(Part.PRE_ACTIVATION, tensor);
    }

    /// A tensor to gather the input into; see [#input].
    public Builder gatheredInput(PipelineTensor tensor) {
      return bind(Part.GATHERED_INPUT, tensor);
    }

    /// A tensor to take from what is communicated beside the multiplication; see [#input].
    public Builder besideInput(PipelineTensor tensor) {
      return bind(Part.BESIDE_INPUT, tensor);
    }

    /// A tensor to put the result of the communication beside the multiplication into; see
    /// [#input].
    public Builder besideOutput(PipelineTensor tensor) {
      return bind(Part.BESIDE_OUTPUT, tensor);
    }

    private Builder bind(Part part, PipelineTensor tensor) {
      bindings.add(part, tensor);
      return this;
    }

    /// The same for another pipeline.
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

    private static void once(String what, @Nullable Object before) {
      if (before != null) {
        throw new BraidException("%s was said already: %s; say it once".formatted(what, before));
      }
    }

    /// Sets it up, on all ranks of the group together. What fails leaves nothing behind.
    public Pipeline build() {
      group.checkMember();
      if (schedule != null) {
        return build(
            OwnSchedules.problem(schedule, spec, how, group), Tuning.of(schedule, replayed));
      }
      if (spec == null) {
        throw new BraidException(
            "gemm is missing; say gemm(GemmSpec.allGatherGemm(m, n, k)) before build()");
      }
      if (replayed) {
        throw new BraidException(
            "replay() is for a schedule of your own but there is none; say overlap(....replay())");
      }
      var overlap = how == null ? Feasibility.usual(spec, group) : how;
      Feasibility.check(spec, overlap, group);
      return build(spec, Tuning.of(overlap));
    }

    private Pipeline build(GemmSpec problem, Tuning tuning) {
      var scaled = Scales.of(problem, scales);
      var context = group.context();
      var backend = context.backend();
      Feasibility.checkTypes(problem, backend.name());
      var recipe = copy();
      var own = recipe.bindings;
      if (!own.isEmpty()) {
        own.check(problem, tuning.schedule(problem, group.size()), group);
      }
      var asked = own.kind(kind, group);
      var resolved = backend.resolve(asked == null ? context.memory() : asked);
      var cache = group.keep(PlanCache.class, PlanCache::new);
      var key = new PlanCache.Key(problem, tuning, resolved);
      var what = "%s, %s".formatted(problem, tuning);
      group
          .calls()
          .agree(
              Call.of(
                  "build a pipeline",
                  "%s, %s memory, %s%s".formatted(what, resolved, scaled, own)));
      var idle = own.isEmpty() ? cache.take(key, group.calls().round()) : Optional.<Plan>empty();
      var plan =
          idle.orElseGet(
              () ->
                  Plan.of(
                      backend,
                      group.place(),
                      group.members(),
                      key.spec(),
                      tuning,
                      own.bound(),
                      group.symmetric(resolved)));
      group.counting().add(idle.isPresent() ? Counter.PLANS_REUSED : Counter.PLANS_MADE);
      plan.scale(scaled);
      var pipeline = new Pipeline(recipe, cache, key, plan);
      group.own(pipeline);
      return pipeline;
    }
  }

  public ProcessGroup group() {
    return group;
  }

  public GemmSpec spec() {
    return plan.spec();
  }

  /// Its tuning; a schedule of your own has none.
  public Overlap overlap() {
    return plan.tuning()
        .overlap()
        .orElseThrow(
            () ->
                new BraidException(
                    "%s has a schedule of its own and no overlap; see schedule()".formatted(this)));
  }

  /// Builds another pipeline of the same problem on the same tensors of the caller, with another
  /// tuning. All ranks call it together.
  public Pipeline with(Overlap tuning) {
    checkOpen();
    var other = recipe.copy();
    other.spec = spec();
    other.how = tuning;
    other.schedule = null;
    other.replayed = false;
    return other.build();
  }

  /// Whether its problem and group can have that tuning.
  boolean isFeasible(Overlap tuning) {
    try {
      Feasibility.check(spec(), tuning, group);
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  Iterations.Member member() {
    return member;
  }

  /// Refuses to run beside a pipeline that uses memory which this one writes.
  void checkBeside(Pipeline other) {
    plan.views()
        .forEach(
            (part, view) -> {
              if (!part.given() && other.uses(view.memory())) {
                throw new BraidException(
                    "pipelines side by side must not share what one of them writes but the %s of %s is in use by %s; put them one after the other, with then(...) for each"
                        .formatted(part, this, other));
              }
            });
  }

  private boolean uses(MemorySegment memory) {
    return plan.views().values().stream()
        .anyMatch(view -> view.memory().asOverlappingSlice(memory).isPresent());
  }

  /// Whether that is its tuning already.
  boolean isTuned(Overlap tuning) {
    return plan.tuning().overlap().filter(tuning::equals).isPresent();
  }

  /// The problem and the tuning.
  String what() {
    return "%s, %s".formatted(plan.spec(), plan.tuning());
  }

  /// The steps of every rank.
  public Schedule schedule() {
    return plan.schedule();
  }

  /// This rank's part of the input. Write it between runs; peers may read it during a run.
  public Tensor input() {
    return open(Part.INPUT);
  }

  /// This rank's part of the weight.
  public Tensor weight() {
    return open(Part.WEIGHT);
  }

  /// A number for each of this rank's columns, in the output's type (BF16 where that is FP8). Where
  /// ranks have the same columns it must be the same on all of them: it is added once.
  public Tensor bias() {
    return open(Part.BIAS, "bias()");
  }

  /// This rank's part of the output, as the last run left it.
  public Tensor output() {
    return open(Part.OUTPUT);
  }

  /// That rank's part of the output; only where outputs lie in symmetric memory. Who reads
  /// another's must know that it has been written, by a barrier for example.
  public Tensor output(int rank) {
    checkOpen();
    if (rank < 0 || rank >= group.size()) {
      throw new BraidException(
          "outputs are on ranks 0..%d of group `%s` but rank %d's was asked for"
              .formatted(group.size() - 1, group.name(), rank));
    }
    return plan.outputOn(rank)
        .map(this::tensor)
        .orElseThrow(
            () ->
                new BraidException(
                    "%s keeps its output in memory of each rank's own; say".formatted(this)
                        + " outputInSymmetricMemory() in its overlap"));
  }

  /// The values that the output is the GELU of, as the last run left them, in the output's type
  /// (BF16 where that is FP8).
  public Tensor preActivation() {
    return open(Part.PRE_ACTIVATION, "gelu()");
  }

  /// The input of all ranks, as the last run gathered it.
  public Tensor gatheredInput() {
    if (!spec().has(Feature.GATHERED_INPUT)) {
      throw missing(Part.GATHERED_INPUT, "gatheredInput()");
    }
    return open(Part.GATHERED_INPUT);
  }

  /// This rank's part of what is communicated beside the multiplication.
  public Tensor besideInput() {
    return open(Part.BESIDE_INPUT, "besideAllGather or besideReduceScatter");
  }

  /// What came of the communication beside the multiplication in the last run.
  public Tensor besideOutput() {
    return open(Part.BESIDE_OUTPUT, "besideAllGather or besideReduceScatter");
  }

  /// The largest size of any number of the output, of all ranks, in the last run, before it was
  /// divided by the output's scale and rounded: what the next scale is chosen by. Only for FP8. All
  /// ranks call it together.
  public float amax() {
    checkOpen();
    var kept =
        plan.amax()
            .orElseThrow(
                () ->
                    new BraidException(
                        spec().isScaled()
                            ? "the schedule has no buffer `%s`; add it and let multiplications raise it"
                                .formatted(Part.AMAX)
                            : "an amax is kept for fp8 but the type is %s; take output() itself"
                                .formatted(spec().dtype())));
    double largest = 0;
    for (double each : group.gather((double) access().get(DType.FP32, kept, 0))) {
      largest = Math.max(largest, each);
    }
    return (float) largest;
  }

  /// Other scales from the next run on. All ranks call it together with the same.
  public void scales(float input, float weight) {
    scales(new Scales(input, weight));
  }

  /// The same with an output in FP8.
  public void scales(float input, float weight, float output) {
    scales(new Scales(input, weight, output));
  }

  private void scales(Scales all) {
    checkOpen();
    var checked = Scales.of(spec(), all);
    group.agree("scales of " + this, checked.toString());
    plan.scale(checked);
    recipe.scales = all;
  }

  private Tensor open(Part part) {
    checkOpen();
    return tensor(part);
  }

  private Tensor open(Part part, String need) {
    if (plan.view(part).isEmpty()) {
      throw missing(part, need);
    }
    return open(part);
  }

  private BraidException missing(Part part, String need) {
    return new BraidException(
        "`%s` has no %s; make the problem with %s".formatted(spec(), part, need));
  }

  private Tensor tensor(Part part) {
    var view = plan.view(part).orElseThrow();
    return plan.isBound(part)
        // Its memory ends with the caller's tensor.
        ? new Tensor(view.shape(), view.dtype(), List.of(view.memory()), this::ended, access())
        : tensor(view);
  }

  private Tensor tensor(View view) {
    return new Tensor(
        view.shape(), view.dtype(), List.of(views.of(view.memory())), this::ended, access());
  }

  private Access access() {
    return group.context().backend().access();
  }

  /// One iteration, to its end on this rank; every rank has then read this rank's input.
  public void run() {
    iterate(0);
  }

  /// Runs that often and returns how many nanoseconds each iteration took on this rank, in the
  /// default form of the backend: [Timing#BACK_TO_BACK] on GPUs, [Timing#LATENCY] on the host.
  public long[] time(int iterations) {
    return time(iterations, group.context().backend().timing());
  }

  /// Runs that often and returns how many nanoseconds each iteration took on this rank, in that
  /// form. All ranks call it together.
  public long[] time(int iterations, Timing form) {
    checkOpen();
    return switch (form) {
      case LATENCY -> new Measurement(group, this::iterate).time(iterations);
      case BACK_TO_BACK ->
          Measurement.time(group, iterations, before -> inFlight(iterations, before));
    };
  }

  /// Runs that often with iterations in flight; `before` is called before each is enqueued, with
  /// the number of those that have ended.
  long[] inFlight(int count, IntConsumer before) {
    checkOpen();
    return iterations.runInFlight(count, before);
  }

  /// The streams that iterations run on; those in flight are joined on the first.
  List<Stream> streams() {
    return plan.streams();
  }

  /// Runs that often and says how many nanoseconds of each iteration this rank's thread took to
  /// give it out; for the rest it only waits. What an iteration cannot be shorter than, however
  /// fast its work is.
  public long[] timeEnqueuing(int iterations) {
    var nanos = new long[Math.max(iterations, 0)];
    new Measurement(
            group,
            iteration -> {
              iterate(iteration);
              nanos[iteration] = this.iterations.enqueueNanos();
            })
        .time(iterations);
    return nanos;
  }

  /// Runs that often, one iteration at a time, and returns what this rank did, span by span, on the
  /// clock of the group's rank 0. The front gathers it too. Some iterations before and after run
  /// without being looked at, so that the profile can state its own cost.
  public Profile profile(int iterations) {
    checkOpen();
    return new Measurement(group, this::iterate)
        .profile(
            iterations, List.of(new Measurement.Lanes("", plan.streams())), this::configuration);
  }

  /// The problem, the tuning and what they ran on, as columns of a table.
  SequencedMap<String, String> configuration() {
    var backend = group.context().backend();
    var columns = new LinkedHashMap<>(spec().columns());
    columns.putAll(plan.tuning().columns());
    columns.put("ranks", Integer.toString(group.size()));
    columns.put("backend", backend.name());
    columns.put("link", backend.link());
    columns.put("memory", key.kind().toString());
    return columns;
  }

  /// Runs once and compares with the unfused reference, on every rank its own part. Each value has
  /// a bound of its own, by the types, the roundings of the method, the depth and the sizes of its
  /// row and column; where inputs are integers whose sums fp32 holds, as those it was built with,
  /// every bit must agree. The RMS of all values is bounded too. A NaN is right where one is
  /// expected.
  ///
  /// @throws VerificationFailed on every rank, where any rank's part is wrong
  public void verify() {
    verify(null, () -> {});
  }

  /// Runs once and compares with the unfused reference: every value must be within `atol` + `rtol`
  /// × |expected|. A NaN is right where one is expected.
  ///
  /// @throws VerificationFailed on every rank, where any rank's part is wrong
  public void verify(double atol, double rtol) {
    verify(new Tolerance(atol, rtol), () -> {});
  }

  /// Verifies what the run has left after `changed`: tests change results there.
  void verify(@Nullable Tolerance tolerance, Runnable changed) {
    boolean speaks = group.rank() == 0;
    try (var _ = NvtxRange.open(() -> "braid verify " + what());
        var progress = Progress.of(VERIFYING, 2, group.context().outbox(), speaks)) {
      verify(tolerance, changed, progress::step);
      progress.finished();
    }
  }

  private void verify(@Nullable Tolerance tolerance, Runnable changed, Consumer<String> progress) {
    checkOpen();
    progress.accept("running once");
    // A value that no run writes must not look like one.
    plan.results().stream()
        .filter(view -> !(isOutput(view) && spec().has(Feature.ACCUMULATE)))
        .forEach(view -> tensor(view).fill(Float.NaN));
    try (var reference =
        Reference.before(
            plan,
            new Peers(group.place(), group::barrier, group::gather),
            group.symmetric(key.kind()))) {
      run();
      changed.run();
      progress.accept("computing the unfused reference and comparing");
      var verdict = reference.compare(tolerance);
      for (var each : group.gather(verdict.orElse(""))) {
        if (!each.isEmpty()) {
          throw new VerificationFailed(each);
        }
      }
    }
  }

  private boolean isOutput(View view) {
    return plan.view(Part.OUTPUT).filter(view::equals).isPresent();
  }

  private void iterate(int iteration) {
    checkOpen();
    iterations.run(iteration);
  }

  void checkOpen() {
    if (closed) {
      throw new BraidException(ended());
    }
    bindings.checkOpen();
  }

  private String ended() {
    return "%s is closed; build it again".formatted(this);
  }

  /// Ends it: what it was set up with is kept for the next pipeline of the same problem and tuning,
  /// until its group is closed. Views of it end. Twice is harmless, and no rank waits for another.
  @Override
  public void close() {
    if (!closed) {
      views.close();
      closed = true;
      group.disown(this);
      if (bindings.isEmpty() && member.inStep()) {
        cache.put(key, plan, group.calls().round());
      } else {
        plan.close();
      }
    }
  }

  @Override
  public String toString() {
    return "pipeline %s, %s, on %s".formatted(spec(), plan.tuning(), group.name());
  }
}
