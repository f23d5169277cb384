package braid.model;

import org.jspecify.annotations.Nullable;

/// Scales of FP8 numbers: what stored ones are multiplied by to be what they mean.
///
/// @param output of an FP8 output; null where the output is of another type
public record Scales(float input, float weight, @Nullable Float output) {
  /// Numbers that mean what they are.
  public static final Scales NONE = new Scales(1, 1);

  public Scales {
    float product = input * weight;
    if (!(input > 0) || !(weight > 0) || !Float.isFinite(product) || product == 0) {
      throw new BraidException(
          "scales must be more than 0 and finite, and so must be their product, but were %s and %s"
              .formatted(input, weight));
    }
    if (output != null && !(output > 0 && 1 / output > 0 && Float.isFinite(1 / output))) {
      throw new BraidException(
          "the output's scale must be more than 0 and finite, and so must be 1 divided by it, but was %s"
              .formatted(output));
    }
  }

  /// Of operands whose product is not stored in FP8.
  public Scales(float input, float weight) {
    this(input, weight, null);
  }

  /// The scales that a problem needs; those that are missing, or are given to numbers that need
  /// none, are errors.
  public static Scales of(GemmSpec spec, @Nullable Scales given) {
    boolean fp8 = spec.outputDtype().isFp8();
    if (!spec.isScaled()) {
      if (given != null) {
        throw new BraidException(
            "scales are for fp8 but the type is %s; leave them out".formatted(spec.dtype()));
      }
      return NONE;
    }
    if (given == null) {
      throw new BraidException(
          "%s numbers mean nothing without scales, and none were given; say scales(1, 1%s), or what"
                  .formatted(
                      spec.dtype().isFp8() ? spec.dtype() : spec.weightDtype(), fp8 ? ", 1" : "")
              + " your numbers were divided by");
    }
    if (fp8 != (given.output() != null)) {
      throw new BraidException(
          fp8
              ? "an output in %s needs a scale too but was given %s; say scales(input, weight, output)"
                  .formatted(spec.outputDtype(), given)
              : "an output in %s takes no scale but was given %s; say scales(input, weight)"
                  .formatted(spec.outputDtype(), given));
    }
    return given;
  }

  /// The factor that makes a sum of stored products what it means.
  public float product() {
    return input * weight;
  }

  /// The factor that makes a result the number that is stored.
  public float stored() {
    return output == null ? 1 : 1 / output;
  }

  @Override
  public String toString() {
    return output == null
        ? "scales %s and %s".formatted(input, weight)
        : "scales %s, %s and %s".formatted(input, weight, output);
  }
}
