package braid.schedule;

import java.util.Optional;

/// Work on a result in fp32 before it is rounded and stored, in this order. GELU is of the stored,
/// rounded pre-activation:
///
/// ```java
/// if (scaled) value *= scale;              // of FP8 operands
/// if (accumulate) value += output;         // as the output was before
/// if (bias) value += bias[column];
/// if (preActivation) { preActivation = value; value = gelu(preActivation); }
/// if (amax) amax = max(amax, abs(value));
/// if (rescaled) value *= 1 / output scale; // of an FP8 output
/// ```
///
/// @param bias one number per column of the output, in its [braid.model.DType#sumType]
/// @param preActivation values of the output's rows and columns before the GELU, in its
///   [braid.model.DType#sumType]
/// @param amax one number that only grows; several lanes may raise it concurrently
public record Finish(
    boolean scaled,
    boolean accumulate,
    Optional<Buffer> bias,
    Optional<Buffer> preActivation,
    Optional<Buffer> amax,
    boolean rescaled) {
  /// Creates work on a result that is not stored in FP8.
  public Finish(
      boolean scaled,
      boolean accumulate,
      Optional<Buffer> bias,
      Optional<Buffer> preActivation,
      Optional<Buffer> amax) {
    this(scaled, accumulate, bias, preActivation, amax, false);
  }

  /// Leaves the result unchanged.
  public static final Finish NONE =
      new Finish(false, false, Optional.empty(), Optional.empty(), Optional.empty());

  /// Scales the result.
  public static final Finish SCALED =
      new Finish(true, false, Optional.empty(), Optional.empty(), Optional.empty());

  public Finish withScaled(boolean other) {
    return new Finish(other, accumulate, bias, preActivation, amax, rescaled);
  }
}
