package braid.launcher.soak;

import java.time.Duration;
import java.util.Optional;

/// A live session under attack.
interface Victim extends AutoCloseable {
  /// Kind of the session: `headless` or `jupyter`.
  String name();

  /// Process whose children are the ranks.
  long front();

  /// Starts a cell; the limit applies if this kind of session has limits.
  VictimCell begin(String code, Optional<Duration> limit);

  /// Returns true if cells can have a time limit.
  boolean hasLimits();

  /// Interrupts the running cell, as this session's user does.
  void interrupt();

  /// Replaces the front and its ranks, in whatever state they are.
  void renew();

  @Override
  void close();
}
