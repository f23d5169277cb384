package braid.schedule;

import braid.GemmSpec;
import braid.Overlap;
import java.util.Optional;

/// Plans a problem and its tuning.
final class GemmPlanner {
  private GemmPlanner() {}

  static Schedule plan(GemmSpec spec, Overlap how, int ranks) {
    var builder = Schedule.on(new Goal.Gemm(spec, Optional.of(how)), ranks);
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM, GEMM_BESIDE_ALL_GATHER ->
          new GatherPlanner(builder, spec, how, ranks).plan();
      case GEMM_REDUCE_SCATTER, GEMM_BESIDE_REDUCE_SCATTER ->
          new ScatterPlanner(builder, spec, how, ranks).plan();
      case GEMM_ALL_REDUCE ->
          OneShotPlanner.plans(how, ranks)
              ? new OneShotPlanner(builder, spec, how, ranks).plan()
              : new ScatterPlanner(builder, spec, how, ranks).plan();
    };
  }
}
