package braid;

import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Flight;
import braid.internal.pipeline.Plan;
import braid.model.BraidException;
import java.util.function.IntConsumer;
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
    this.call = Call.of("run of `%s, %s`".formatted(plan.spec(), plan.tuning()));
    this.name = name;
    this.epoch = group.context().waits().epoch();
    this.round = group.calls().round();
  }

  /// One iteration, to its end on this rank.
  void run(int iteration) {
    begin();
    try {
      group.calls().enter(call);
      long begin = System.nanoTime();
      count(plan.turn(iteration));
      plan.launch();
      enqueueNanos = System.nanoTime() - begin;
      plan.synchronize(this::end);
    } catch (RuntimeException | Error e) {
      breakOff(e);
      throw e;
    }
  }

  /// That many iterations in flight, to the end of all of them on this rank. Returns the
  /// nanoseconds between the ends of consecutive iterations.
  ///
  /// @param before called before each iteration is enqueued, with the number of those that have
  ///   ended
  long[] runInFlight(int iterations, IntConsumer before) {
    begin();
    try (var flight = new Flight(plan, iterations, this::end)) {
      for (int i = 0; i < iterations; i++) {
        before.accept(flight.ended());
        group.calls().enter(call);
        count(flight.launch());
      }
      return flight.finish();
    } catch (RuntimeException | Error e) {
      breakOff(e);
      throw e;
    }
  }

  private String end() {
    return "the end of an iteration of " + name.get();
  }

  private void count(boolean replayed) {
    if (replayed) {
      group.counting().add(Counter.REPLAYS);
    }
  }

  private void breakOff(Throwable cause) {
    broken = cause;
    plan.spoil();
    if (group.calls().failed()) {
      // What its streams wait for does not come, and the next round will not tell them.
      plan.rest();
    }
  }

  /// Refuses to go on in the epoch in which an iteration broke off.
  private void begin() {
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
  }

  private void agree() {
    var mine = broken == null ? "" : String.valueOf(broken.getMessage());
    var said = group.gather(mine);
    for (int rank = 0; rank < said.size() && broken == null; rank++) {
      if (!said.get(rank).isEmpty()) {
        broken = new BraidException("rank %d: %s".formatted(rank, said.get(rank)));
        plan.spoil();
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
