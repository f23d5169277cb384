package braid.internal.cuda.device;

import braid.natives.cuda.GpuStream;

/// Enqueues prepared work; may be called any number of times.
@FunctionalInterface
public interface Launch {
  void on(GpuStream stream);

  /// A launch without work.
  Launch NOTHING = stream -> {};
}
