package braid;

import braid.internal.backend.Stream;
import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Plan;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Runs a plan again and again. Once an iteration has broken off its ranks may be at different
/// steps, so there is none after it until the next epoch begins. Where ranks called different
/// things they agree, before the next iteration, whether it broke off on any of them.
final class Iterations {
  private final ProcessGroup group;
  private final Plan plan;
  private final Call call;
  private final Supplier<String> name;
  private int epoch;
  private int round;
  private long enqueueNanos;
  private @Nullable Throwable broken;

  /// @param name what runs, as messages call it
  Iterations(ProcessGroup group, Plan plan, Supplier<String> name) {
    this.group = group;
    this.plan = plan;
    this.call = Call.of("run of `%s, %s`".formatted(plan.spec(), plan.how()));
    this.name = name;
    this.epoch = group.context().waits().epoch();
    this.round = group.calls().round();
  }

  /// One iteration, to its end on this rank.
  void run(int iteration) {
    int current = group.context().waits().epoch();
    int currentRound = group.calls().round();
    if (epoch != current) {
      epoch = current;
      broken = null;
      plan.beginEpoch();
    } else if (round != currentRound) {
      agree();
    }
    round = currentRound;
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
      if (group.calls().failed()) {
        // What its streams wait for does not come, and the next round will not tell them.
        plan.streams().forEach(Stream::rest);
      }
      throw e;
    }
  }

  private void agree() {
    var mine = broken == null ? "" : String.valueOf(broken.getMessage());
    var said = group.gather(mine);
    for (int rank = 0; rank < said.size() && broken == null; rank++) {
      if (!said.get(rank).isEmpty()) {
        broken = new BraidException("rank %d: %s".formatted(rank, said.get(rank)));
        plan.rig().spoil();
      }
    }
  }

  /// For how long the last one took this rank's thread to give out.
  long enqueueNanos() {
    return enqueueNanos;
  }

  /// Whether its ranks are known to be at the same step, so that another pipeline can go on with
  /// the plan.
  boolean inStep() {
    return broken == null
        && epoch == group.context().waits().epoch()
        && round == group.calls().round();
  }
}
