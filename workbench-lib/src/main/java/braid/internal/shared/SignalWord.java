package braid.internal.shared;

import braid.natives.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;

/// A word of shared memory that one rank raises and another waits for. Holds an epoch and a step in
/// 64 bits, and beside them a 32-bit count of raises: the kernel can only sleep on 32 bits, and the
/// count changes with every raise, even if a later epoch repeats the step.
public final class SignalWord {
  private static final VarHandle VALUE = ValueLayout.JAVA_LONG.varHandle();
  private static final VarHandle COUNT = ValueLayout.JAVA_INT.varHandle();
  private static final long COUNT_OFFSET = Long.BYTES;

  private SignalWord() {}

  /// Sets the word. Writes of this thread before it are visible to a thread that reads the step.
  public static void raise(MemorySegment memory, long offset, int epoch, int step) {
    VALUE.setRelease(memory, offset, value(epoch, step));
    var _ = (int) COUNT.getAndAddRelease(memory, offset + COUNT_OFFSET, 1);
    Futex.wakeAll(memory.asSlice(offset + COUNT_OFFSET, Integer.BYTES));
  }

  /// Returns true if the word is at the step of the epoch, or later in the same epoch.
  public static boolean reached(MemorySegment memory, long offset, int epoch, int step) {
    long value = (long) VALUE.getAcquire(memory, offset);
    return value >>> Integer.SIZE == epoch && value >= value(epoch, step);
  }

  /// Returns true if the word is exactly at the step of the epoch.
  public static boolean isAt(MemorySegment memory, long offset, int epoch, int step) {
    return (long) VALUE.getAcquire(memory, offset) == value(epoch, step);
  }

  /// Sleeps until [#reached] or the time is over. Returns true if it was reached.
  public static boolean await(MemorySegment memory, long offset, int epoch, int step, long nanos) {
    return await(memory, offset, nanos, () -> reached(memory, offset, epoch, step));
  }

  /// Sleeps until [#isAt] or the time is over. Returns true if the word is there.
  public static boolean awaitAt(
      MemorySegment memory, long offset, int epoch, int step, long nanos) {
    return await(memory, offset, nanos, () -> isAt(memory, offset, epoch, step));
  }

  private static boolean await(
      MemorySegment memory, long offset, long nanos, BooleanSupplier condition) {
    var word = memory.asSlice(offset + COUNT_OFFSET, Integer.BYTES);
    int count = (int) COUNT.getAcquire(memory, offset + COUNT_OFFSET);
    if (condition.getAsBoolean()) {
      return true;
    }
    Futex.await(word, count, nanos);
    return condition.getAsBoolean();
  }

  private static long value(int epoch, int step) {
    return ((long) epoch << Integer.SIZE) | Integer.toUnsignedLong(step);
  }
}
