package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import braid.natives.ForeignLibrary;
import braid.natives.load.BraidNativeMissing;
import braid.natives.load.FoundLibrary;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A named range of a thread's time, which other profilers show beside the kernels launched in it:
///
/// ```java
/// private final NvtxRange range = NvtxRange.named(() -> "braid all-reduce");
/// try (var _ = range.open()) { … }
/// ```
///
/// A range may be opened repeatedly, by any thread; ranges of one thread nest. Without NVTX nothing
/// happens, and no name is computed.
public final class NvtxRange implements AutoCloseable {
  private static final Found FOUND = Found.load();
  private static final @Nullable Calls CALLS = FOUND.calls;
  private static final NvtxRange NONE = new NvtxRange(MemorySegment.NULL);

  private record Calls(FoundLibrary library, MethodHandle push, MethodHandle pop) {
    static Calls of(FoundLibrary library) {
      var functions = ForeignLibrary.at(library.path());
      return new Calls(
          library,
          functions.function("nvtxRangePushA", FunctionDescriptor.of(JAVA_INT, ADDRESS)),
          functions.function("nvtxRangePop", FunctionDescriptor.of(JAVA_INT)));
    }
  }

  /// @param reason why the calls are missing; empty if they are available
  private record Found(@Nullable Calls calls, String reason) {
    static Found load() {
      var reason = "";
      for (var library : List.of(Library.NVTX, Library.NVTX_2)) {
        try {
          return new Found(Calls.of(Libraries.require(library)), "");
        } catch (BraidNativeMissing | UnsatisfiedLinkError e) {
          reason = reason.isEmpty() ? String.valueOf(e.getMessage()) : reason;
        }
      }
      return new Found(null, reason);
    }
  }

  private final MemorySegment name;

  private NvtxRange(MemorySegment name) {
    this.name = name;
  }

  /// Library that provides NVTX; empty if none is available.
  public static Optional<FoundLibrary> library() {
    return Optional.ofNullable(CALLS).map(Calls::library);
  }

  /// Returns why ranges are disabled; empty if they are enabled.
  public static Optional<String> missing() {
    return CALLS == null ? Optional.of(FOUND.reason) : Optional.empty();
  }

  /// Returns a range of this name, which is computed only if NVTX is available.
  public static NvtxRange named(Supplier<String> name) {
    return CALLS == null ? NONE : new NvtxRange(Arena.ofAuto().allocateFrom(name.get()));
  }

  /// Begins the range on this thread, which must close it.
  public NvtxRange open() {
    if (CALLS != null) {
      push(CALLS, name);
    }
    return this;
  }

  /// Begins a range on this thread with a name for one use; profilers copy it.
  public static NvtxRange open(Supplier<String> name) {
    if (CALLS != null) {
      try (var arena = Arena.ofConfined()) {
        push(CALLS, arena.allocateFrom(name.get()));
      }
    }
    return NONE;
  }

  /// Pushes a range. The result is a nesting level, or an error if no profiler listens.
  private static void push(Calls calls, MemorySegment name) {
    try {
      var _ = (int) calls.push.invokeExact(name);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  @Override
  public void close() {
    if (CALLS != null) {
      try {
        var _ = (int) CALLS.pop.invokeExact();
      } catch (Throwable e) {
        throw ForeignLibrary.unexpected(e);
      }
    }
  }
}
