package braid;

import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Plan;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Runs a plan again and again. Once an iteration has broken off its ranks may be at different
/// steps, so there is none after it until the next epoch begins.
final class Iterations {
  private final ProcessGroup group;
  private final Plan plan;
  private final Call call;
  private final Supplier<String> name;
  private int epoch;
  private long enqueueNanos;
  private @Nullable Throwable broken;

  /// @param name what runs, as messages call it
  Iterations(ProcessGroup group, Plan plan, Supplier<String> name) {
    this.group = group;
    this.plan = plan;
    this.call = Call.of("run of `%s, %s`".formatted(plan.spec(), plan.how()));
    this.name = name;
    this.epoch = group.context().waits().epoch();
  }

  /// One iteration, to its end on this rank.
  void run(int iteration) {
    int current = group.context().waits().epoch();
    if (epoch != current) {
      epoch = current;
      broken = null;
      plan.beginEpoch();
    }
    if (broken != null) {
      throw new BraidException(
          "%s broke off before (%s) and its ranks may be at different steps; build it again"
              .formatted(name.get(), broken.getMessage()),
          broken);
    }
    try {
      group.calls().enter(call);
      long begin = System.nanoTime();
      boolean replayed = plan.launch(iteration);
      enqueueNanos = System.nanoTime() - begin;
      if (replayed) {
        group.counting().add(Counter.REPLAYS);
      }
      plan.synchronize(() -> "the end of an iteration of " + name.get());
    } catch (RuntimeException | Error e) {
      broken = e;
      plan.rig().spoil();
      throw e;
    }
  }

  /// For how long the last one took this rank's thread to give out.
  long enqueueNanos() {
    return enqueueNanos;
  }

  /// Of the last one.
  int epoch() {
    return epoch;
  }

  boolean brokeOff() {
    return broken != null;
  }
}
