package tuned;

import braid.Pipeline;
import braid.ProcessGroup;
import braid.model.GemmSpec;
import braid.model.Overlap;

/// A layer of your own, which knows its problem and is built with any tuning.
final class Layer {
  private final GemmSpec problem;

  Layer(int tokens, int width, int features) {
    problem = GemmSpec.allGatherGemm(tokens, width, features);
  }

  GemmSpec problem() {
    return problem;
  }

  Pipeline on(ProcessGroup group, Overlap tuning) {
    return Pipeline.on(group).gemm(problem).overlap(tuning).build();
  }
}
