package braid.internal.backend;

/// Compiled work that can be launched on its streams any number of times. Several launches may be
/// in flight: each begins when the previous one has ended on all streams, either because a launch
/// is one operation on the first stream, or because the caller joins the streams.
public interface Executable extends AutoCloseable {
  /// Upper limit of launches in flight: enough to hide a delay of the host, few enough that a
  /// failure ends all of them soon.
  int MOST_IN_FLIGHT = 8;

  /// Enqueues all work on its streams, for their current turn.
  void launch();

  /// Returns true if a launch is one operation on the first stream, ordered after the previous
  /// launch without joins.
  default boolean isWhole() {
    return false;
  }

  /// Number of launches that may be in flight before the caller waits for the oldest.
  default int mostInFlight() {
    return MOST_IN_FLIGHT;
  }

  @Override
  void close();
}
