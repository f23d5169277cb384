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

/// C library calls that Java does not offer.
@SuppressWarnings("restricted")
public final class LibC {
  static final Linker LINKER = Linker.nativeLinker();
  static final AddressLayout POINTER = ValueLayout.ADDRESS;

  private static final MethodHandle FFLUSH =
      function("fflush", FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER));

  private static final MethodHandle CLOSE =
      function("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

  /// Size of the C library's own set: 1024 processors.
  private static final int CPU_SET_BYTES = 128;

  private static final FunctionDescriptor AFFINITY =
      FunctionDescriptor.of(
          ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, POINTER);

  /// Selects one thread on Linux, although the constant is named after processes.
  private static final int PRIO_PROCESS = 0;

  private static final FunctionDescriptor PRIORITY =
      FunctionDescriptor.of(
          ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);

  private static final FunctionDescriptor SETENV =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER, POINTER, ValueLayout.JAVA_INT);

  private static final FunctionDescriptor CHDIR =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER);

  private static final FunctionDescriptor EXECV =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER, POINTER);

  private static final FunctionDescriptor AT_EXIT =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER, POINTER, POINTER);

  private static final int POLL_BYTES = 8;
  private static final short POLL_IN = 1;

  private LibC() {}

  /// Makes the process end with this code, however it is ended: by `Runtime.halt` and `exit` of
  /// native code, but not by `_exit` and signals. The last call wins.
  ///
  /// @param lastWords text printed to stdout at the end; may be empty
  public static void endWith(int code, String lastWords) {
    // Handlers run in reverse order: print the text, flush stdout, end the process. Handlers of
    // earlier calls no longer run.
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

  /// Replaces this process by the program, started in the directory. Process id, streams and
  /// environment stay. Returns only if the system refuses.
  public static void replaceProcess(String directory, String program, List<String> arguments) {
    try (var arena = Arena.ofConfined()) {
      var list = arena.allocate(POINTER, arguments.size() + 1L); // ends with a null pointer
      for (int i = 0; i < arguments.size(); i++) {
        list.setAtIndex(POINTER, i, arena.allocateFrom(arguments.get(i)));
      }
      if ((int) function("chdir", CHDIR).invokeExact(arena.allocateFrom(directory)) == 0) {
        var _ = (int) function("execv", EXECV).invokeExact(arena.allocateFrom(program), list);
      }
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Returns the processors that the calling thread may run on.
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

  /// Pins the calling thread to these processors. Returns false if the system refuses.
  public static boolean runOn(List<Integer> processors) {
    try (var arena = Arena.ofConfined()) {
      var set = arena.allocate(CPU_SET_BYTES);
      for (int processor : processors) {
        var index = processor / Byte.SIZE;
        var old = set.get(ValueLayout.JAVA_BYTE, index);
        set.set(ValueLayout.JAVA_BYTE, index, (byte) (old | 1 << (processor % Byte.SIZE)));
      }
      return (int) function("sched_setaffinity", AFFINITY).invokeExact(0, (long) CPU_SET_BYTES, set)
          == 0;
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Lowers the priority of the calling thread by `steps` of 0 to 19. Returns false if the system
  /// refuses. The priority cannot be raised again.
  public static boolean lowerPriorityBy(int steps) {
    try {
      return (int) function("setpriority", PRIORITY).invokeExact(PRIO_PROCESS, 0, steps) == 0;
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Closes a file descriptor that native code handed out.
  public static void closeDescriptor(int descriptor) {
    try {
      var failed = (int) CLOSE.invokeExact(descriptor);
      if (failed != 0) {
        throw new IllegalStateException(
            "close(%d) failed: it is not an open file descriptor".formatted(descriptor));
      }
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Sleeps until the descriptor can be read, for at most that time. May return early.
  public static void awaitReadable(int descriptor, int milliseconds) {
    try (var arena = Arena.ofConfined()) {
      var one = arena.allocate(POLL_BYTES, Integer.BYTES);
      one.set(ValueLayout.JAVA_INT, 0, descriptor);
      one.set(ValueLayout.JAVA_SHORT, Integer.BYTES, POLL_IN);
      var _ = (int) Poll.CALL.invokeExact(one, 1L, milliseconds);
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Looked up at its first use.
  private static final class Poll {
    static final MethodHandle CALL =
        function(
            "poll",
            FunctionDescriptor.of(
                ValueLayout.JAVA_INT, POINTER, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));
  }

  /// Flushes all output that native code has printed and the C library still buffers. Otherwise a
  /// library's message would show up after the cell that caused it.
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

  /// Sets an environment variable for native libraries that read it later. `System.getenv` never
  /// sees it, and no other thread may read the environment meanwhile.
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

  /// Converts a throwable of a downcall, which is a bug of the caller or the end of the JVM, never
  /// a result.
  static RuntimeException unexpected(Throwable e) {
    return switch (e) {
      case RuntimeException runtime -> runtime;
      case Error error -> throw error;
      default -> new IllegalStateException("a native call threw", e);
    };
  }
}
