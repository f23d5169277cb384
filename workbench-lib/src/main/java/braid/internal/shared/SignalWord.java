package braid.internal.shared;

import braid.natives.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;

/// A word of shared memory that one rank raises and another waits for. It holds an epoch and a step
/// in 64 bits, and beside them a 32-bit count of raises: the kernel can only sleep on 32 bits, and
/// the count changes with every raise even where the step comes out the same in a later epoch.
public final class SignalWord {
  private static final VarHandle VALUE = ValueLayout.JAVA_LONG.varHandle();
  private static final VarHandle COUNT = ValueLayout.JAVA_INT.varHandle();
  private static final long COUNT_OFFSET = Long.BYTES;

  private SignalWord() {}

  /// Sets the word; what this thread wrote before is seen by whoever sees the step.
  public static void raise(MemorySegment memory, long offset, int epoch, int step) {
    VALUE.setRelease(memory, offset, value(epoch, step));
    var _ = (int) COUNT.getAndAddRelease(memory, offset + COUNT_OFFSET, 1);
    Futex.wakeAll(memory.asSlice(offset + COUNT_OFFSET, Integer.BYTES));
  }

  /// Whether the word is at that step of that epoch, or later in it. Another epoch's step is none.
  public static boolean reached(MemorySegment memory, long offset, int epoch, int step) {
    long value = (long) VALUE.getAcquire(memory, offset);
    return value >>> Integer.SIZE == epoch && value >= value(epoch, step);
  }

  /// Whether the word is at exactly that step of that epoch.
  public static boolean isAt(MemorySegment memory, long offset, int epoch, int step) {
    return (long) VALUE.getAcquire(memory, offset) == value(epoch, step);
  }

  /// Sleeps until the word is there, or that time is over; says whether it is.
  public static boolean await(MemorySegment memory, long offset, int epoch, int step, long nanos) {
    return await(memory, offset, nanos, () -> reached(memory, offset, epoch, step));
  }

  /// The same for [#isAt].
  public static boolean awaitAt(
      MemorySegment memory, long offset, int epoch, int step, long nanos) {
    return await(memory, offset, nanos, () -> isAt(memory, offset, epoch, step));
  }

  private static boolean await(
      MemorySegment memory, long offset, long nanos, BooleanSupplier there) {
    var word = memory.asSlice(offset + COUNT_OFFSET, Integer.BYTES);
    int count = (int) COUNT.getAcquire(memory, offset + COUNT_OFFSET);
    if (there.getAsBoolean()) {
      return true;
    }
    Futex.await(word, count, nanos);
    return there.getAsBoolean();
  }

  private static long value(int epoch, int step) {
    return ((long) epoch << Integer.SIZE) | Integer.toUnsignedLong(step);
  }
}
