package braid.natives;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/// Sleeps on a 32-bit word of shared memory until another process changes it. Uses the
/// process-shared futex operations: the kernel identifies a word by file and offset, so each
/// process may map the file at any address.
public final class Futex {
  private static final long SYS_FUTEX = syscallNumber();
  private static final int FUTEX_WAIT = 0;
  private static final int FUTEX_WAKE = 1;
  private static final int EINTR = 4;
  private static final int EAGAIN = 11;
  private static final int ETIMEDOUT = 110;
  private static final long NANOS_PER_SECOND = 1_000_000_000L;

  private static final StructLayout ERRNO = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO_VALUE =
      ERRNO.varHandle(MemoryLayout.PathElement.groupElement("errno"));
  private static final MethodHandle WAIT =
      LibC.function(
          "syscall",
          FunctionDescriptor.of(
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS),
          Linker.Option.firstVariadicArg(1),
          Linker.Option.captureCallState("errno"));
  private static final MethodHandle WAKE =
      LibC.function(
          "syscall",
          FunctionDescriptor.of(
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT),
          Linker.Option.firstVariadicArg(1));

  private Futex() {}

  /// Sleeps while the word still holds `expected`, for at most `nanos`. May return early, so
  /// callers check the word again.
  public static void await(MemorySegment word, int expected, long nanos) {
    if (nanos <= 0) {
      return;
    }
    try (var arena = Arena.ofConfined()) {
      var timeout = arena.allocate(ValueLayout.JAVA_LONG, 2);
      timeout.setAtIndex(ValueLayout.JAVA_LONG, 0, nanos / NANOS_PER_SECOND);
      timeout.setAtIndex(ValueLayout.JAVA_LONG, 1, nanos % NANOS_PER_SECOND);
      var state = arena.allocate(ERRNO);
      var result = (long) WAIT.invokeExact(state, SYS_FUTEX, word, FUTEX_WAIT, expected, timeout);
      if (result == -1) {
        var errno = (int) ERRNO_VALUE.get(state, 0L);
        if (errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR) {
          throw new IllegalStateException("futex wait failed with errno " + errno);
        }
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Wakes all threads that sleep on the word.
  public static void wakeAll(MemorySegment word) {
    try {
      var woken = (long) WAKE.invokeExact(SYS_FUTEX, word, FUTEX_WAKE, Integer.MAX_VALUE);
      if (woken < 0) {
        throw new IllegalStateException("futex wake failed: the word is not mapped or not aligned");
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  private static long syscallNumber() {
    var architecture = System.getProperty("os.arch");
    return switch (architecture) {
      case "amd64", "x86_64" -> 202;
      case "aarch64" -> 98;
      default ->
          throw new UnsatisfiedLinkError(
              "the host backend supports Linux on x86_64 and aarch64 but this is " + architecture);
    };
  }
}
