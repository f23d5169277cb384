package braid.internal.run;

import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.work.Work;
import java.util.Optional;
import java.util.function.Supplier;

/// Work of repeated iterations on streams of this rank: a [Link], or several in a sequence. It only
/// enqueues; the caller waits.
public interface Launchable {
  /// Returns the stream on which iterations begin and end.
  Stream first();

  /// Advances to the next iteration. Returns whether all of it is replayed from a recording.
  boolean turn(int iteration);

  /// Makes the streams that begin the iteration wait for an event of stream `stream`.
  void follow(Work work, Event end, Stream stream);

  /// Enqueues the current iteration.
  void launch();

  /// Makes [#first] wait for the end of the iteration.
  void join();

  /// Returns the maximum number of iterations in flight.
  int maxInFlight();

  /// Returns the condition that one of the streams waits for, for messages.
  Optional<String> waitingFor();

  /// Notifies the streams that all iterations except the last `inFlight` have ended.
  void settled(int inFlight);

  /// Waits until all enqueued work is done.
  void synchronize(Supplier<String> description);
}
