package braid.internal.backend;

import java.util.function.Supplier;

/// A point in a stream's work with the time at which the stream reached it. It can be set again
/// once nobody needs the earlier time.
public interface Stamp extends AutoCloseable {
  /// Moves it to the end of all work given to its stream so far. Returns the same point for other
  /// streams to wait for.
  Event set();

  /// Waits until the stream is there, and throws what failed before.
  void await(Supplier<String> description);

  /// Nanoseconds from an earlier stamp of the same stream; both have been reached.
  long nanosSince(Stamp earlier);

  @Override
  void close();
}
