package braid.internal.remote;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// A message between ranks of different hosts.
sealed interface Message {
  /// Sets a signal in exported memory.
  record Raise(long export, long offset, int epoch, int step) implements Message {}

  /// Writes bytes to exported memory, the first word last.
  record Store(long export, long offset, MemorySegment bytes) implements Message {}

  /// Tells an owner that the rank has no window on its exported memory any more.
  record Released(int rank, long export) implements Message {}

  /// Tells that the rank ends its connections in order.
  record Leaving(int rank) implements Message {}

  int RAISE = 1;
  int STORE = 2;
  int RELEASED = 3;
  int LEAVING = 4;

  /// Bytes of a message besides those of a store.
  int HEADER_BYTES = Integer.BYTES + 2 * Long.BYTES + 2 * Integer.BYTES;

  /// Returns the bytes that [#read] reads.
  default byte[] encoded() {
    return switch (this) {
      case Raise(long export, long offset, int epoch, int step) ->
          buffer(HEADER_BYTES, RAISE, export, offset).putInt(epoch).putInt(step).array();
      case Store(long export, long offset, MemorySegment bytes) -> {
        int length = Math.toIntExact(bytes.byteSize());
        yield buffer(HEADER_BYTES + length, STORE, export, offset)
            .putLong(length)
            .put(bytes.asByteBuffer())
            .array();
      }
      case Released(int rank, long export) -> buffer(HEADER_BYTES, RELEASED, export, rank).array();
      case Leaving(int rank) -> buffer(HEADER_BYTES, LEAVING, 0, rank).array();
    };
  }

  private static ByteBuffer buffer(int bytes, int kind, long export, long number) {
    return ByteBuffer.allocate(bytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(kind)
        .putLong(export)
        .putLong(number);
  }

  /// Reads a message; the bytes of a store are those of the memory.
  static Message read(MemorySegment memory) {
    var buffer = memory.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    int kind = buffer.getInt();
    long export = buffer.getLong();
    long number = buffer.getLong();
    return switch (kind) {
      case RAISE -> new Raise(export, number, buffer.getInt(), buffer.getInt());
      case STORE -> new Store(export, number, memory.asSlice(HEADER_BYTES, buffer.getLong()));
      case RELEASED -> new Released((int) number, export);
      case LEAVING -> new Leaving((int) number);
      default -> throw new IllegalStateException("no message has number " + kind);
    };
  }

  /// Applies a store: readers of the first word see 0 until all bytes are there.
  static void store(MemorySegment target, MemorySegment bytes) {
    var word = ValueLayout.JAVA_LONG.varHandle();
    word.setOpaque(target, 0L, 0L);
    VarHandle.storeStoreFence();
    long rest = bytes.byteSize() - Long.BYTES;
    MemorySegment.copy(bytes, Long.BYTES, target, Long.BYTES, rest);
    word.setRelease(target, 0L, bytes.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
  }
}
