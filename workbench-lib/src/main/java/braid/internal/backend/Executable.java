package braid.internal.backend;

/// Compiled work that can be launched on its streams any number of times. Several launches may be
/// in flight: each begins when the previous one has ended on all streams, either because a launch
/// is one operation on the first stream, or because the caller joins the streams.
public interface Executable extends AutoCloseable {
  /// Maximum number of launches in flight: enough to hide delays of the host, and few enough to end
  /// soon after a failure.
  int MAX_IN_FLIGHT = 8;

  /// Enqueues all work of the streams' current step.
  void launch();

  /// Returns true if a launch is one operation on the first stream, ordered after the previous
  /// launch without joins.
  default boolean isSingleOperation() {
    return false;
  }

  /// Number of launches that may be in flight before the caller waits for the oldest.
  default int maxInFlight() {
    return MAX_IN_FLIGHT;
  }

  @Override
  void close();
}
