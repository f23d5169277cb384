package braid.launcher.soak;

import java.time.Duration;
import java.util.Optional;

/// A live session under attack.
interface Victim extends AutoCloseable {
  /// `headless` or `jupyter`.
  String name();

  /// The process that ranks are children of.
  long front();

  /// Begins a cell; with a limit where this kind of session has limits.
  RunningCell begin(String code, Optional<Duration> limit);

  /// Whether cells can be given a time limit.
  boolean hasLimits();

  /// Stops the cell that runs, as this session's user does.
  void interrupt();

  /// Another front with other ranks, whatever has become of these.
  void renew();

  @Override
  void close();
}
