package braid.internal.work;

import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// What is done to a result in fp32 before it is rounded and stored, in this order:
///
/// ```java
/// value = scale * sum;
/// if (accumulate) value += output;          // what the output held before
/// if (bias) value += bias[column];
/// if (preActivation) { preActivation = value; value = gelu(value); }
/// if (amax) amax = max(amax, abs(value));
/// output = outScale * value;
/// ```
///
/// A sum of several ranks' parts is rounded before it is finished: see [Reduction].
///
/// @param bias a number for each column, of the output's [braid.model.DType#sumType]
/// @param preActivation of the output's rows and columns, of that type too
/// @param amax one fp32 number, which only grows; several streams may raise it at once
public record Epilogue(
    float scale,
    boolean accumulate,
    Optional<MemorySegment> bias,
    Optional<Matrix> preActivation,
    Optional<MemorySegment> amax,
    float outScale) {
  /// The result as it is.
  public static final Epilogue NONE =
      new Epilogue(1, false, Optional.empty(), Optional.empty(), Optional.empty(), 1);

  /// Whether nothing but scaling is done.
  public boolean onlyScales() {
    return equals(NONE.scaled(scale));
  }

  public Epilogue scaled(float by) {
    return new Epilogue(by, accumulate, bias, preActivation, amax, outScale);
  }

  Epilogue shifted(int rows) {
    return new Epilogue(
        scale, accumulate, bias, preActivation.map(kept -> kept.shifted(rows)), amax, outScale);
  }
}
