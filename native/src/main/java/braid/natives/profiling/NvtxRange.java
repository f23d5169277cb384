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

/// A named stretch of a thread's time, which other profilers show beside the kernels that were
/// launched in it:
///
/// ```java
/// private final NvtxRange range = NvtxRange.named(() -> "braid all-reduce");
/// try (var _ = range.open()) { … }
/// ```
///
/// A range may be opened again and again, by any thread; those of one thread nest. Where NVTX is
/// missing nothing is done, not even a name is made.
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

  /// @param complaint why there are no calls; empty where there are
  private record Found(@Nullable Calls calls, String complaint) {
    static Found load() {
      var complaint = "";
      for (var which : List.of(Library.NVTX, Library.NVTX_2)) {
        try {
          return new Found(Calls.of(Libraries.require(which)), "");
        } catch (BraidNativeMissing | UnsatisfiedLinkError e) {
          complaint = complaint.isEmpty() ? String.valueOf(e.getMessage()) : complaint;
        }
      }
      return new Found(null, complaint);
    }
  }

  private final MemorySegment name;

  private NvtxRange(MemorySegment name) {
    this.name = name;
  }

  /// The library that ranges are pushed by; empty where none is.
  public static Optional<FoundLibrary> library() {
    return Optional.ofNullable(CALLS).map(Calls::library);
  }

  /// Why no ranges are pushed; empty where they are.
  public static Optional<String> missing() {
    return CALLS == null ? Optional.of(FOUND.complaint) : Optional.empty();
  }

  /// A range of that name, which is asked for only where there is a library.
  public static NvtxRange named(Supplier<String> name) {
    return CALLS == null ? NONE : new NvtxRange(Arena.ofAuto().allocateFrom(name.get()));
  }

  /// Begins it on this thread, which closes it.
  public NvtxRange open() {
    if (CALLS != null) {
      push(CALLS, name);
    }
    return this;
  }

  /// Begins a range on this thread, whose name is made for this once; profilers copy it.
  public static NvtxRange open(Supplier<String> name) {
    if (CALLS != null) {
      try (var arena = Arena.ofConfined()) {
        push(CALLS, arena.allocateFrom(name.get()));
      }
    }
    return NONE;
  }

  /// Its result is a nesting level, or an error where no profiler listens.
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
