package braid;

import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Differences;
import braid.internal.pipeline.Peers;
import braid.internal.pipeline.Plan;
import braid.internal.pipeline.PlanCache;
import braid.internal.pipeline.PlanSource;
import braid.internal.pipeline.Reference;
import braid.internal.pipeline.Sequence;
import braid.internal.pipeline.Tolerance;
import braid.internal.pipeline.View;
import braid.internal.report.progress.Progress;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Lifetime;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.MemoryKind;
import braid.model.Problem;
import braid.model.Profile;
import braid.model.Timing;
import braid.model.Verification;
import braid.model.VerificationFailed;
import braid.natives.kernels.Drawn;
import braid.natives.profiling.NvtxRange;
import braid.schedule.Part;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A plan while one pipeline uses it: its tensors, iterations and measurements. Closing it gives
/// the plan back for the next one of the same problem and tuning.
final class PlanLease implements AutoCloseable {
  private static final Progress.Task VERIFYING =
      new Progress.Task("verifying", "verified", "steps");

  /// Prefix of the result of a rank with a wrong value.
  private static final String WRONG = "wrong: ";

  private final ProcessGroup group;
  private final Bindings bindings;
  private final PlanCache cache;
  private final PlanCache.Key key;
  private final Plan plan;
  private final Iterations.Member member;
  private final Iterations iterations;

  /// Lifetime of the views handed out, since another pipeline may reuse the plan and its memory.
  private final Lifetime views = new Lifetime();

  private boolean closed;

  private PlanLease(
      ProcessGroup group, Bindings bindings, PlanCache cache, PlanCache.Key key, Plan plan) {
    this.group = group;
    this.bindings = bindings;
    this.cache = cache;
    this.key = key;
    this.plan = plan;
    member = new Iterations.Member(group, plan, this::toString);
    iterations =
        new Iterations(
            group,
            List.of(member),
            new Sequence(List.of(List.of(plan))),
            plan.toString(),
            this::toString);
    // Integers can be verified at once.
    draw(Drawn.INTEGERS);
  }

  /// Fills the tensors that are not the caller's as at first.
  void draw(Drawn numbers) {
    for (var part : plan.views().keySet()) {
      if (!plan.isBound(part)) {
        FirstContents.fill(part, tensor(part), group.rank(), numbers);
      }
    }
  }

  /// Takes an idle plan, or makes one; on all ranks of the group together. A failure leaves no
  /// resources behind.
  ///
  /// @param requested kind of its symmetric memory; null for the default
  /// @param settings settings on which the ranks must agree too, each after a comma
  static PlanLease take(
      ProcessGroup group,
      Problem problem,
      PlanSource source,
      @Nullable MemoryKind requested,
      Bindings bindings,
      String settings) {
    var context = group.context();
    if (!bindings.isEmpty()) {
      bindings.check(problem, source.schedule(problem, group.size()), group);
    }
    var kind = context.memory(bindings.kind(requested, group), source.transport(), group.members());
    var cache = group.keep(PlanCache.class, PlanCache::new);
    var key = new PlanCache.Key(problem, source, kind);
    group
        .calls()
        .agree(
            Call.of(
                "build a pipeline",
                "%s, %s, %s memory%s%s".formatted(problem, source, kind, settings, bindings)));
    var idle = bindings.isEmpty() ? cache.take(key, group.calls().round()) : Optional.<Plan>empty();
    var plan =
        idle.orElseGet(
            () ->
                make(
                    group,
                    cache,
                    () ->
                        Plan.of(
                            context.backend(),
                            group.place(),
                            group.members(),
                            problem,
                            source,
                            bindings.bound(),
                            group.symmetric(kind),
                            group::rendezvous)));
    group.counting().add(idle.isPresent() ? Counter.PLANS_REUSED : Counter.PLANS_MADE);
    return new PlanLease(group, bindings, cache, key, plan);
  }

  /// Makes a plan. If its memory is not available, all ranks close the idle plans, which are the
  /// same on all of them, and try it again.
  static Plan make(ProcessGroup group, PlanCache cache, Supplier<Plan> maker) {
    try {
      return maker.get();
    } catch (AllocationFailed e) {
      if (!cache.clear(group.calls().round())) {
        throw e;
      }
      // The memory is free only after the last rank has released it.
      group.barrier();
      return maker.get();
    }
  }

  /// Adds the tensor of a part, in place, to the tensors of another pipeline.
  void bind(Part part, Bindings others) {
    plan.symmetric(part)
        .ifPresentOrElse(
            memory -> others.add(part, open(part), memory, kind()),
            () -> others.add(part, open(part)));
  }

  ProcessGroup group() {
    return group;
  }

  Plan plan() {
    return plan;
  }

  Iterations.Member member() {
    return member;
  }

  /// Returns the memory of this rank that it uses, by part.
  List<Chain.Used> used() {
    return plan.views().entrySet().stream()
        .map(
            each ->
                new Chain.Used(
                    each.getKey().toString(), each.getValue().memory(), !each.getKey().given()))
        .toList();
  }

  /// Returns whether a tensor of this plan is in memory that the other one has allocated.
  boolean borrows(PlanLease other) {
    return other.plan.views().entrySet().stream()
        .anyMatch(each -> !other.plan.isBound(each.getKey()) && uses(each.getValue().memory()));
  }

  private boolean uses(MemorySegment memory) {
    return plan.views().values().stream()
        .anyMatch(view -> view.memory().asOverlappingSlice(memory).isPresent());
  }

  /// Problem and tuning in words.
  String text() {
    return "%s, %s".formatted(plan.problem(), plan.source());
  }

  /// Kind of the symmetric memory.
  MemoryKind kind() {
    return key.kind();
  }

  TensorView open(Part part) {
    checkOpen();
    return tensor(part);
  }

  private TensorView tensor(Part part) {
    var view = plan.view(part).orElseThrow();
    return plan.isBound(part)
        // The view ends with the caller's tensor.
        ? new TensorView(
            view.shape(),
            view.dtype(),
            List.of(view.memory()),
            this::ended,
            plan.backend().access())
        : tensor(view);
  }

  /// Returns a tensor of a view, which ends with this lease.
  TensorView tensor(View view) {
    return new TensorView(
        view.shape(),
        view.dtype(),
        List.of(views.of(view.memory())),
        this::ended,
        plan.backend().access());
  }

  Running start() {
    checkOpen();
    return iterations.start();
  }

  void run(int iteration) {
    checkOpen();
    iterations.run(iteration);
  }

  /// Runs iterations in flight; `before` is called before each is enqueued, with the number of
  /// iterations that have ended.
  long[] inFlight(int count, IntConsumer before) {
    checkOpen();
    return iterations.runInFlight(count, before);
  }

  long[] time(int count, Timing form) {
    checkOpen();
    return iterations.exclusively(
        "time",
        () ->
            switch (form) {
              case LATENCY -> new Measurement(group, this::run).time(count);
              case BACK_TO_BACK ->
                  Measurement.time(group, count, before -> inFlight(count, before));
            });
  }

  /// Returns the nanoseconds that this rank's thread took to enqueue each iteration.
  long[] timeEnqueuing(int count) {
    var nanos = new long[Math.max(count, 0)];
    var measurement =
        new Measurement(
            group,
            iteration -> {
              run(iteration);
              nanos[iteration] = iterations.enqueueNanos();
            });
    var _ = iterations.exclusively("timeEnqueuing", () -> measurement.time(count));
    return nanos;
  }

  Profile profile(int count) {
    checkOpen();
    var lanes = List.of(new Measurement.Lanes("", plan.streams()));
    return iterations.exclusively(
        "profile",
        () -> new Measurement(group, this::run).profile(count, lanes, this::configuration));
  }

  /// Runs once and compares the results of all ranks with the reference.
  ///
  /// @param tolerance largest error; null for the bounds of each value
  /// @param changed alters the results before they are compared
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  Verification verify(@Nullable Tolerance tolerance, Runnable changed) {
    return iterations.exclusively(
        "verify",
        () -> {
          checkOpen();
          boolean reports = group.rank() == 0;
          try (var _ = NvtxRange.open(() -> "braid verify " + text());
              var progress = Progress.of(VERIFYING, 2, group.context().outbox(), reports)) {
            progress.step("running once");
            markUnwritten();
            try (var reference =
                Reference.before(
                    plan,
                    new Peers(group.place(), group::barrier, group::gather, group::gather),
                    group.symmetric(kind()))) {
              run(0);
              changed.run();
              group.barrier();
              progress.step("computing the reference and comparing");
              var verification = together(reference, tolerance);
              progress.finished(verification.toString());
              return verification;
            }
          }
        });
  }

  /// Fills the memory that a run writes with NaN, except an output that it adds to.
  private void markUnwritten() {
    var added =
        plan.problem() instanceof GemmSpec spec && spec.has(Feature.ACCUMULATE)
            ? plan.view(Part.OUTPUT)
            : Optional.<View>empty();
    plan.results().stream()
        .filter(view -> !added.equals(Optional.of(view)))
        .forEach(view -> plan.backend().access().fill(view.dtype(), view.memory(), Float.NaN));
  }

  /// Compares on this rank, and exchanges the results of all ranks.
  private Verification together(Reference reference, @Nullable Tolerance tolerance) {
    var differences = new Differences();
    return together(group, reference.compare(tolerance, differences), differences);
  }

  /// Exchanges the results of all ranks.
  ///
  /// @param wrong a wrong value of this rank, in words
  static Verification together(
      ProcessGroup group, Optional<String> wrong, Differences differences) {
    var results = group.gather(wrong.map(each -> WRONG + each).orElseGet(differences::text));
    for (var each : results) {
      if (each.startsWith(WRONG)) {
        throw new VerificationFailed(each.substring(WRONG.length()));
      }
    }
    return Differences.together(results);
  }

  /// Problem, tuning, ranks, backend, link and memory, as columns of a table.
  SequencedMap<String, String> configuration() {
    var columns = new LinkedHashMap<>(plan.problem().columns());
    columns.putAll(plan.source().columns());
    columns.put("ranks", Integer.toString(group.size()));
    columns.put("backend", plan.backend().kind().toString());
    columns.put("link", plan.backend().link());
    columns.put("memory", key.kind().toString());
    return columns;
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

  /// Gives the plan back; the views end. Closing twice is harmless, and no rank waits for another.
  @Override
  public void close() {
    if (!closed) {
      views.close();
      closed = true;
      if (bindings.isEmpty() && member.inStep()) {
        cache.put(key, plan, group.calls().round());
      } else {
        plan.close();
      }
    }
  }

  @Override
  public String toString() {
    return "%s%s, on %s"
        .formatted(plan.problem() instanceof GemmSpec ? "pipeline " : "", plan, group.name());
  }
}
