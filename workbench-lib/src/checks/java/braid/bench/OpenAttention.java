package braid.bench;

import braid.Chain;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Attention on a group. All methods work on the same inputs. Equal work has inputs of its own, on
/// a group of this rank alone.
final class OpenAttention implements OpenWorkload {
  private final ProcessGroup group;
  private final AttentionWorkload workload;
  private final Inputs inputs;

  OpenAttention(ProcessGroup group, AttentionWorkload workload) {
    this.group = group;
    this.workload = workload;
    inputs = new Inputs(group, workload.spec());
  }

  @Override
  public BuiltForm build(Form form) {
    var tuning = (ContextParallel) form.tuning();
    if (!form.name().equals(workload.alone())) {
      return inputs.build(tuning);
    }
    var alone = group.subset("bench-alone-" + group.rank(), group.rank());
    var equal = new Inputs(alone, workload.equalWork());
    try {
      var built = equal.build(tuning);
      return new BuiltForm(
          built.timing(),
          () -> {
            built.close();
            equal.close();
          });
    } catch (RuntimeException | Error e) {
      equal.close();
      throw e;
    }
  }

  @Override
  public void close() {
    inputs.close();
  }

  /// Query, key and value, and the output's gradient if there is a backward pass.
  private final class Inputs implements AutoCloseable {
    private final ProcessGroup group;
    private final AttentionSpec spec;
    private final List<SymmetricTensor> all = new ArrayList<>();

    Inputs(ProcessGroup group, AttentionSpec spec) {
      this.group = group;
      this.spec = spec;
      try {
        random(spec.heads());
        random(spec.kvHeads());
        random(spec.kvHeads());
        if (workload.hasBackward()) {
          random(spec.heads());
        }
      } catch (RuntimeException | Error e) {
        close();
        throw e;
      }
    }

    private void random(int heads) {
      long rows =
          IntStream.range(0, group.size())
              .mapToLong(rank -> Tokens.of(spec, group.size(), rank).count())
              .max()
              .orElseThrow();
      var tensor =
          SymmetricTensor.on(group)
              .shape(rows, (long) heads * spec.headSize())
              .dtype(spec.dtype())
              .allocate();
      all.add(tensor);
      tensor.local().fillRandom(all.size() + 31L * group.rank());
    }

    BuiltForm build(ContextParallel tuning) {
      var attention =
          Pipeline.on(group)
              .attention(spec)
              .overlap(tuning)
              .query(all.get(0))
              .key(all.get(1))
              .value(all.get(2))
              .build();
      if (!workload.hasBackward()) {
        return new BuiltForm(attention::time, attention::close);
      }
      try {
        var gradient =
            Pipeline.on(group)
                .attention(workload.gradient(spec))
                .overlap(tuning)
                .backward(attention)
                .outputGradient(all.get(3))
                .build();
        return new BuiltForm(
            Chain.of(attention, gradient)::time,
            () -> {
              gradient.close();
              attention.close();
            });
      } catch (RuntimeException | Error e) {
        attention.close();
        throw e;
      }
    }

    @Override
    public void close() {
      all.reversed().forEach(SymmetricTensor::close);
    }
  }
}
