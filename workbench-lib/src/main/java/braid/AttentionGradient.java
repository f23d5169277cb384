package braid;

import braid.internal.pipeline.AttentionGradientReference;
import braid.internal.pipeline.Tolerance;
import braid.internal.pipeline.Tuning;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.MemoryKind;
import braid.model.Verification;
import braid.model.VerificationFailed;
import braid.schedule.Part;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The backward pass of attention over a sequence whose tokens are divided among the ranks, built
/// once and ready to run many times:
///
/// ```java
/// try (var attention = Attention.on(world).spec(spec).build();
///     var backward = Attention.on(world).backward().forward(attention).build()) {
///   attention.run();
///   backward.outputGradient().copyFrom(...);
///   backward.run();
///   backward.queryGradient();
/// }
/// ```
///
/// [AttentionGradientSpec] shows the result as unfused code; the method never changes it. `build()`
/// fills the output's gradient with small integers; overwrite it with your own data. Sums are in
/// fp32, and the schedule fixes their order between blocks; see [Builder#deterministic] for the
/// order within a block. All ranks of the group build, run and measure it together.
public final class AttentionGradient extends ChainLink {
  private static final List<Part> OF_FORWARD =
      List.of(Part.QUERY, Part.KEY, Part.VALUE, Part.OUTPUT, Part.LSE);

  private AttentionGradient(PlanLease lease) {
    super(lease);
  }

  /// Collects the parts of a backward pass; each is set at most once.
  public static final class Builder {
    private final ProcessGroup group;
    private final @Nullable ContextParallel how;
    private final @Nullable MemoryKind kind;
    private final Bindings bindings = new Bindings();
    private @Nullable AttentionSpec spec;
    private @Nullable Boolean deterministic;

    Builder(
        ProcessGroup group,
        @Nullable AttentionSpec spec,
        @Nullable ContextParallel how,
        @Nullable MemoryKind kind,
        Bindings bindings) {
      this.group = group;
      this.spec = spec;
      this.how = how;
      this.kind = kind;
      this.bindings.addAll(bindings);
    }

    /// Sets the attention whose query, key, value, output and log-sum-exp the backward pass reads,
    /// in place, and its spec. Run it before the backward pass, and close it after.
    public Builder forward(Attention attention) {
      Given.check("attention", attention);
      if (!attention.group().equals(group)) {
        throw new BraidException(
            "forward must be an attention on group `%s` but is on `%s`; begin with Attention.on(...) of that group"
                .formatted(group.name(), attention.group().name()));
      }
      if (spec != null && !spec.equals(attention.spec())) {
        throw new BraidException(
            "forward must be of `%s` but is of `%s`; leave spec(...) out to take that of the attention"
                .formatted(spec, attention.spec()));
      }
      spec = attention.spec();
      OF_FORWARD.forEach(part -> bindings.add(part, attention.lease));
      return this;
    }

    /// Makes the gradients of equal inputs equal to the last bit in every run. They always are on
    /// the host, and by Braid's own kernels on GPUs. cuDNN takes more time for it, and memory for a
    /// number in 16 bits per head, query and key of a block.
    public Builder deterministic() {
      SetOnce.check("deterministic", deterministic);
      deterministic = true;
      return this;
    }

    /// Sets the tensor to read the query from; see [#forward] and [Attention.Builder#query].
    public Builder query(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.QUERY, tensor);
    }

    /// Sets the tensor to read the key from. Other ranks read it: one that is not symmetric is
    /// copied within the iteration, and the profile shows the copy.
    public Builder key(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.KEY, tensor);
    }

    /// Sets the tensor to read the value from; see [#key].
    public Builder value(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.VALUE, tensor);
    }

    /// Sets the tensor to read the output of the forward pass from.
    public Builder output(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.OUTPUT, tensor);
    }

    /// Sets the tensor to read the log-sum-exp of the forward pass from.
    public Builder lse(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.LSE, tensor);
    }

    /// Sets the tensor to read the output's gradient from, instead of memory that the backward pass
    /// allocates.
    public Builder outputGradient(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.OUTPUT_GRADIENT, tensor);
    }

    /// Sets the tensor to write the query's gradient to.
    public Builder queryGradient(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.QUERY_GRADIENT, tensor);
    }

    /// Sets the tensor to write the key's gradient to.
    public Builder keyGradient(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.KEY_GRADIENT, tensor);
    }

    /// Sets the tensor to write the value's gradient to.
    public Builder valueGradient(PipelineTensor tensor) {
      Given.check("tensor", tensor);
      return bind(Part.VALUE_GRADIENT, tensor);
    }

    private Builder bind(Part part, PipelineTensor tensor) {
      bindings.add(part, tensor);
      return this;
    }

    /// Builds the backward pass, on all ranks of the group together. A failed build leaves no
    /// resources behind.
    public AttentionGradient build() {
      group.checkMember();
      if (spec == null) {
        throw new BraidException(
            "spec is missing; call forward(attention), or spec(AttentionSpec.of(sequence, heads, headSize)) before backward()");
      }
      for (var part : List.of(Part.LSE, Part.OUTPUT)) {
        if (!bindings.has(part)) {
          throw new BraidException(
              "%s is missing; call forward(attention), or %s(tensor) with that of the forward pass, before build()"
                  .formatted(part, part));
        }
      }
      var problem = deterministic == null ? spec.backward() : spec.backward().deterministic();
      var tuning = how == null ? ContextParallel.ring() : how;
      Feasibility.check(spec, tuning, group);
      var given = new Bindings();
      given.addAll(bindings);
      var gradient =
          new AttentionGradient(
              PlanLease.take(
                  "build a backward pass", "", group, problem, Tuning.of(tuning), kind, given, ""));
      group.own(gradient);
      return gradient;
    }
  }

  public AttentionGradientSpec spec() {
    return (AttentionGradientSpec) lease.plan().problem();
  }

  /// Returns the tuning.
  public ContextParallel method() {
    return lease.plan().tuning().context().orElseThrow();
  }

  /// Returns the query of this rank's tokens.
  public Tensor query() {
    return lease.open(Part.QUERY);
  }

  /// Returns the key of this rank's tokens.
  public Tensor key() {
    return lease.open(Part.KEY);
  }

  /// Returns the value of this rank's tokens.
  public Tensor value() {
    return lease.open(Part.VALUE);
  }

  /// Returns the output of the forward pass.
  public Tensor output() {
    return lease.open(Part.OUTPUT);
  }

  /// Returns the log-sum-exp of the forward pass.
  public Tensor lse() {
    return lease.open(Part.LSE);
  }

  /// Returns the gradient of the output of this rank's tokens.
  public Tensor outputGradient() {
    return lease.open(Part.OUTPUT_GRADIENT);
  }

  /// Returns the gradient of the query of this rank's tokens, of the last run.
  public Tensor queryGradient() {
    return lease.open(Part.QUERY_GRADIENT);
  }

  /// Returns the gradient of the key of this rank's tokens, of the last run: the sum over the
  /// queries of all ranks, and over the heads that share it.
  public Tensor keyGradient() {
    return lease.open(Part.KEY_GRADIENT);
  }

  /// Returns the gradient of the value of this rank's tokens, of the last run; see [#keyGradient].
  public Tensor valueGradient() {
    return lease.open(Part.VALUE_GRADIENT);
  }

  /// Runs once and compares each rank's gradients with those of the whole sequence in double
  /// precision, by the output and log-sum-exp that the forward pass has left. Each value has its
  /// own bound, from the roundings of fp32 and of the gradients' type. The comparison takes about
  /// five times `spec().flops()` plain operations of the host.
  ///
  /// @return what was compared on all ranks
  /// @throws VerificationFailed on every rank, if any rank's part is wrong
  @Override
  public Verification verify() {
    return verify(null, () -> {});
  }

  /// Runs once and compares with gradients in double precision: every error must be at most `atol`
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
        changed,
        differences ->
            AttentionGradientReference.compare(
                lease.plan(),
                tolerance,
                differences,
                (part, numbers) -> group().gather("gather of the " + part, numbers)));
  }
}
