package braid.natives.nvshmem;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// One rank's membership in NVSHMEM, one per process. Every rank calls open, close and `allocate`
/// in the same order; stream operations are only enqueued. For one thread.
public final class Nvshmem implements AutoCloseable {
  private static final int WITH_UNIQUE_ID = 8;
  private static final int STATUS_INITIALIZED = 2;

  private final Gpu gpu;
  private final int size;
  private final long heapBytes;
  private final NvshmemCalls calls;
  private boolean closed;

  private Nvshmem(Gpu gpu, int size, long heapBytes, NvshmemCalls calls) {
    this.gpu = gpu;
    this.size = size;
    this.heapBytes = heapBytes;
    this.calls = calls;
  }

  /// Creates the id by which all ranks join. The heap size must be the same in every later call of
  /// this process: the library reads its settings once.
  public static byte[] uniqueId(long heapBytes) {
    var calls = NvshmemCalls.load(heapBytes);
    try (var arena = Arena.ofConfined()) {
      var id = NvshmemCalls.uniqueId(arena);
      check("nvshmemx_get_uniqueid", (int) calls.uniqueId.invokeExact(id), "");
      return id.toArray(ValueLayout.JAVA_BYTE);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Joins the group, and returns when all ranks have joined.
  public static Nvshmem open(Gpu gpu, int rank, int size, byte[] uniqueId, long heapBytes) {
    if (uniqueId.length != NvshmemCalls.UNIQUE_ID_BYTES) {
      throw new IllegalArgumentException(
          "NVSHMEM's id must have "
              + NvshmemCalls.UNIQUE_ID_BYTES
              + " bytes but has "
              + uniqueId.length);
    }
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("rank must be 0.." + (size - 1) + " but was " + rank);
    }
    var calls = NvshmemCalls.load(heapBytes);
    gpu.use();
    try {
      // Never freed: the library also reads the id later.
      var id = NvshmemCalls.uniqueId(Arena.global());
      MemorySegment.copy(uniqueId, 0, id, ValueLayout.JAVA_BYTE, 0, uniqueId.length);
      var attributes = NvshmemCalls.attributes(Arena.global());
      check(
          "nvshmemx_set_attr_uniqueid_args",
          (int) calls.setUniqueId.invokeExact(rank, size, id, attributes),
          gpu.where());
      check(
          "nvshmemx_hostlib_init_attr",
          (int) calls.initialize.invokeExact(WITH_UNIQUE_ID, attributes),
          gpu.where());
      var status = (int) calls.status.invokeExact();
      if (status < STATUS_INITIALIZED) {
        throw new GpuError(
            "nvshmemx_hostlib_init_attr",
            status,
            "NVSHMEM_STATUS_" + status,
            "NVSHMEM reached the other ranks but could not use the GPU",
            gpu.where(),
            "set NVSHMEM_DEBUG=INFO to see why");
      }
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
    return new Nvshmem(gpu, size, heapBytes, calls);
  }

  /// Allocates memory at the same offset of every rank's heap, until close. Every rank passes the
  /// same size.
  public long allocate(long bytes) {
    requireOpen();
    try {
      var address = (long) calls.allocate.invokeExact(bytes);
      if (address == 0) {
        throw new GpuError(
            "nvshmem_malloc",
            0,
            "NULL",
            "requested " + bytes + " bytes of a heap of " + heapBytes,
            gpu.where(),
            "start the ranks with a larger heap");
      }
      return address;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Returns the address at which this rank accesses the peer's memory.
  public long pointer(long address, int peer) {
    requireOpen();
    try {
      var remote = (long) calls.pointer.invokeExact(address, requirePeer(peer));
      if (remote == 0) {
        throw new GpuError(
            "nvshmem_ptr",
            0,
            "NULL",
            "0x" + Long.toHexString(address) + " of rank " + peer + " is not reachable from here",
            gpu.where(),
            "pass an address of this rank's heap; the two GPUs must reach each other");
      }
      return remote;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Enqueues a copy to the peer's memory, which `to` names by this rank's address.
  public void putOnStream(long to, long from, long bytes, int peer, GpuStream stream) {
    requireOpen();
    try {
      calls.put.invokeExact(to, from, bytes, requirePeer(peer), stream.address());
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Enqueues a wait until all puts of this rank are complete.
  public void quietOnStream(GpuStream stream) {
    requireOpen();
    try {
      calls.quiet.invokeExact(stream.address());
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Leaves the group; the heap is freed. Waits for the other ranks without a time limit, so
  /// processes of a failed group are ended instead. Further calls have no effect.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.use();
      try {
        calls.finish.invokeExact();
      } catch (Throwable e) {
        throw ForeignLibrary.unexpected(e);
      }
    }
  }

  private int requirePeer(int peer) {
    if (peer < 0 || peer >= size) {
      throw new IllegalArgumentException("peer must be 0.." + (size - 1) + " but was " + peer);
    }
    return peer;
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("NVSHMEM of " + gpu.where() + " is closed");
    }
    gpu.use();
  }

  private static void check(String call, int code, String place) {
    if (code != 0) {
      throw new GpuError(
          call,
          code,
          "NVSHMEM status " + code,
          "NVSHMEM gives no reason",
          place,
          "set NVSHMEM_DEBUG=INFO to see why");
    }
  }
}
