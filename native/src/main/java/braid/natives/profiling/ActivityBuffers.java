package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Buffers that CUPTI fills with records. CUPTI requests them from the thread that calls CUDA or
/// from its own, so they are allocated ahead; they are only read when a profile ends. There is one
/// set per process. CUPTI keeps its callbacks forever, so nothing is freed.
@SuppressWarnings("restricted")
final class ActivityBuffers {
  private static final long BUFFER_BYTES = 4L << 20;
  private static final int FIRST_BUFFERS = 4;
  private static final int ALIGNMENT = 8;

  private static final Queue<MemorySegment> FREE = new ConcurrentLinkedQueue<>();
  private static final Map<Long, MemorySegment> LENT = new ConcurrentHashMap<>();
  private static final Queue<Filled> FILLED = new ConcurrentLinkedQueue<>();
  private static final AtomicReference<@Nullable Throwable> FAILURE = new AtomicReference<>();
  private static boolean registered;

  /// A buffer and the number of its bytes that hold records.
  record Filled(MemorySegment buffer, long validBytes) {}

  private ActivityBuffers() {}

  static synchronized void register(CuptiCalls calls) {
    if (registered) {
      return;
    }
    for (int i = 0; i < FIRST_BUFFERS; i++) {
      FREE.add(allocate());
    }
    var lookup = MethodHandles.lookup();
    try {
      var requested =
          lookup.findStatic(
              ActivityBuffers.class,
              "requested",
              MethodType.methodType(
                  void.class, MemorySegment.class, MemorySegment.class, MemorySegment.class));
      var completed =
          lookup.findStatic(
              ActivityBuffers.class,
              "completed",
              MethodType.methodType(
                  void.class,
                  MemorySegment.class,
                  int.class,
                  MemorySegment.class,
                  long.class,
                  long.class));
      var linker = Linker.nativeLinker();
      calls.check(
          "cuptiActivityRegisterCallbacks",
          (int)
              calls.registerCallbacks.invokeExact(
                  linker.upcallStub(
                      requested,
                      FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS),
                      Arena.global()),
                  linker.upcallStub(
                      completed,
                      FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG),
                      Arena.global())),
          "");
      registered = true;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Takes the buffers delivered since the last call. The caller returns them by `recycle`.
  static List<Filled> take() {
    var failed = FAILURE.getAndSet(null);
    if (failed != null) {
      throw new IllegalStateException("a callback of CUPTI failed: " + failed, failed);
    }
    var taken = new ArrayList<Filled>();
    for (var filled = FILLED.poll(); filled != null; filled = FILLED.poll()) {
      taken.add(filled);
    }
    return taken;
  }

  static void recycle(List<Filled> taken) {
    taken.forEach(filled -> FREE.add(filled.buffer));
  }

  /// Keeps the first failure of a callback; `take` throws it.
  static void fail(Throwable thrown) {
    FAILURE.compareAndSet(null, thrown);
  }

  /// Called by CUPTI to request a buffer. Must not throw.
  static void requested(MemorySegment buffer, MemorySegment size, MemorySegment mostRecords) {
    try {
      var free = FREE.poll();
      var given = free == null ? allocate() : free;
      LENT.put(given.address(), given);
      buffer.reinterpret(ADDRESS.byteSize()).set(ADDRESS, 0, given);
      size.reinterpret(Long.BYTES).set(JAVA_LONG, 0, BUFFER_BYTES);
      mostRecords.reinterpret(Long.BYTES).set(JAVA_LONG, 0, 0L);
    } catch (Throwable e) {
      fail(e);
      buffer.reinterpret(ADDRESS.byteSize()).set(ADDRESS, 0, MemorySegment.NULL);
      size.reinterpret(Long.BYTES).set(JAVA_LONG, 0, 0L);
    }
  }

  /// Called by CUPTI to deliver a buffer; context and stream are always null.
  static void completed(
      MemorySegment context, int stream, MemorySegment buffer, long size, long validBytes) {
    try {
      var lent = LENT.remove(buffer.address());
      if (lent == null) {
        throw new IllegalStateException("CUPTI returned an unknown buffer");
      }
      if (validBytes > 0) {
        FILLED.add(new Filled(lent, validBytes));
      } else {
        FREE.add(lent);
      }
    } catch (Throwable e) {
      fail(e);
    }
  }

  private static MemorySegment allocate() {
    return Arena.global().allocate(BUFFER_BYTES, ALIGNMENT);
  }
}
