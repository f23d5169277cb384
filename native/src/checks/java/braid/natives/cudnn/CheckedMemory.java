package braid.natives.cudnn;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.ElementType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/// Memory of a GPU for one check at a time, with numbers in 16 bits and in fp32.
final class CheckedMemory {
  private final Gpu gpu;
  private final GpuStream stream;
  private final List<Long> allocations = new ArrayList<>();

  CheckedMemory(Gpu gpu, GpuStream stream) {
    this.gpu = gpu;
    this.stream = stream;
  }

  /// Allocates memory filled with NaN, so that a number that is not written is found.
  long allocate(long bytes) {
    long address = gpu.allocate(Math.max(bytes, 1));
    allocations.add(address);
    gpu.fill(address, (byte) 0xff, Math.max(bytes, 1));
    return address;
  }

  void free() {
    stream.synchronize();
    allocations.forEach(gpu::free);
    allocations.clear();
  }

  long narrow(AttentionProblem.Type type, double[] numbers) {
    var shorts = new short[numbers.length];
    for (int i = 0; i < shorts.length; i++) {
      shorts[i] = encode(type, (float) numbers[i]);
    }
    return put(MemorySegment.ofArray(shorts));
  }

  long wide(double[] numbers) {
    var floats = new float[numbers.length];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = (float) numbers[i];
    }
    return put(MemorySegment.ofArray(floats));
  }

  @SuppressWarnings("restricted")
  long put(MemorySegment content) {
    long bytes = content.byteSize();
    long address = allocate(bytes);
    long pinned = gpu.allocatePinned(bytes);
    MemorySegment.ofAddress(pinned).reinterpret(bytes).copyFrom(content);
    gpu.copy(address, pinned, bytes);
    gpu.freePinned(pinned);
    return address;
  }

  @SuppressWarnings("restricted")
  private byte[] get(long address, long bytes) {
    long pinned = gpu.allocatePinned(bytes);
    gpu.copy(pinned, address, bytes);
    var content = MemorySegment.ofAddress(pinned).reinterpret(bytes).toArray(ValueLayout.JAVA_BYTE);
    gpu.freePinned(pinned);
    return content;
  }

  double[] read(AttentionProblem.Type type, long address, int count) {
    var from = MemorySegment.ofArray(get(address, 2L * count));
    var numbers = new double[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = decode(type, from.get(ValueLayout.JAVA_SHORT_UNALIGNED, (long) i * Short.BYTES));
    }
    return numbers;
  }

  double[] floats(long address, int count) {
    var from = MemorySegment.ofArray(get(address, 4L * count));
    var numbers = new double[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = from.get(ValueLayout.JAVA_FLOAT_UNALIGNED, (long) i * Float.BYTES);
    }
    return numbers;
  }

  /// Returns the nearest number of the type.
  static double round(AttentionProblem.Type type, double number) {
    return decode(type, encode(type, (float) number));
  }

  private static short encode(AttentionProblem.Type type, float number) {
    return (short) ElementType.valueOf(type.name()).narrow(number);
  }

  private static float decode(AttentionProblem.Type type, short number) {
    return ElementType.valueOf(type.name()).widen(number);
  }
}
