package braid.internal.host;

import braid.internal.work.Transfer;
import java.util.function.Supplier;

/// Copies bytes between ranks.
public sealed interface Mover extends AutoCloseable permits CopyEngine, CopyWorkers {
  /// Copies bytes that were ready at a time of [System#nanoTime], and returns the time at which the
  /// link has delivered them.
  long copy(Supplier<String> description, Transfer transfer, long readyNanos);

  /// Does work that reads that number of bytes over the link, as one transfer. Returns the time at
  /// which the link has delivered them.
  long carry(Supplier<String> description, long bytes, long readyNanos, Runnable work);

  /// Drops copies that have not begun and waits for those that have.
  void quiesce();

  @Override
  void close();
}
