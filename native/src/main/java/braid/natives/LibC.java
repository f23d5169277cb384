package braid.natives;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.BitSet;
import java.util.List;

/// The few calls of the C library that Java has no word for.
@SuppressWarnings("restricted")
public final class LibC {
  static final Linker LINKER = Linker.nativeLinker();
  static final AddressLayout POINTER = ValueLayout.ADDRESS;

  private static final MethodHandle FFLUSH =
      function("fflush", FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER));

  private static final MethodHandle CLOSE =
      function("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

  /// As large as the C library's own set: 1024 processors.
  private static final int CPU_SET_BYTES = 128;

  private static final FunctionDescriptor AFFINITY =
      FunctionDescriptor.of(
          ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, POINTER);

  /// On Linux a priority is a thread's, though the call is named after processes.
  private static final int PRIO_PROCESS = 0;

  private static final FunctionDescriptor PRIORITY =
      FunctionDescriptor.of(
          ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);

  private static final FunctionDescriptor SETENV =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER, POINTER, ValueLayout.JAVA_INT);

  private static final FunctionDescriptor AT_EXIT =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER, POINTER, POINTER);

  private LibC() {}

  /// Makes the process end with that code, whatever code it is ended with: `Runtime.halt` and
  /// `exit` of native code included, but not `_exit` and signals. The last call decides.
  ///
  /// @param lastWords printed to stdout then; may be empty
  public static void endWith(int code, String lastWords) {
    // Handlers run in reverse order: the words, then stdout is flushed, then the process ends.
    // Handlers of earlier calls no longer run.
    atExit("_exit", MemorySegment.ofAddress(code));
    atExit("fflush", MemorySegment.NULL);
    if (!lastWords.isEmpty()) {
      atExit("puts", Arena.global().allocateFrom(lastWords));
    }
  }

  private static void atExit(String name, MemorySegment argument) {
    try {
      var failed =
          (int)
              function("__cxa_atexit", AT_EXIT)
                  .invokeExact(
                      LINKER.defaultLookup().findOrThrow(name), argument, MemorySegment.NULL);
      if (failed != 0) {
        throw new IllegalStateException("the C library takes no more exit handlers");
      }
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// The processors that the calling thread may run on.
  public static List<Integer> allowedProcessors() {
    try (var arena = Arena.ofConfined()) {
      var set = arena.allocate(CPU_SET_BYTES);
      var failed =
          (int) function("sched_getaffinity", AFFINITY).invokeExact(0, (long) CPU_SET_BYTES, set);
      return failed != 0
          ? List.of()
          : BitSet.valueOf(set.toArray(ValueLayout.JAVA_BYTE)).stream().boxed().toList();
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Keeps the calling thread on these processors; false where the system does not let it.
  public static boolean runOn(List<Integer> processors) {
    try (var arena = Arena.ofConfined()) {
      var set = arena.allocate(CPU_SET_BYTES);
      for (int processor : processors) {
        var at = processor / Byte.SIZE;
        var old = set.get(ValueLayout.JAVA_BYTE, at);
        set.set(ValueLayout.JAVA_BYTE, at, (byte) (old | 1 << (processor % Byte.SIZE)));
      }
      return (int) function("sched_setaffinity", AFFINITY).invokeExact(0, (long) CPU_SET_BYTES, set)
          == 0;
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Lets other threads go before the calling one where both want a processor: `steps` of 0 to 19.
  /// False where the system does not let it; it never lets a thread back.
  public static boolean yieldBy(int steps) {
    try {
      return (int) function("setpriority", PRIORITY).invokeExact(PRIO_PROCESS, 0, steps) == 0;
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Gives a file descriptor back that native code handed out.
  public static void closeDescriptor(int descriptor) {
    try {
      var failed = (int) CLOSE.invokeExact(descriptor);
      if (failed != 0) {
        throw new IllegalStateException(
            "close(%d) failed: it is no open file descriptor".formatted(descriptor));
      }
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Writes out what native code has printed but the C library still holds back. Without it a
  /// library's message shows up after the cell that caused it.
  public static void flushAll() {
    try {
      var failed = (int) FFLUSH.invokeExact(MemorySegment.NULL);
      if (failed != 0) {
        throw new IllegalStateException("fflush(NULL) failed: standard output may be closed");
      }
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Sets a variable for native libraries that look at it later; `System.getenv` never sees it, and
  /// no other thread may be reading the environment meanwhile.
  public static void setVariable(String name, String value, boolean overwrite) {
    try (var arena = Arena.ofConfined()) {
      var failed =
          (int)
              function("setenv", SETENV)
                  .invokeExact(
                      arena.allocateFrom(name), arena.allocateFrom(value), overwrite ? 1 : 0);
      if (failed != 0) {
        throw new IllegalArgumentException(
            "setenv refused '" + name + "': a name must not be empty nor contain '='");
      }
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  static MethodHandle function(
      String name, FunctionDescriptor descriptor, Linker.Option... options) {
    SymbolLookup lookup = LINKER.defaultLookup();
    return LINKER.downcallHandle(
        lookup
            .find(name)
            .orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name)),
        descriptor,
        options);
  }

  /// What a downcall itself can throw is a mistake of ours or the end of the JVM, never a result.
  static RuntimeException unexpected(Throwable e) {
    return switch (e) {
      case RuntimeException runtime -> runtime;
      case Error error -> throw error;
      default -> new IllegalStateException("a native call threw", e);
    };
  }
}
