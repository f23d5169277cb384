package braid.internal.resource;

import braid.model.DType;
import braid.natives.kernels.Drawn;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Access of the host to numbers in a backend's memory. The host may be unable to read that memory
/// itself: a segment may be only an address and a size on a device. Every call has completed when
/// it returns. Streams that use the memory must be at rest.
public interface Access {
  /// Bytes of one transfer between the host and memory that it cannot touch.
  int MAX_CHUNK_BYTES = 4 << 20;

  /// Returns true if the memory of this access is memory of the host.
  default boolean direct() {
    return false;
  }

  /// Returns true if the host can read and write this memory itself.
  default boolean reaches(MemorySegment memory) {
    return direct();
  }

  /// Copies into native memory of the host, of the same size.
  default void read(MemorySegment from, MemorySegment target) {
    copy(from, target);
  }

  /// Copies out of native memory of the host, of the same size.
  default void write(MemorySegment from, MemorySegment to) {
    copy(from, to);
  }

  /// Copies within memory of this access, between segments of the same size.
  void copy(MemorySegment from, MemorySegment to);

  /// Sets all numbers to the value, rounded to the type.
  void fill(DType dtype, MemorySegment memory, float value);

  /// Fills with drawn numbers, each rounded to the type.
  void draw(DType dtype, MemorySegment memory, Drawn numbers, long seed);

  /// Returns the number at the index, widened to fp32.
  default float get(DType dtype, MemorySegment memory, long index) {
    var one = new float[1];
    load(dtype, memory.asSlice(index * dtype.bytes(), dtype.bytes()), one);
    return one[0];
  }

  /// Sets the number at the index, rounded to the type.
  default void set(DType dtype, MemorySegment memory, long index, float value) {
    store(dtype, new float[] {value}, memory.asSlice(index * dtype.bytes(), dtype.bytes()));
  }

  /// Loads the first `into.length` numbers, widened to fp32, by way of a buffer of the host: one
  /// transfer per chunk, and never a second copy of a large tensor.
  default void load(DType dtype, MemorySegment memory, float[] target) {
    if (target.length == 0) {
      return;
    }
    int length = chunkLength(dtype, target.length);
    try (var arena = Arena.ofConfined()) {
      var buffer = arena.allocate((long) length * dtype.bytes(), Long.BYTES);
      for (int start = 0; start < target.length; start += length) {
        int count = Math.min(length, target.length - start);
        var chunk = buffer.asSlice(0, (long) count * dtype.bytes());
        read(memory.asSlice((long) start * dtype.bytes(), chunk.byteSize()), chunk);
        for (int i = 0; i < count; i++) {
          target[start + i] = dtype.load(chunk, i);
        }
      }
    }
  }

  /// Stores the values from the first number on, each rounded to the type, chunk by chunk as `load`
  /// does.
  default void store(DType dtype, float[] values, MemorySegment memory) {
    if (values.length == 0) {
      return;
    }
    int length = chunkLength(dtype, values.length);
    try (var arena = Arena.ofConfined()) {
      var buffer = arena.allocate((long) length * dtype.bytes(), Long.BYTES);
      for (int start = 0; start < values.length; start += length) {
        int count = Math.min(length, values.length - start);
        var chunk = buffer.asSlice(0, (long) count * dtype.bytes());
        for (int i = 0; i < count; i++) {
          dtype.store(chunk, i, values[start + i]);
        }
        write(chunk, memory.asSlice((long) start * dtype.bytes(), chunk.byteSize()));
      }
    }
  }

  private static int chunkLength(DType dtype, int count) {
    return Math.min(count, MAX_CHUNK_BYTES / dtype.bytes());
  }
}
