package braid.internal.resource;

import braid.model.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Numbers from and to memory that the host cannot touch, by way of a buffer that it can: one
/// transfer for many of them, and never a second copy of a large tensor.
final class InChunks {
  static final int MAX_CHUNK_BYTES = 4 << 20;

  private InChunks() {}

  static void load(Access access, DType dtype, MemorySegment memory, float[] into) {
    if (into.length == 0) {
      return;
    }
    int most = most(dtype, into.length);
    try (var arena = Arena.ofConfined()) {
      var buffer = arena.allocate((long) most * dtype.bytes(), Long.BYTES);
      for (int start = 0; start < into.length; start += most) {
        int count = Math.min(most, into.length - start);
        var chunk = buffer.asSlice(0, (long) count * dtype.bytes());
        access.read(memory.asSlice((long) start * dtype.bytes(), chunk.byteSize()), chunk);
        for (int i = 0; i < count; i++) {
          into[start + i] = dtype.load(chunk, i);
        }
      }
    }
  }

  static void store(Access access, DType dtype, float[] values, MemorySegment memory) {
    if (values.length == 0) {
      return;
    }
    int most = most(dtype, values.length);
    try (var arena = Arena.ofConfined()) {
      var buffer = arena.allocate((long) most * dtype.bytes(), Long.BYTES);
      for (int start = 0; start < values.length; start += most) {
        int count = Math.min(most, values.length - start);
        var chunk = buffer.asSlice(0, (long) count * dtype.bytes());
        for (int i = 0; i < count; i++) {
          dtype.store(chunk, i, values[start + i]);
        }
        access.write(chunk, memory.asSlice((long) start * dtype.bytes(), chunk.byteSize()));
      }
    }
  }

  private static int most(DType dtype, int count) {
    return Math.min(count, MAX_CHUNK_BYTES / dtype.bytes());
  }
}
