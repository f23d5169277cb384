package braid.natives.blaslt;

import braid.natives.blaslt.Lt.Layout;
import braid.natives.blaslt.Lt.Problem;
import braid.natives.load.Feature;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/// Known limits of cublasLt, checked before it is called, so that a refusal names the rule.
final class Rules {
  private static final int FP8_MULTIPLE = 16;
  private static final int ALIGNMENT_BYTES = 16;

  private Rules() {}

  static Optional<String> cannot(Problem problem) {
    return shapes(problem).or(() -> types(problem)).or(() -> fp8(problem)).or(() -> batch(problem));
  }

  /// Returns why GPUs of this compute capability cannot solve the problem; empty if they can.
  static Optional<String> cannot(Problem problem, String capability) {
    return problem.a().type().isFp8()
        ? Feature.FP8.refusal(capability).flatMap(reason -> because("fp8 " + reason))
        : Optional.empty();
  }

  private static Optional<String> shapes(Problem problem) {
    var a = problem.a();
    var b = problem.b();
    var d = problem.d();
    if (a.rows() != d.rows() || b.columns() != d.columns() || a.columns() != b.rows()) {
      return because(
          "a is %s, b is %s and d is %s, which cannot be multiplied"
              .formatted(a.size(), b.size(), d.size()));
    }
    if (d.transposed()) {
      return because("d is stored by columns and must be stored by rows");
    }
    return shape("a", a).or(() -> shape("b", b)).or(() -> shape("d", d));
  }

  private static Optional<String> shape(String name, Layout layout) {
    if (layout.rows() < 1 || layout.columns() < 1) {
      return because("%s is %s and must be at least 1 x 1".formatted(name, layout.size()));
    }
    return layout.stride() < layout.storedColumns()
        ? because(
            "%s has rows of %d numbers that begin %d apart"
                .formatted(name, layout.storedColumns(), layout.stride()))
        : Optional.empty();
  }

  private static Optional<String> types(Problem problem) {
    var a = problem.a().type();
    var b = problem.b().type();
    var d = problem.d().type();
    if (a.isFp8() != b.isFp8() || (!a.isFp8() && a != b)) {
      return because("a is %s and b is %s; they must be the same, or both fp8".formatted(a, b));
    }
    if (a == Lt.Type.E5M2 && b == Lt.Type.E5M2) {
      return because("E5M2 times E5M2 is not supported; make one of them E4M3");
    }
    var results = results(a, b);
    return results.contains(d)
        ? Optional.empty()
        : because("%s times %s gives one of %s but d is %s".formatted(a, b, results, d));
  }

  private static Set<Lt.Type> results(Lt.Type a, Lt.Type b) {
    return switch (a) {
      case FP32 -> EnumSet.of(Lt.Type.FP32);
      case TF32 -> EnumSet.of(Lt.Type.FP32, Lt.Type.TF32);
      case BF16 -> EnumSet.of(Lt.Type.FP32, Lt.Type.BF16);
      case FP16 -> EnumSet.of(Lt.Type.FP32, Lt.Type.FP16);
      case E4M3, E5M2 -> {
        var results = EnumSet.of(Lt.Type.FP32, Lt.Type.BF16, Lt.Type.FP16, Lt.Type.E4M3);
        if (a != b) {
          results.add(Lt.Type.E5M2);
        }
        yield results;
      }
    };
  }

  private static Optional<String> fp8(Problem problem) {
    if (!problem.a().type().isFp8()) {
      return Optional.empty();
    }
    if (problem.a().transposed() || !problem.b().transposed()) {
      return because("fp8 needs a stored by rows and b stored by columns");
    }
    var k = problem.a().columns();
    var n = problem.d().columns();
    if (k % FP8_MULTIPLE != 0 || n % FP8_MULTIPLE != 0) {
      return because(
          "fp8 needs k and n in multiples of %d but they are %d and %d"
              .formatted(FP8_MULTIPLE, k, n));
    }
    if (problem.bias() && problem.d().type() == Lt.Type.FP32) {
      return because("fp8 with a result in FP32 takes a bias in BF16 only; make the result BF16");
    }
    return aligned("a", problem.a(), problem.batchStrideA())
        .or(() -> aligned("b", problem.b(), problem.batchStrideB()))
        .or(() -> aligned("d", problem.d(), problem.batchStrideD()));
  }

  private static Optional<String> aligned(String name, Layout layout, long batchStride) {
    var bytes = layout.alignmentBytes(batchStride);
    return bytes < ALIGNMENT_BYTES
        ? because(
            ("fp8 needs rows that begin at multiples of %d bytes but those of %s begin at multiples"
                    + " of %d")
                .formatted(ALIGNMENT_BYTES, name, bytes))
        : Optional.empty();
  }

  private static Optional<String> batch(Problem problem) {
    if (problem.batch() < 1) {
      return because(
          "a batch must have at least 1 multiplication but has %d".formatted(problem.batch()));
    }
    return problem.smTarget() < 0
        ? because("the target is %d multiprocessors; 0 means all".formatted(problem.smTarget()))
        : Optional.empty();
  }

  private static Optional<String> because(String reason) {
    return Optional.of("cublasLt cannot: " + reason);
  }
}
