package braid.bench;

import braid.Pipeline;
import braid.ProcessGroup;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Tuning;

/// A GEMM on a group. The unfused pipeline holds the inputs, which the others copy.
final class OpenGemm implements OpenWorkload {
  private final ProcessGroup group;
  private final GemmSpec spec;
  private final Pipeline first;

  OpenGemm(ProcessGroup group, GemmSpec spec) {
    this.group = group;
    this.spec = spec;
    first = pipeline(Overlap.unfused());
    first.input().fillRandom(1 + 31L * group.rank());
    first.weight().fillRandom(2 + 31L * group.rank());
    if (spec.pattern().beside()) {
      first.besideInput().fillRandom(3 + 31L * group.rank());
    }
  }

  private Pipeline pipeline(Tuning tuning) {
    return Pipeline.on(group).gemm(spec).overlap(tuning).build();
  }

  @Override
  public BuiltForm build(Form form) {
    var tuning = form.tuning();
    if (tuning.equals(first.tuning())) {
      return new BuiltForm(first::time, () -> {});
    }
    var pipe = pipeline(tuning);
    pipe.input().copyFrom(first.input());
    pipe.weight().copyFrom(first.weight());
    if (spec.pattern().beside()) {
      pipe.besideInput().copyFrom(first.besideInput());
    }
    return new BuiltForm(pipe::time, pipe::close);
  }

  @Override
  public void close() {
    first.close();
  }
}
