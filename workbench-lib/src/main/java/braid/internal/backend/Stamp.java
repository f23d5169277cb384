package braid.internal.backend;

import java.util.function.Supplier;

/// A point in a stream's work with the time at which the stream reached it. May be set again once
/// the earlier time is no longer needed.
public interface Stamp extends AutoCloseable {
  /// Moves the stamp to the end of all work enqueued on its stream so far. Returns an event at the
  /// same point.
  Event set();

  /// Waits until the stream has reached the stamp. Throws a failure of the work before it.
  void await(Supplier<String> description);

  /// Nanoseconds since an earlier stamp of the same stream. Both must have been reached.
  long nanosSince(Stamp earlier);

  @Override
  void close();
}
