package braid.natives.load;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/// A library opened by the dynamic loader for the whole process, forever. Libraries that depend on
/// its soname get this copy.
@SuppressWarnings("restricted")
final class DynamicLibrary {
  private static final int RTLD_NOW = 2;
  private static final int RTLD_GLOBAL = 0x100;
  private static final Linker LINKER = Linker.nativeLinker();
  private static final long LONGEST_ERROR_BYTES = 4096;

  private static final MethodHandle DLOPEN =
      libc(
          "dlopen",
          FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
  private static final MethodHandle DLSYM =
      libc(
          "dlsym",
          FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
  private static final MethodHandle DLERROR =
      libc("dlerror", FunctionDescriptor.of(ValueLayout.ADDRESS));

  private final MemorySegment handle;

  private DynamicLibrary(MemorySegment handle) {
    this.handle = handle;
  }

  /// Opens a library by path, or by soname to let the loader search. The error is the loader's own
  /// line.
  static DynamicLibrary open(String file) {
    try (var arena = Arena.ofConfined()) {
      var handle =
          (MemorySegment) DLOPEN.invokeExact(arena.allocateFrom(file), RTLD_NOW | RTLD_GLOBAL);
      if (handle.address() == 0) {
        throw new UnsatisfiedLinkError(error());
      }
      return new DynamicLibrary(handle);
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /// Returns a function of this library, if it exists.
  Optional<MethodHandle> function(String name, FunctionDescriptor descriptor) {
    try (var arena = Arena.ofConfined()) {
      var address = (MemorySegment) DLSYM.invokeExact(handle, arena.allocateFrom(name));
      return address.address() == 0
          ? Optional.empty()
          : Optional.of(LINKER.downcallHandle(address, descriptor));
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  static RuntimeException unexpected(Throwable e) {
    return switch (e) {
      case RuntimeException runtime -> runtime;
      case Error error -> throw error;
      default -> new IllegalStateException("a native call threw", e);
    };
  }

  private static String error() throws Throwable {
    var text = (MemorySegment) DLERROR.invokeExact();
    return text.address() == 0
        ? "the dynamic loader gave no reason"
        : text.reinterpret(LONGEST_ERROR_BYTES).getString(0);
  }

  private static MethodHandle libc(String name, FunctionDescriptor descriptor) {
    return LINKER.downcallHandle(
        LINKER
            .defaultLookup()
            .find(name)
            .orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name)),
        descriptor);
  }
}
