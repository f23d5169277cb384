package braid;

import braid.internal.memory.Call;
import braid.internal.memory.Counter;
import braid.internal.pipeline.Flight;
import braid.internal.pipeline.Sequence;
import braid.internal.rank.Need;
import braid.internal.rank.Waits;
import braid.internal.run.Link;
import braid.model.BraidException;
import braid.natives.profiling.NvtxRange;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Runs iterations of links, stage after stage. Each iteration is an NVTX range, which profilers
/// such as Nsight Systems show. The range covers the whole iteration, or only its enqueuing if
/// several iterations are in flight. After an iteration was aborted, ranks may be at different
/// steps, so no iteration starts until the next epoch.
final class Iterations {
  private final List<Member> members;
  private final List<ProcessGroup> groups;
  private final Sequence sequence;
  private final Call call;
  private final Supplier<String> name;
  private final Waits waits;
  private final Need need;
  private final NvtxRange range;
  private long enqueueNanos;

  /// A link, and whether its ranks are known to be at the same step. After ranks made different
  /// calls, they exchange before the next iteration whether any of them was aborted.
  static final class Member {
    private final ProcessGroup group;
    private final Link link;
    private final Supplier<String> name;
    private int epoch;
    private int round;
    private @Nullable Throwable abortCause;

    /// Whether an iteration was started and not awaited yet.
    private boolean running;

    /// @param name name of the link, for messages
    Member(ProcessGroup group, Link link, Supplier<String> name) {
      this.group = group;
      this.link = link;
      this.name = name;
      this.epoch = group.context().waits().epoch();
      this.round = group.calls().round();
    }

    /// Refuses to continue in the epoch in which an iteration was aborted.
    private void begin() {
      int current = group.context().waits().epoch();
      int currentRound = group.calls().round();
      if (epoch != current) {
        epoch = current;
        abortCause = null;
        running = false;
        link.beginEpoch();
      } else if (round != currentRound) {
        exchangeFailures();
      }
      round = currentRound;
      if (running) {
        throw new BraidException(
            "%s was started and not awaited; call await() on the result of start() first"
                .formatted(name.get()));
      }
      if (abortCause != null) {
        throw new BraidException(
            "%s was aborted before (%s), so its ranks may be at different steps; build it again"
                .formatted(name.get(), abortCause.getMessage()),
            abortCause);
      }
    }

    private void exchangeFailures() {
      var failure = abortCause == null ? "" : String.valueOf(abortCause.getMessage());
      var failures = group.gather(failure);
      for (int rank = 0; rank < failures.size() && abortCause == null; rank++) {
        if (!failures.get(rank).isEmpty()) {
          abortCause = new BraidException("rank %d: %s".formatted(rank, failures.get(rank)));
          link.spoil(abortCause);
        }
      }
    }

    private void abort(Throwable cause) {
      abortCause = cause;
      link.spoil(cause);
      if (group.calls().failed()) {
        // The streams wait for signals that never arrive, and the next round does not end these
        // waits.
        link.quiesce();
      }
    }

    /// Returns true if the ranks are known to be at the same step, so that another pipeline can
    /// reuse the plan.
    boolean inStep() {
      return abortCause == null
          && epoch == group.context().waits().epoch()
          && round == group.calls().round();
    }
  }

  /// @param group group whose ranks run the pipelines together
  /// @param members all links
  /// @param sequence their order
  /// @param subject description of the pipelines, the same on all ranks
  /// @param name name of the whole, for messages
  Iterations(
      ProcessGroup group,
      List<Member> members,
      Sequence sequence,
      String subject,
      Supplier<String> name) {
    this.members = List.copyOf(members);
    this.groups =
        Stream.concat(Stream.of(group), members.stream().map(member -> member.group))
            .distinct()
            .toList();
    this.sequence = sequence;
    this.call = Call.of("run of `%s`".formatted(subject));
    this.name = name;
    this.waits = group.context().waits();
    this.need = Need.of(() -> "in " + call.name(), this::absent);
    this.range = NvtxRange.named(() -> "braid " + subject);
  }

  /// Runs a call during which no other thread of this rank may run pipelines of the same groups.
  ///
  /// @param doing name of the call: "verify"
  <T> T exclusively(String doing, Supplier<T> body) {
    Supplier<String> description = () -> "%s of %s".formatted(doing, name.get());
    var nested = body;
    for (var group : groups) {
      var inner = nested;
      nested = () -> group.calls().exclusively(description, inner);
    }
    return nested.get();
  }

  void exclusively(String doing, Runnable body) {
    var _ =
        exclusively(
            doing,
            () -> {
              body.run();
              return true;
            });
  }

  /// Runs one iteration and waits for its end on this rank.
  void run(int iteration) {
    exclusively("run", () -> runAlone(iteration));
  }

  private void runAlone(int iteration) {
    members.forEach(Member::begin);
    try (var _ = range.open()) {
      launch(iteration);
      waits.calling(need, () -> sequence.synchronize(this::end));
    } catch (RuntimeException | Error e) {
      members.forEach(member -> member.abort(e));
      throw e;
    }
  }

  private void launch(int iteration) {
    enter();
    long begin = System.nanoTime();
    countReplay(sequence.turn(iteration));
    sequence.launch(null);
    enqueueNanos = System.nanoTime() - begin;
  }

  /// Enqueues one iteration and returns at once.
  Running start() {
    exclusively(
        "start",
        () -> {
          members.forEach(Member::begin);
          try {
            launch(0);
            members.forEach(member -> member.running = true);
          } catch (RuntimeException | Error e) {
            members.forEach(member -> member.abort(e));
            throw e;
          }
        });
    var running = new Running(this, waits.epoch());
    groups.getFirst().started(running);
    return running;
  }

  /// Waits for the end of a started iteration on this rank.
  void finish() {
    exclusively(
        "await",
        () -> {
          try (var _ = range.open()) {
            waits.calling(need, () -> sequence.synchronize(this::end));
          } catch (RuntimeException | Error e) {
            members.forEach(member -> member.abort(e));
            throw e;
          } finally {
            members.forEach(member -> member.running = false);
          }
        });
  }

  /// Returns the epoch of this rank.
  int epoch() {
    return waits.epoch();
  }

  /// Runs iterations with several in flight, and waits for the end of all of them on this rank.
  /// Returns the nanoseconds between the ends of consecutive iterations.
  ///
  /// @param before called before each iteration is enqueued, with the number of iterations that
  ///   have ended
  long[] runInFlight(int iterations, IntConsumer before) {
    return exclusively("run", () -> flight(iterations, before));
  }

  private long[] flight(int iterations, IntConsumer before) {
    members.forEach(Member::begin);
    try (var flight = new Flight(sequence, iterations, this::end)) {
      for (int i = 0; i < iterations; i++) {
        before.accept(flight.ended());
        try (var _ = range.open()) {
          enter();
          waits.calling(need, () -> countReplay(flight.launch()));
        }
      }
      var nanos = new ArrayList<long[]>();
      waits.calling(need, () -> nanos.add(flight.finish()));
      return nanos.getFirst();
    } catch (RuntimeException | Error e) {
      members.forEach(member -> member.abort(e));
      throw e;
    }
  }

  private void enter() {
    for (var group : groups) {
      group.calls().enter(call);
    }
  }

  /// Returns the ranks that have not begun this rank's latest iteration and that a stream or a
  /// library waits for.
  private List<Integer> absent() {
    var backend = groups.getFirst().context().backend();
    boolean all = members.stream().anyMatch(member -> member.link.waitsInLibrary());
    return groups.stream()
        .flatMap(group -> group.calls().absent().stream())
        .distinct()
        .filter(rank -> all || backend.awaits(rank))
        .toList();
  }

  private String end() {
    return "the end of an iteration of " + name.get();
  }

  private void countReplay(boolean replayed) {
    if (replayed) {
      groups.getFirst().counting().add(Counter.REPLAYS);
    }
  }

  /// Returns the nanoseconds that this rank's thread took to enqueue the last iteration.
  long enqueueNanos() {
    return enqueueNanos;
  }

  @Override
  public String toString() {
    return name.get();
  }
}
