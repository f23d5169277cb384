package braid.model;

import org.jspecify.annotations.Nullable;

/// What stored FP8 numbers of the two operands are multiplied by to be what they mean.
public record Scales(float input, float weight) {
  public Scales {
    float product = input * weight;
    if (!(input > 0) || !(weight > 0) || !Float.isFinite(product) || product == 0) {
      throw new BraidException(
          "scales must be more than 0 and finite, and so must be their product, but were %s and %s"
              .formatted(input, weight));
    }
  }

  public float product() {
    return input * weight;
  }

  /// What sums of stored products are multiplied by; scales that are missing, or are given to
  /// numbers that need none, are errors.
  public static float product(GemmSpec spec, @Nullable Scales given) {
    if (spec.isScaled() && given == null) {
      throw new BraidException(
          "%s numbers mean nothing without scales, and none were given; say scales(1, 1), or what"
                  .formatted(spec.dtype().isFp8() ? spec.dtype() : spec.weightDtype())
              + " your numbers were divided by");
    }
    if (!spec.isScaled() && given != null) {
      throw new BraidException(
          "scales are for fp8 but the type is %s; leave them out".formatted(spec.dtype()));
    }
    return given == null ? 1 : given.product();
  }

  @Override
  public String toString() {
    return "scales %s and %s".formatted(input, weight);
  }
}
