package braid.internal.backend;

/// Compiled work that can be given to its streams again and again. Launches may be in flight
/// together: each begins when the one before has ended on all streams, either because the launch is
/// one piece of work on the first stream, or because the caller joins the streams.
public interface Executable extends AutoCloseable {
  /// The most launches in flight, for any kind of work. Enough to hide a hiccup of the host; a
  /// failure still ends all of them soon.
  int MOST_IN_FLIGHT = 8;

  /// Gives all of it to its streams, for the turn they are at.
  void launch();

  /// Whether a launch is one piece of work on the first stream, which follows the launch before by
  /// itself.
  default boolean isWhole() {
    return false;
  }

  /// How many launches may be in flight before the caller waits for the first to end.
  default int mostInFlight() {
    return MOST_IN_FLIGHT;
  }

  @Override
  void close();
}
