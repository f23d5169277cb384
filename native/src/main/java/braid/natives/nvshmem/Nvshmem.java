package braid.natives.nvshmem;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// One rank's membership in NVSHMEM, of which a process has one. Opening, closing and `allocate`
/// are called by all ranks, in the same order; what is on a stream is only enqueued. For one
/// thread.
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

  /// What one rank makes and all open by. It already needs the size of the heap, which must be the
  /// same in every later call of this process: the library reads its settings once.
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

  /// Joins the others, and returns when all have.
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
      // Kept for good: the library looks at the id later, too.
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
            "NVSHMEM met the other ranks but could not use the GPU",
            gpu.where(),
            "set NVSHMEM_DEBUG=INFO to see why");
      }
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
    return new Nvshmem(gpu, size, heapBytes, calls);
  }

  /// Memory at the same offset of every rank's heap, until it is closed; all ask for the same size.
  public long allocate(long bytes) {
    live();
    try {
      var address = (long) calls.allocate.invokeExact(bytes);
      if (address == 0) {
        throw new GpuError(
            "nvshmem_malloc",
            0,
            "NULL",
            "asked " + bytes + " bytes, heap " + heapBytes,
            gpu.where(),
            "ask for a larger heap when the ranks start");
      }
      return address;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Where the peer's memory of this address is seen from here.
  public long pointer(long address, int peer) {
    live();
    try {
      var there = (long) calls.pointer.invokeExact(address, known(peer));
      if (there == 0) {
        throw new GpuError(
            "nvshmem_ptr",
            0,
            "NULL",
            "0x" + Long.toHexString(address) + " of rank " + peer + " is not reachable from here",
            gpu.where(),
            "give an address of this rank's heap; the two GPUs must reach each other");
      }
      return there;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// `to` is the peer's memory, named by this rank's address of it.
  public void putOnStream(long to, long from, long bytes, int peer, GpuStream on) {
    live();
    try {
      calls.put.invokeExact(to, from, bytes, known(peer), on.address());
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Until everything this rank has put is there.
  public void quietOnStream(GpuStream on) {
    live();
    try {
      calls.quiet.invokeExact(on.address());
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Leaves; the heap ends with it. Waits for the other ranks without a time limit, so a group that
  /// has failed ends its processes instead. Twice is harmless.
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

  private int known(int peer) {
    if (peer < 0 || peer >= size) {
      throw new IllegalArgumentException("peer must be 0.." + (size - 1) + " but was " + peer);
    }
    return peer;
  }

  private void live() {
    if (closed) {
      throw new IllegalStateException("NVSHMEM of " + gpu.where() + " is closed");
    }
    gpu.use();
  }

  private static void check(String call, int code, String where) {
    if (code != 0) {
      throw new GpuError(
          call,
          code,
          "NVSHMEM status " + code,
          "NVSHMEM says no more",
          where,
          "set NVSHMEM_DEBUG=INFO to see why");
    }
  }
}
