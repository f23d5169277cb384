package braid;

import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.AttentionReference;
import braid.internal.pipeline.Plan;
import braid.internal.pipeline.PlanCache;
import braid.internal.pipeline.Tolerance;
import braid.internal.pipeline.Tuning;
import braid.internal.resource.Lifetime;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.MemoryKind;
import braid.model.Profile;
import braid.model.Timing;
import braid.model.VerificationFailed;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// Attention over a sequence whose tokens are divided among the ranks, built once and ready to run
/// many times:
///
/// ```java
/// var spec = AttentionSpec.of(8192, 32, 128).kvHeads(8).causal().layout(TokenLayout.ZIGZAG);
/// try (var attention = Attention.on(world).spec(spec).method(ContextParallel.ring()).build()) {
///   attention.verify();
///   var profile = attention.profile(50);
/// }
/// ```
///
/// [AttentionSpec] shows the result as unfused code; the method never changes it. `build()` fills
/// query, key and value with small integers, so that it can be verified at once; overwrite them
/// with your own data. All ranks of the group build, run and measure it together.
public final class Attention implements AutoCloseable {
  private final ProcessGroup group;
  private final PlanCache cache;
  private final PlanCache.Key key;
  private final Plan plan;
  private final Iterations.Member member;
  private final Iterations iterations;
  private final Bindings bindings;

  /// Lifetime of the views handed out, since another attention may reuse the plan and its memory.
  private final Lifetime views = new Lifetime();

  private boolean closed;

  private Attention(
      ProcessGroup group, Bindings bindings, PlanCache cache, PlanCache.Key key, Plan plan) {
    this.group = group;
    this.cache = cache;
    this.key = key;
    this.plan = plan;
    this.bindings = bindings;
    this.member = new Iterations.Member(group, plan, this::toString);
    this.iterations =
        new Iterations(group, List.of(List.of(member)), plan.toString(), this::toString);
    for (var part : plan.views().keySet()) {
      if (!plan.isBound(part)) {
        FirstContents.fill(part, tensor(part), group.rank());
      }
    }
  }

  /// Begins attention on a group.
  public static Builder on(ProcessGroup group) {
    group.checkMember();
    return new Builder(group);
  }

  /// Collects the parts of an attention; each is set at most once.
  public static final class Builder {
    private final ProcessGroup group;
    private @Nullable AttentionSpec spec;
    private @Nullable ContextParallel how;
    private @Nullable MemoryKind kind;
    private final Bindings bindings = new Bindings();

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// Sets the problem; required.
    public Builder spec(AttentionSpec problem) {
      once("spec", spec);
      spec = problem;
      return this;
    }

    /// Sets the tuning; [ContextParallel#ring()] by default.
    public Builder method(ContextParallel tuning) {
      once("method", how);
      how = tuning;
      return this;
    }

    /// Sets the kind of its symmetric memory; by default `BRAID_SYMMETRIC_MEMORY`, else the
    /// backend's choice.
    public Builder memory(MemoryKind symmetric) {
      once("memory", kind);
      kind = symmetric;
      return this;
    }

    /// Sets the tensor to read the query from, instead of memory that the attention allocates. It
    /// must have the shape and type of [Attention#query], and keeps its contents. The caller closes
    /// it, after the attention.
    public Builder query(PipelineTensor tensor) {
      return bind(Part.QUERY, tensor);
    }

    /// Sets the tensor to read the key from; see [#query]. Other ranks read it: one that is not
    /// symmetric is copied within the iteration, and the profile shows the copy.
    public Builder key(PipelineTensor tensor) {
      return bind(Part.KEY, tensor);
    }

    /// Sets the tensor to read the value from; see [#key].
    public Builder value(PipelineTensor tensor) {
      return bind(Part.VALUE, tensor);
    }

    /// Sets the tensor to write the output to; see [#query].
    public Builder output(PipelineTensor tensor) {
      return bind(Part.OUTPUT, tensor);
    }

    /// Sets the tensor to write the log-sum-exp to; see [#query].
    public Builder lse(PipelineTensor tensor) {
      return bind(Part.LSE, tensor);
    }

    private Builder bind(Part part, PipelineTensor tensor) {
      bindings.add(part, tensor);
      return this;
    }

    private static void once(String attribute, @Nullable Object before) {
      if (before != null) {
        throw new BraidException(
            "%s was set already: %s; set it once".formatted(attribute, before));
      }
    }

    /// Builds the attention, on all ranks of the group together. A failed build leaves no resources
    /// behind.
    public Attention build() {
      group.checkMember();
      if (spec == null) {
        throw new BraidException(
            "spec is missing; call spec(AttentionSpec.of(sequence, heads, headSize)) before build()");
      }
      var problem = spec;
      var context = group.context();
      var backend = context.backend();
      Feasibility.check(problem, backend.kind(), group);
      var tuning = Tuning.of(how == null ? ContextParallel.ring() : how);
      var own = new Bindings();
      own.addAll(bindings);
      if (!own.isEmpty()) {
        own.check(problem, tuning.schedule(problem, group.size()), group);
      }
      var chosen = own.kind(kind, group);
      var resolved = context.memory(chosen, group.members());
      var cache = group.keep(PlanCache.class, PlanCache::new);
      var key = new PlanCache.Key(problem, tuning, resolved);
      group
          .calls()
          .agree(
              Call.of(
                  "build an attention",
                  "%s, %s, %s memory%s".formatted(problem, tuning, resolved, own)));
      var idle = own.isEmpty() ? cache.take(key, group.calls().round()) : Optional.<Plan>empty();
      var plan =
          idle.orElseGet(
              () ->
                  Plan.of(
                      backend,
                      group.place(),
                      group.members(),
                      problem,
                      tuning,
                      own.bound(),
                      group.symmetric(resolved)));
      group.counting().add(idle.isPresent() ? Counter.PLANS_REUSED : Counter.PLANS_MADE);
      var attention = new Attention(group, own, cache, key, plan);
      group.own(attention);
      return attention;
    }
  }

  public ProcessGroup group() {
    return group;
  }

  public AttentionSpec spec() {
    return (AttentionSpec) plan.problem();
  }

  /// Returns the tuning.
  public ContextParallel method() {
    return plan.tuning().context().orElseThrow();
  }

  /// Returns the schedule: the steps of every rank.
  public Schedule schedule() {
    return plan.schedule();
  }

  /// Returns the query of this rank's tokens: a row per token, in the order of the layout.
  public Tensor query() {
    return open(Part.QUERY);
  }

  /// Returns the key of this rank's tokens. Write it between runs; peers may read it during a run.
  public Tensor key() {
    return open(Part.KEY);
  }

  /// Returns the value of this rank's tokens. Write it between runs; peers may read it during a
  /// run.
  public Tensor value() {
    return open(Part.VALUE);
  }

  /// Returns the output of this rank's tokens, of the last run.
  public Tensor output() {
    return open(Part.OUTPUT);
  }

  /// Returns the log-sum-exp of the scores of this rank's tokens, of the last run: a number per
  /// head, in FP32.
  public Tensor lse() {
    return open(Part.LSE);
  }

  private Tensor open(Part part) {
    checkOpen();
    return tensor(part);
  }

  private Tensor tensor(Part part) {
    var view = plan.view(part).orElseThrow();
    // The view of a bound part ends with the caller's tensor.
    var memory = plan.isBound(part) ? view.memory() : views.of(view.memory());
    return new Tensor(
        view.shape(),
        view.dtype(),
        List.of(memory),
        this::ended,
        group.context().backend().access());
  }

  /// Runs one iteration and waits for its end on this rank; by then every rank has read this rank's
  /// keys and values.
  public void run() {
    iterate(0);
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the backend's default
  /// form: see [Pipeline#time(int)].
  public long[] time(int iterations) {
    return time(iterations, group.context().backend().timing());
  }

  /// Runs the iterations and returns the nanoseconds of each on this rank, in the given form. All
  /// ranks call it together.
  public long[] time(int iterations, Timing form) {
    checkOpen();
    return switch (form) {
      case LATENCY -> new Measurement(group, this::iterate).time(iterations);
      case BACK_TO_BACK ->
          Measurement.time(
              group, iterations, before -> this.iterations.runInFlight(iterations, before));
    };
  }

  /// Runs the iterations one at a time and returns this rank's spans on the clock of the group's
  /// rank 0. The front gathers the profile too.
  public Profile profile(int iterations) {
    checkOpen();
    return new Measurement(group, this::iterate)
        .profile(
            iterations, List.of(new Measurement.Lanes("", plan.streams())), this::configuration);
  }

  /// Problem, tuning, ranks, backend, link and memory, as columns of a table.
  private SequencedMap<String, String> configuration() {
    var backend = group.context().backend();
    var columns = new LinkedHashMap<>(spec().columns());
    columns.putAll(plan.tuning().columns());
    columns.put("ranks", Integer.toString(group.size()));
    columns.put("backend", backend.kind().toString());
    columns.put("link", backend.link());
    columns.put("memory", key.kind().toString());
    return columns;
  }

  /// Runs once and compares each rank's output and log-sum-exp with attention to the whole sequence
  /// in double precision. Each value has its own bound, from the roundings of fp32 and of the
  /// output's type. The comparison takes about `spec().flops()` plain operations of the host.
  ///
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public void verify() {
    verify(null, () -> {});
  }

  /// Runs once and compares with attention in double precision: every error must be at most `atol`
  /// + `rtol` × |expected|.
  ///
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public void verify(double atol, double rtol) {
    verify(new Tolerance(atol, rtol), () -> {});
  }

  /// Verifies the results after `changed` has run, by which tests alter them.
  void verify(@Nullable Tolerance tolerance, Runnable changed) {
    checkOpen();
    // Marks values that a run leaves unwritten.
    plan.results()
        .forEach(view -> plan.backend().access().fill(view.dtype(), view.memory(), Float.NaN));
    run();
    changed.run();
    group.barrier();
    var verdict = AttentionReference.compare(plan, tolerance);
    for (var each : group.gather(verdict.orElse(""))) {
      if (!each.isEmpty()) {
        throw new VerificationFailed(each);
      }
    }
  }

  private void iterate(int iteration) {
    checkOpen();
    iterations.run(iteration);
  }

  private void checkOpen() {
    if (closed) {
      throw new BraidException(ended());
    }
    bindings.checkOpen();
  }

  private String ended() {
    return "%s is closed; build it again".formatted(this);
  }

  /// Closes the attention; its views end. The plan is kept for the next one of the same problem and
  /// tuning, until the group is closed. Closing twice is harmless, and no rank waits for another.
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
    return "%s, on %s".formatted(plan, group.name());
  }
}
