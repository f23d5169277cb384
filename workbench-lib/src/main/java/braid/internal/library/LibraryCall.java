package braid.internal.library;

import braid.natives.cuda.GpuStream;

/// Enqueues a library's work on a stream of the GPU, without waiting for it.
@FunctionalInterface
public interface LibraryCall {
  void enqueue(GpuStream stream);
}
