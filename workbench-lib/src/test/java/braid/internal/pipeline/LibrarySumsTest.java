package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.DType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The bound of sums that a library adds in its own order.
class LibrarySumsTest {
  private static final int MOST_PARTS = 16;

  /// Adds random pairs until one is left, and rounds each sum to the type.
  private static float addedInAnyOrder(List<Float> parts, DType type, Random random) {
    var left = new ArrayList<>(parts);
    while (left.size() > 1) {
      Collections.shuffle(left, random);
      float sum = left.removeLast() + left.removeLast();
      left.add(type.round(sum));
    }
    return left.getFirst();
  }

  private static float reference(List<Float> parts, DType type) {
    float sum = 0;
    for (float part : parts) {
      sum += part;
    }
    return type.round(sum);
  }

  private static double magnitudes(List<Float> parts) {
    return parts.stream().mapToDouble(part -> Math.abs((double) part)).sum();
  }

  @ParameterizedTest
  @EnumSource(names = {"FP32", "BF16", "FP16"})
  void everyOrderIsWithinTheBoundAndSomeComeNearIt(DType type) {
    var random = new Random(7);
    for (int count = 3; count <= MOST_PARTS; count++) {
      double share = GemmReference.additions(count, type, false).share();
      double largest = 0;
      for (int trial = 0; trial < 3_000; trial++) {
        var parts = new ArrayList<Float>();
        for (int part = 0; part < count; part++) {
          parts.add(type.round((float) random.nextGaussian()));
        }
        double error =
            Math.abs(
                (double) addedInAnyOrder(parts, type, random) - (double) reference(parts, type));
        largest = Math.max(largest, error / magnitudes(parts));
      }
      assertThat(largest).as("%d parts of %s", count, type).isBetween(share / 25, share);
    }
  }

  @Test
  void smallIntegersAreExact() {
    var random = new Random(7);
    var bound = GemmReference.additions(8, DType.BF16, true);
    for (int trial = 0; trial < 1_000; trial++) {
      var parts = new ArrayList<Float>();
      for (int part = 0; part < 8; part++) {
        parts.add((float) random.nextInt(65) - 32);
      }
      assertThat(magnitudes(parts)).isLessThanOrEqualTo(bound.exact());
      assertThat(addedInAnyOrder(parts, DType.BF16, random))
          .isEqualTo(reference(parts, DType.BF16));
    }
  }
}
