package braid.natives.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/// A kernel's arguments and the pointers to them. There is one instance per stream: the driver has
/// copied the arguments when the launch returns.
final class LaunchArguments {
  /// Twice the limit of every architecture, because arguments passed by value are aligned here.
  private static final int MOST_BYTES = 8192;

  private static final int MOST = 128;

  /// Alignment of everything passed by value, tensor maps included.
  private static final int ALIGNMENT_BYTES = 64;

  private final MemorySegment values = Arena.ofAuto().allocate(MOST_BYTES, ALIGNMENT_BYTES);
  private final MemorySegment pointers =
      Arena.ofAuto().allocate((long) MOST * Long.BYTES, Long.BYTES);
  private final PointerPointer<Pointer> array = new PointerArray(pointers.address());

  /// Stores the arguments for a kernel with these parameter sizes.
  PointerPointer<Pointer> of(GpuKernel kernel, Object[] arguments) {
    var sizes = kernel.parameterBytes();
    if (arguments.length != sizes.length) {
      throw new IllegalArgumentException(
          "%s takes %d arguments but received %d"
              .formatted(kernel.name(), sizes.length, arguments.length));
    }
    long index = 0;
    for (int i = 0; i < arguments.length; i++) {
      long bytes = size(kernel, i, arguments[i]);
      if (bytes != sizes[i]) {
        throw new IllegalArgumentException(
            "argument %d of %s takes %d bytes but %s has %d"
                .formatted(
                    i, kernel.name(), sizes[i], arguments[i].getClass().getSimpleName(), bytes));
      }
      if (arguments[i] instanceof MemorySegment) {
        index = roundUp(index, ALIGNMENT_BYTES);
      }
      if (i >= MOST || index + bytes > MOST_BYTES) {
        throw new IllegalArgumentException(
            "%s takes more than %d arguments or %d bytes of them; pass an address instead"
                .formatted(kernel.name(), MOST, MOST_BYTES));
      }
      put(index, arguments[i]);
      pointers.setAtIndex(ValueLayout.JAVA_LONG, i, values.address() + index);
      index = roundUp(index + bytes, Long.BYTES);
    }
    return array;
  }

  private static long size(GpuKernel kernel, int index, Object argument) {
    return switch (argument) {
      case Long _ -> Long.BYTES;
      case Integer _ -> Integer.BYTES;
      case Float _ -> Float.BYTES;
      case MemorySegment bytes -> bytes.byteSize();
      default ->
          throw new IllegalArgumentException(
              "argument %d of %s must be a Long, an Integer, a Float or a MemorySegment but is a %s"
                  .formatted(index, kernel.name(), argument.getClass().getSimpleName()));
    };
  }

  private void put(long index, Object argument) {
    switch (argument) {
      case Long value -> values.set(ValueLayout.JAVA_LONG, index, value);
      case Integer value -> values.set(ValueLayout.JAVA_INT, index, value);
      case Float value -> values.set(ValueLayout.JAVA_FLOAT, index, value);
      case MemorySegment bytes -> MemorySegment.copy(bytes, 0, values, index, bytes.byteSize());
      default -> throw new IllegalStateException("checked by size");
    }
  }

  private static long roundUp(long bytes, long multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
  }

  /// A pointer array in memory that JavaCPP does not own.
  private static final class PointerArray extends PointerPointer<Pointer> {
    PointerArray(long address) {
      super((Pointer) null);
      this.address = address;
    }
  }
}
