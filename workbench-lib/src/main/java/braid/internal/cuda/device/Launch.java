package braid.internal.cuda.device;

import braid.natives.cuda.GpuStream;

/// Prepared work that can be enqueued on a stream any number of times.
@FunctionalInterface
public interface Launch {
  void on(GpuStream stream);

  /// A launch without work.
  Launch NOTHING = stream -> {};
}
