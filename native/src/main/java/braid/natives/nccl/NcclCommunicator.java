package braid.natives.nccl;

import static org.bytedeco.cuda.global.nccl.NCCL_WIN_COLL_SYMMETRIC;
import static org.bytedeco.cuda.global.nccl.NCCL_WIN_REQUIRED_ALIGNMENT;
import static org.bytedeco.cuda.global.nccl.ncclAllGather;
import static org.bytedeco.cuda.global.nccl.ncclAllReduce;
import static org.bytedeco.cuda.global.nccl.ncclAlltoAll;
import static org.bytedeco.cuda.global.nccl.ncclBroadcast;
import static org.bytedeco.cuda.global.nccl.ncclCommAbort;
import static org.bytedeco.cuda.global.nccl.ncclCommWindowDeregister;
import static org.bytedeco.cuda.global.nccl.ncclCommWindowRegister;
import static org.bytedeco.cuda.global.nccl.ncclGroupEnd;
import static org.bytedeco.cuda.global.nccl.ncclGroupStart;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclRecv;
import static org.bytedeco.cuda.global.nccl.ncclReduceScatter;
import static org.bytedeco.cuda.global.nccl.ncclSend;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;
import static org.bytedeco.cuda.global.nccl.ncclSum;

import braid.natives.cuda.Address;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import braid.natives.load.Feature;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclWindow_vidmem;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/// One rank's membership in a group of GPUs. Every rank calls every collective in the same order;
/// calls only enqueue. Counts are of elements. For one thread, except `abort`.
public final class NcclCommunicator implements AutoCloseable {
  private static final long POLL_NANOS = 20_000;

  /// Configuration of a communicator. `copyEngines` runs all-gather and all-to-all on copy engines
  /// instead of SMs, if both buffers are in windows. The numbers of CTAs are limits; 0 leaves them
  /// to NCCL.
  public record Configuration(boolean copyEngines, int minCtas, int maxCtas) {
    public Configuration {
      if (minCtas < 0 || maxCtas < 0 || (maxCtas != 0 && minCtas > maxCtas)) {
        throw new IllegalArgumentException(
            "CTAs must be 0 (NCCL chooses) or 1 ≤ min ≤ max but were "
                + minCtas
                + " and "
                + maxCtas);
      }
    }
  }

  private final Gpu gpu;
  private final int size;
  private final Runnable check;
  private final Duration timeout;
  private final ncclComm communicator;
  private final List<NcclWindow> windows = new ArrayList<>();
  private final AtomicBoolean closed = new AtomicBoolean();

  private NcclCommunicator(
      Gpu gpu, int size, Runnable check, Duration timeout, ncclComm communicator) {
    this.gpu = gpu;
    this.size = size;
    this.check = check;
    this.timeout = timeout;
    this.communicator = communicator;
  }

  /// Joins a group. All ranks pass the same id, size and configuration.
  ///
  /// @param check called between slices of a wait, now or in later calls; ends it by throwing
  /// @throws GpuError if NCCL fails or not all ranks join in time
  public static NcclCommunicator join(
      Gpu gpu,
      byte[] id,
      int rank,
      int size,
      Configuration configuration,
      Runnable check,
      Duration timeout) {
    if (id.length != Nccl.UNIQUE_ID_BYTES) {
      throw new IllegalArgumentException(
          "NCCL's id must have " + Nccl.UNIQUE_ID_BYTES + " bytes but has " + id.length);
    }
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("rank must be 0.." + (size - 1) + " but was " + rank);
    }
    if (configuration.copyEngines()) {
      Nccl.need(Feature.NCCL_COPY_ENGINES, "ncclAlltoAll");
    }
    Nccl.version();
    var joined = CommunicatorInit.join(gpu, id, rank, size, configuration, check, timeout);
    return new NcclCommunicator(gpu, size, check, timeout, joined);
  }

  public int size() {
    return size;
  }

  public Gpu gpu() {
    return gpu;
  }

  /// Address of the `ncclComm`, for other libraries. They must be closed before this communicator.
  public long address() {
    return requireOpen().address();
  }

  /// Returns true after `close` or `abort`.
  public boolean isClosed() {
    return closed.get();
  }

  private interface Call {
    int enqueue(ncclComm communicator, CUstream_st stream);
  }

  private void enqueue(String name, GpuStream stream, Call call) {
    settle(name, call.enqueue(requireOpen(), stream.pointer()));
  }

  /// Gathers `count` elements of every rank into `to`, in the order of ranks.
  public void allGather(long from, long to, long count, Nccl.Type type, GpuStream stream) {
    enqueue(
        "ncclAllGather",
        stream,
        (ranks, queue) ->
            ncclAllGather(pointer(from), pointer(to), count, type.number(), ranks, queue));
  }

  /// Sums `size` × `count` elements over all ranks and stores this rank's `count` elements of the
  /// sum in `to`.
  public void reduceScatterSum(long from, long to, long count, Nccl.Type type, GpuStream stream) {
    int number = type.number();
    enqueue(
        "ncclReduceScatter",
        stream,
        (ranks, queue) ->
            ncclReduceScatter(pointer(from), pointer(to), count, number, ncclSum, ranks, queue));
  }

  public void allReduceSum(long from, long to, long count, Nccl.Type type, GpuStream stream) {
    int number = type.number();
    enqueue(
        "ncclAllReduce",
        stream,
        (ranks, queue) ->
            ncclAllReduce(pointer(from), pointer(to), count, number, ncclSum, ranks, queue));
  }

  /// Sends the root's elements to all ranks; `from` is only read on the root.
  public void broadcast(
      long from, long to, long count, Nccl.Type type, int root, GpuStream stream) {
    int number = type.number();
    enqueue(
        "ncclBroadcast",
        stream,
        (ranks, queue) ->
            ncclBroadcast(pointer(from), pointer(to), count, number, root, ranks, queue));
  }

  /// Sends the i-th `countPerRank` elements to rank i, and stores those of rank i at the i-th place
  /// of `to`.
  public void allToAll(long from, long to, long countPerRank, Nccl.Type type, GpuStream stream) {
    if (Nccl.has("ncclAlltoAll")) {
      enqueue(
          "ncclAlltoAll",
          stream,
          (ranks, queue) ->
              ncclAlltoAll(pointer(from), pointer(to), countPerRank, type.number(), ranks, queue));
      return;
    }
    var stride = countPerRank * type.bytes();
    group(
        () -> {
          for (int peer = 0; peer < size; peer++) {
            send(from + peer * stride, countPerRank, type, peer, stream);
            receive(to + peer * stride, countPerRank, type, peer, stream);
          }
        });
  }

  /// Sends to a peer, which calls `receive`. Both directions at once need a `group`.
  public void send(long from, long count, Nccl.Type type, int peer, GpuStream stream) {
    enqueue(
        "ncclSend",
        stream,
        (ranks, queue) -> ncclSend(pointer(from), count, type.number(), peer, ranks, queue));
  }

  public void receive(long to, long count, Nccl.Type type, int peer, GpuStream stream) {
    enqueue(
        "ncclRecv",
        stream,
        (ranks, queue) -> ncclRecv(pointer(to), count, type.number(), peer, ranks, queue));
  }

  /// Fuses the calls into one operation, so that sends and receives cannot deadlock.
  public void group(Runnable calls) {
    requireOpen();
    settle("ncclGroupStart", ncclGroupStart());
    try {
      calls.run();
    } catch (RuntimeException | Error e) {
      var ended = ncclGroupEnd(); // the group is this thread's and must not outlive the call
      if (ended != ncclSuccess && ended != ncclInProgress) {
        e.addSuppressed(Nccl.error("ncclGroupEnd", ended, communicator, gpu.where()));
      }
      throw e;
    }
    settle("ncclGroupEnd", ncclGroupEnd());
  }

  /// Registers a window. Every rank registers memory of `VirtualMemory` at the same offset of
  /// equally sized allocations; address and size are multiples of 4096. Not allowed while a stream
  /// captures.
  ///
  /// @throws GpuError if NCCL cannot use the memory, which it reports by success without a window
  public NcclWindow register(long address, long bytes) {
    Nccl.need(Feature.NCCL_COPY_ENGINES, "ncclCommWindowRegister");
    if (address % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || bytes % NCCL_WIN_REQUIRED_ALIGNMENT != 0) {
      throw new IllegalArgumentException(
          "a window's address and size must be multiples of "
              + NCCL_WIN_REQUIRED_ALIGNMENT
              + " but were 0x"
              + Long.toHexString(address)
              + " and "
              + bytes);
    }
    try (var slot = new PointerPointer<ncclWindow_vidmem>(1)) {
      slot.put(0, (Pointer) null);
      settle(
          "ncclCommWindowRegister",
          ncclCommWindowRegister(
              requireOpen(), pointer(address), bytes, slot, NCCL_WIN_COLL_SYMMETRIC));
      var made = slot.get(ncclWindow_vidmem.class, 0);
      if (made == null || made.isNull()) {
        throw new GpuError(
            "ncclCommWindowRegister",
            ncclSuccess,
            Nccl.name(ncclSuccess),
            "NCCL created no window of "
                + bytes
                + " bytes: the memory is not symmetric, or not all GPUs reach each other",
            gpu.where(),
            "use memory of VirtualMemory on every rank, or collectives without windows");
      }
      var window = new NcclWindow(this, made, address, bytes);
      windows.add(window);
      return window;
    }
  }

  void deregister(NcclWindow window) {
    gpu.release(
        () -> {
          if (!closed.get() && windows.remove(window)) {
            settle(
                "ncclCommWindowDeregister",
                ncclCommWindowDeregister(communicator, window.pointer()));
          }
        });
  }

  /// Returns the error of the device or a peer, if any; never waits.
  public Optional<GpuError> asynchronousError() {
    if (closed.get()) {
      return Optional.empty();
    }
    var state = CommunicatorInit.state(communicator);
    return state == ncclSuccess || state == ncclInProgress
        ? Optional.empty()
        : Optional.of(Nccl.error("ncclCommGetAsyncError", state, communicator, gpu.where()));
  }

  /// Aborts the group at once: its work on this device ends without a result. Further calls have no
  /// effect.
  public void abort() {
    if (closed.compareAndSet(false, true)) {
      gpu.use();
      Nccl.check("ncclCommAbort", ncclCommAbort(communicator), null, gpu.where());
    }
  }

  /// Leaves the group after all enqueued work; every rank does. Aborts it if that takes too long or
  /// an error has occurred. Further calls have no effect.
  @Override
  public void close() {
    if (asynchronousError().isPresent()) {
      abort();
    } else if (closed.compareAndSet(false, true)) {
      var registered = List.copyOf(windows);
      gpu.release(() -> CommunicatorClose.leave(gpu, communicator, registered));
    }
    windows.clear();
  }

  /// Waits for a call that is still in progress, which only happens if the environment makes
  /// communicators non-blocking.
  private void settle(String call, int result) {
    var code = result;
    if (code == ncclInProgress) {
      var deadline = System.nanoTime() + timeout.toNanos();
      while (code == ncclInProgress && System.nanoTime() - deadline < 0) {
        LockSupport.parkNanos(POLL_NANOS);
        check.run();
        code = CommunicatorInit.state(communicator);
      }
    }
    if (code != ncclSuccess) {
      throw Nccl.error(call, code, communicator, gpu.where());
    }
  }

  private ncclComm requireOpen() {
    if (closed.get()) {
      throw new IllegalStateException(
          "the communicator of " + gpu.where() + " is closed; open a new one on every rank");
    }
    gpu.use();
    return communicator;
  }

  private static Pointer pointer(long address) {
    return new Address(address);
  }
}
