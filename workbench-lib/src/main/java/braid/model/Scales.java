package braid.model;

import org.jspecify.annotations.Nullable;

/// Scales of FP8 numbers: the factors from stored numbers to values.
///
/// @param output scale of an FP8 output; null for another type
public record Scales(float input, float weight, @Nullable Float output) {
  /// Scales of numbers that are stored as they are.
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

  /// Creates the scales of a problem whose output is not FP8.
  public Scales(float input, float weight) {
    this(input, weight, null);
  }

  /// Returns the scales that a problem needs; missing or superfluous scales are errors.
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
          "%s needs scales but none were given; call scales(1, 1%s), or pass what"
                  .formatted(
                      spec.dtype().isFp8() ? spec.dtype() : spec.weightDtype(), fp8 ? ", 1" : "")
              + " your numbers were divided by");
    }
    if (fp8 != (given.output() != null)) {
      throw new BraidException(
          fp8
              ? "an output in %s needs a scale too but was given %s; call scales(input, weight, output)"
                  .formatted(spec.outputDtype(), given)
              : "an output in %s takes no scale but was given %s; call scales(input, weight)"
                  .formatted(spec.outputDtype(), given));
    }
    return given;
  }

  /// Returns the factor from a sum of stored products to its value.
  public float product() {
    return input * weight;
  }

  /// Returns the factor from a result to the stored number.
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
