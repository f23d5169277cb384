package braid.internal.pipeline;

import braid.GemmSpec;
import braid.Place;
import braid.internal.exchange.Slice;

/// What of a problem is one rank's.
///
/// @param input rows and depth of the input that the rank holds
/// @param inner depth that the rank multiplies over
/// @param columns of the weight and the output that are the rank's
/// @param output rows of the output that are the rank's
public record Sizes(Slice input, Slice inner, Slice columns, Slice output) {
  public static Sizes of(GemmSpec spec, Place place) {
    var m = new Slice(0, spec.m());
    var n = new Slice(0, spec.n());
    var k = new Slice(0, spec.k());
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> new Sizes(part(spec.m(), place), k, part(spec.n(), place), m);
      case GEMM_REDUCE_SCATTER -> new Sizes(m, part(spec.k(), place), n, part(spec.m(), place));
      case GEMM_ALL_REDUCE -> new Sizes(m, part(spec.k(), place), n, m);
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> new Sizes(m, k, n, m);
    };
  }

  private static Slice part(int total, Place place) {
    return Slice.of(total, place.size(), place.rank());
  }
}
