package braid;

import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Flight;
import braid.internal.pipeline.Plan;
import java.util.function.IntConsumer;
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
    plan.rig().spoil();
  }

  /// Refuses to go on in the epoch in which an iteration broke off.
  private void begin() {
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
