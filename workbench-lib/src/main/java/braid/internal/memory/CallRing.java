package braid.internal.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// The latest calls of one rank, in memory that other ranks read while it writes. An entry's stamp
/// is the number of its call, written last. Readers compare the stamp before and after, so that an
/// entry overwritten meanwhile is not mistaken for the earlier one.
final class CallRing {
  static final int ENTRIES = 16;
  static final int ENTRY_BYTES = 1024;
  private static final long DIGEST_OFFSET = Long.BYTES;
  private static final long LENGTH_OFFSET = DIGEST_OFFSET + Long.BYTES;
  private static final long TEXT_OFFSET = LENGTH_OFFSET + Integer.BYTES;

  static final int TEXT_BYTES = (int) (ENTRY_BYTES - TEXT_OFFSET);
  static final long BYTES = (long) ENTRIES * ENTRY_BYTES;

  private static final VarHandle STAMP = ValueLayout.JAVA_LONG.varHandle();
  private static final long BEING_WRITTEN = 0;

  private final MemorySegment memory;

  CallRing(MemorySegment memory) {
    this.memory = memory;
  }

  /// Returns the place of a call's entry.
  static long offset(long number) {
    return number % ENTRIES * ENTRY_BYTES;
  }

  /// Writes this rank's call; numbers begin with 1.
  void write(long number, Call call) {
    long offset = offset(number);
    STAMP.setOpaque(memory, offset, BEING_WRITTEN);
    VarHandle.storeStoreFence();
    memory.set(ValueLayout.JAVA_LONG, offset + DIGEST_OFFSET, call.digest());
    int length = Math.min(call.bytes().length, TEXT_BYTES);
    memory.set(ValueLayout.JAVA_INT, offset + LENGTH_OFFSET, length);
    MemorySegment.copy(
        call.bytes(), 0, memory, ValueLayout.JAVA_BYTE, offset + TEXT_OFFSET, length);
    STAMP.setRelease(memory, offset, number);
  }

  /// Result of a comparison with another rank's call.
  enum Comparison {
    /// The rank has not made the call yet.
    NOT_YET,
    /// The digests are equal.
    EQUAL,
    DIFFERENT,
    /// A later call has replaced it.
    OVERWRITTEN
  }

  /// Compares the digest of a call.
  Comparison compare(long number, long digest) {
    long offset = offset(number);
    long stamp = (long) STAMP.getAcquire(memory, offset);
    if (stamp != number) {
      return stamp > number ? Comparison.OVERWRITTEN : Comparison.NOT_YET;
    }
    long other = memory.get(ValueLayout.JAVA_LONG, offset + DIGEST_OFFSET);
    if (changed(number)) {
      return Comparison.OVERWRITTEN;
    }
    return other == digest ? Comparison.EQUAL : Comparison.DIFFERENT;
  }

  /// Reads a call; the result is valid only if the entry has not [#changed] since.
  Call read(long number) {
    long offset = offset(number);
    int length = memory.get(ValueLayout.JAVA_INT, offset + LENGTH_OFFSET);
    var text = new byte[Math.clamp(length, 0, TEXT_BYTES)];
    MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, offset + TEXT_OFFSET, text, 0, text.length);
    return Call.read(text);
  }

  /// Returns whether the entry of a call is, or may be, overwritten.
  boolean changed(long number) {
    VarHandle.loadLoadFence();
    return (long) STAMP.getAcquire(memory, offset(number)) != number;
  }
}
