package braid.internal.work;

import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Operations on a result in fp32 before it is rounded and stored, in this order:
///
/// ```java
/// value = scale * sum;
/// if (accumulate) value += output;          // previous contents
/// if (bias) value += bias[column];
/// if (preActivation) { preActivation = value; value = gelu(preActivation); }
/// if (amax) amax = max(amax, abs(value));
/// output = outScale * value;
/// ```
///
/// A sum of several ranks' parts is rounded before the epilogue: see [Reduction]. GELU is of the
/// stored, rounded pre-activation.
///
/// @param bias one number per column, of the output's [braid.model.DType#sumType]
/// @param preActivation receives the values before GELU; same shape as the output, type as `bias`
/// @param amax one fp32 number that only grows; several streams may raise it at once
public record Epilogue(
    float scale,
    boolean accumulate,
    Optional<MemorySegment> bias,
    Optional<Matrix> preActivation,
    Optional<MemorySegment> amax,
    float outScale) {
  /// Leaves the result unchanged.
  public static final Epilogue NONE =
      new Epilogue(1, false, Optional.empty(), Optional.empty(), Optional.empty(), 1);

  /// Returns true if the epilogue only scales.
  public boolean onlyScales() {
    return equals(NONE.scaled(scale));
  }

  public Epilogue scaled(float amount) {
    return new Epilogue(amount, accumulate, bias, preActivation, amax, outScale);
  }

  Epilogue shifted(int rows) {
    return new Epilogue(
        scale, accumulate, bias, preActivation.map(kept -> kept.shifted(rows)), amax, outScale);
  }
}
