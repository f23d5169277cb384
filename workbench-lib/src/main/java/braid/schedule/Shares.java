package braid.schedule;

import braid.model.GemmSpec;

/// One rank's share of a problem.
///
/// @param input the rank's rows of the input
/// @param inner the rank's part of the depth (k)
/// @param columns the rank's columns of the weight and the output
/// @param output the rank's rows of the output
public record Shares(Slice input, Slice inner, Slice columns, Slice output) {
  public static Shares of(GemmSpec spec, int ranks, int rank) {
    var m = new Slice(0, spec.m());
    var n = new Slice(0, spec.n());
    var k = new Slice(0, spec.k());
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> new Shares(m.part(ranks, rank), k, n.part(ranks, rank), m);
      case GEMM_REDUCE_SCATTER -> new Shares(m, k.part(ranks, rank), n, m.part(ranks, rank));
      case GEMM_ALL_REDUCE -> new Shares(m, k.part(ranks, rank), n, m);
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> new Shares(m, k, n, m);
    };
  }
}
