package braid.internal.library;

import braid.natives.cuda.GpuStream;

/// Something that a library puts on a stream of the GPU, and does not wait for.
@FunctionalInterface
public interface LibraryCall {
  void enqueue(GpuStream on);
}
