package braid.natives;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// The few calls of the C library that Java has no word for.
@SuppressWarnings("restricted")
public final class LibC {
  static final Linker LINKER = Linker.nativeLinker();
  static final AddressLayout POINTER = ValueLayout.ADDRESS;

  private static final MethodHandle FFLUSH =
      function("fflush", FunctionDescriptor.of(ValueLayout.JAVA_INT, POINTER));

  private LibC() {}

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
