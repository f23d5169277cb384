package braid.internal.cuda.device;

import braid.natives.cuda.GpuStream;

/// Work of which everything is decided: it only has to be enqueued, as often as one likes.
@FunctionalInterface
public interface Launch {
  void on(GpuStream stream);

  /// Where there is nothing to do.
  Launch NOTHING = stream -> {};
}
