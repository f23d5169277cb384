package braid.internal.host;

import braid.internal.work.Transfer;
import java.util.function.Supplier;

/// What moves bytes between ranks.
public sealed interface Mover extends AutoCloseable permits CopyEngine, CopyWorkers {
  /// Copies what was ready at that time of [System#nanoTime], and says when the link was through
  /// with it.
  long copy(Supplier<String> description, Transfer transfer, long readyNanos);

  /// Drops what has not begun and waits for what has.
  void rest();

  @Override
  void close();
}
