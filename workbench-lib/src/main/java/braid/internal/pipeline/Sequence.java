package braid.internal.pipeline;

import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.work.Work;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Plans that run as one: stages in order, the plans of a stage concurrently. Stages follow each
/// other on this rank without the host:
///
/// ```
/// stage 0 | plan a       |                  begins after the previous iteration
///         | plan b |     |
/// stage 1                | plan c |         begins when all streams of a and b have ended
/// ```
///
/// Within a rank a plan starts as if the host had synchronized before it; between ranks its own
/// signals synchronize.
public final class Sequence {
  private static final Work FORK = Work.of(() -> "the end of the previous iteration");
  private static final Work STAGE = Work.of(() -> "the end of the previous stage");

  private final List<List<Plan>> stages;
  private final List<Plan> plans;

  /// @param stages one or more stages of one or more plans each
  public Sequence(List<List<Plan>> stages) {
    this.stages = stages.stream().map(List::copyOf).toList();
    this.plans = this.stages.stream().flatMap(List::stream).toList();
  }

  public List<Plan> plans() {
    return plans;
  }

  /// Returns the stream on which iterations begin and end.
  Stream first() {
    return plans.getFirst().streams().getFirst();
  }

  /// Advances to the next iteration. Returns whether all of it is replayed.
  public boolean turn(int iteration) {
    boolean recorded = true;
    for (var plan : plans) {
      recorded &= plan.turn(iteration);
    }
    return recorded;
  }

  /// Enqueues the current iteration.
  ///
  /// @param before end of the previous iteration on [#first]; null if none is in flight
  public void launch(@Nullable Event before) {
    var from = before;
    var stream = first();
    var work = FORK;
    for (int i = 0; i < stages.size(); i++) {
      var stage = stages.get(i);
      if (from != null) {
        for (var plan : stage) {
          plan.follow(work, from, stream);
        }
      }
      stage.forEach(Plan::launch);
      if (i < stages.size() - 1) {
        stream = join(stage);
        from = stream.mark();
        work = STAGE;
      }
    }
  }

  /// Makes [#first] wait for the end of the iteration.
  void join() {
    var stream = join(stages.getLast());
    if (!stream.equals(first())) {
      first().await(STAGE, stream.mark());
    }
  }

  /// Makes one stream of a stage wait for all others.
  private static Stream join(List<Plan> stage) {
    var stream = stage.getFirst().streams().getFirst();
    for (var plan : stage) {
      plan.join();
      var end = plan.streams().getFirst();
      if (!end.equals(stream)) {
        stream.await(STAGE, end.mark());
      }
    }
    return stream;
  }

  int maxInFlight() {
    return plans.stream().mapToInt(Plan::maxInFlight).min().orElseThrow();
  }

  /// Returns the condition that one of the streams waits for, for messages.
  Optional<String> waitingFor() {
    return plans.stream().flatMap(plan -> plan.waitingFor().stream()).findFirst();
  }

  /// Notifies the plans that all iterations except the last `inFlight` have ended.
  void settled(int inFlight) {
    plans.forEach(plan -> plan.settled(inFlight));
  }

  /// Waits until all enqueued work is done.
  public void synchronize(Supplier<String> description) {
    plans.forEach(plan -> plan.synchronize(description));
  }
}
