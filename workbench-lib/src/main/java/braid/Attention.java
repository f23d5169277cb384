package braid;

import braid.internal.pipeline.AttentionReference;
import braid.internal.pipeline.Tolerance;
import braid.internal.pipeline.Tuning;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.MemoryKind;
import braid.model.Verification;
import braid.model.VerificationFailed;
import braid.schedule.Part;
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
public final class Attention extends ChainLink {

  private Attention(PlanLease lease) {
    super(lease);
  }

  /// Begins attention on a group.
  public static Builder on(ProcessGroup group) {
    Given.check("group", group);
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
      Given.check("problem", problem);
      SetOnce.check("spec", spec);
      spec = problem;
      return this;
    }

    /// Sets the tuning; [ContextParallel#ring()] by default.
    public Builder method(ContextParallel tuning) {
      Given.check("tuning", tuning);
      SetOnce.check("method", how);
      how = tuning;
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

    /// Sets the tensor to read the query from, instead of memory that the attention allocates. It
    /// must have the shape and type of [Attention#query], and keeps its contents. The caller closes
    /// it, after the attention. If heads are divided among ranks, other ranks access all tensors:
    /// one that is not symmetric is copied within the iteration, and the profile shows the copy.
    public Builder query(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.QUERY, tensor);
    }

    /// Sets the tensor to read the key from; see [#query]. Other ranks read it: one that is not
    /// symmetric is copied within the iteration, and the profile shows the copy.
    public Builder key(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.KEY, tensor);
    }

    /// Sets the tensor to read the value from; see [#key].
    public Builder value(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.VALUE, tensor);
    }

    /// Sets the tensor to write the output to; see [#query].
    public Builder output(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.OUTPUT, tensor);
    }

    /// Sets the tensor to write the log-sum-exp to; see [#query].
    public Builder lse(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.LSE, tensor);
    }

    private Builder bind(Part part, PipelineTensor tensor) {
      bindings.add(part, tensor);
      return this;
    }

    /// Begins the backward pass with the spec, method, memory and tensors given so far.
    public AttentionGradient.Builder backward() {
      return new AttentionGradient.Builder(group, spec, how, kind, bindings);
    }

    /// Builds the attention, on all ranks of the group together. A failed build leaves no resources
    /// behind.
    public Attention build() {
      group.checkMember();
      if (spec == null) {
        throw new BraidException(
            "spec is missing; call spec(AttentionSpec.of(sequence, heads, headSize)) before build()");
      }
      var tuning = how == null ? ContextParallel.ring() : how;
      Feasibility.check(spec, tuning, group);
      var given = new Bindings();
      given.addAll(bindings);
      var attention =
          new Attention(
              PlanLease.take(
                  "build an attention", "", group, spec, Tuning.of(tuning), kind, given, ""));
      group.own(attention);
      return attention;
    }
  }

  public AttentionSpec spec() {
    return (AttentionSpec) lease.plan().problem();
  }

  /// Returns the tuning.
  public ContextParallel method() {
    return lease.plan().tuning().context().orElseThrow();
  }

  /// Returns the query of this rank's tokens: a row per token, in the order of the layout.
  public Tensor query() {
    return lease.open(Part.QUERY);
  }

  /// Returns the key of this rank's tokens. Write it between runs; peers may read it during a run.
  public Tensor key() {
    return lease.open(Part.KEY);
  }

  /// Returns the value of this rank's tokens. Write it between runs; peers may read it during a
  /// run.
  public Tensor value() {
    return lease.open(Part.VALUE);
  }

  /// Returns the output of this rank's tokens, of the last run.
  public Tensor output() {
    return lease.open(Part.OUTPUT);
  }

  /// Returns the log-sum-exp of the scores of this rank's tokens, of the last run: a number per
  /// head, in FP32.
  public Tensor lse() {
    return lease.open(Part.LSE);
  }

  /// Runs once and compares each rank's output and log-sum-exp with attention to the whole sequence
  /// in double precision. Each value has its own bound, from the roundings of fp32 and of the
  /// output's type. The comparison takes about `spec().flops()` plain operations of the host.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  @Override
  public Verification verify() {
    return verify(null, () -> {});
  }

  /// Runs once and compares with attention in double precision: every error must be at most `atol`
  /// + `rtol` × |expected|.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  public Verification verify(double atol, double rtol) {
    return verify(new Tolerance(atol, rtol), () -> {});
  }

  /// Verifies the results after `changed` has run, by which tests alter them.
  Verification verify(@Nullable Tolerance tolerance, Runnable changed) {
    return lease.verify(
        changed, differences -> AttentionReference.compare(lease.plan(), tolerance, differences));
  }
}
