package braid.internal.pipeline;

import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.run.Launchable;
import braid.internal.work.Work;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Plans that run as one: stages in order, the plans of a stage concurrently. A sequence may take
/// the place of a plan. Stages follow each other on this rank without the host:
///
/// ```
/// stage 0 | plan a       |                  begins after the previous iteration
///         | plan b |     |
/// stage 1                | plan c |         begins when all streams of a and b have ended
/// ```
///
/// Within a rank a plan starts as if the host had synchronized before it; between ranks its own
/// signals synchronize.
public final class Sequence implements Launchable {
  private static final Work FORK = Work.of(() -> "the end of the previous iteration");
  private static final Work STAGE = Work.of(() -> "the end of the previous stage");

  private final List<List<Launchable>> stages;
  private final List<Launchable> members;

  /// @param stages one or more stages of one or more plans or sequences each
  public Sequence(List<List<Launchable>> stages) {
    this.stages = stages.stream().map(List::copyOf).toList();
    this.members = this.stages.stream().flatMap(List::stream).toList();
  }

  @Override
  public Stream first() {
    return members.getFirst().first();
  }

  @Override
  public boolean turn(int iteration) {
    boolean recorded = true;
    for (var member : members) {
      recorded &= member.turn(iteration);
    }
    return recorded;
  }

  @Override
  public void follow(Work work, Event end, Stream stream) {
    follow(stages.getFirst(), work, end, stream);
  }

  private static void follow(List<Launchable> stage, Work work, Event end, Stream stream) {
    stage.forEach(member -> member.follow(work, end, stream));
  }

  /// Enqueues the current iteration.
  ///
  /// @param before end of the previous iteration on [#first]; null if none is in flight
  public void launch(@Nullable Event before) {
    if (before != null) {
      follow(FORK, before, first());
    }
    launch();
  }

  @Override
  public void launch() {
    for (int i = 0; i < stages.size(); i++) {
      if (i > 0) {
        var stream = join(stages.get(i - 1));
        follow(stages.get(i), STAGE, stream.mark(), stream);
      }
      stages.get(i).forEach(Launchable::launch);
    }
  }

  @Override
  public void join() {
    var stream = join(stages.getLast());
    if (!stream.equals(first())) {
      first().await(STAGE, stream.mark());
    }
  }

  /// Makes one stream of a stage wait for all others.
  private static Stream join(List<Launchable> stage) {
    var stream = stage.getFirst().first();
    for (var member : stage) {
      member.join();
      var end = member.first();
      if (!end.equals(stream)) {
        stream.await(STAGE, end.mark());
      }
    }
    return stream;
  }

  @Override
  public int maxInFlight() {
    return members.stream().mapToInt(Launchable::maxInFlight).min().orElseThrow();
  }

  @Override
  public Optional<String> waitingFor() {
    return members.stream().flatMap(member -> member.waitingFor().stream()).findFirst();
  }

  @Override
  public void settled(int inFlight) {
    members.forEach(member -> member.settled(inFlight));
  }

  @Override
  public void synchronize(Supplier<String> description) {
    members.forEach(member -> member.synchronize(description));
  }
}
