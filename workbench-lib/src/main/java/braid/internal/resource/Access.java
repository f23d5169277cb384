package braid.internal.resource;

import braid.model.DType;
import java.lang.foreign.MemorySegment;

/// How the host gets at numbers in a backend's memory, which it may not be able to touch itself: a
/// segment may be no more than an address and a size on a device. Whatever is asked is done when
/// the call returns; streams that use the memory must have come to rest before.
public interface Access {
  /// Whether the host can read and write the memory itself.
  default boolean direct() {
    return false;
  }

  /// Copies into native memory of the host, of the same size.
  void read(MemorySegment from, MemorySegment into);

  /// Copies out of native memory of the host, of the same size.
  void write(MemorySegment from, MemorySegment to);

  /// Copies within memory that this access is to, as much as both have.
  void copy(MemorySegment from, MemorySegment to);

  /// Sets all numbers to that value, rounded to the type.
  void fill(DType dtype, MemorySegment memory, float value);

  /// Fills with [braid.natives.kernels.Integers] from the first on.
  void fillIntegers(DType dtype, MemorySegment memory, long seed);

  /// The number at that place, widened.
  default float get(DType dtype, MemorySegment memory, long index) {
    var one = new float[1];
    load(dtype, memory.asSlice(index * dtype.bytes(), dtype.bytes()), one);
    return one[0];
  }

  /// Puts the value at that place, rounded to the type.
  default void set(DType dtype, MemorySegment memory, long index, float value) {
    store(dtype, new float[] {value}, memory.asSlice(index * dtype.bytes(), dtype.bytes()));
  }

  /// As many numbers as there is room for, from the first on, widened.
  default void load(DType dtype, MemorySegment memory, float[] into) {
    InChunks.load(this, dtype, memory, into);
  }

  /// Puts the values there, from the first on, each rounded to the type.
  default void store(DType dtype, float[] values, MemorySegment memory) {
    InChunks.store(this, dtype, values, memory);
  }
}
