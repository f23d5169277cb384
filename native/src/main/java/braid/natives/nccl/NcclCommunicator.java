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
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclWindow_vidmem;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/// One rank's membership in a group of GPUs. Every collective is called by all ranks, in the same
/// order, and only enqueued; counts are of elements. For one thread; `abort` may come from another.
public final class NcclCommunicator implements AutoCloseable {
  private static final long POLL_NANOS = 20_000;

  /// `copyEngines`: all-gather and all-to-all by copy engines instead of SMs, where both buffers
  /// are in windows. The counts of SMs (`CTAs`) are limits; 0 leaves them to NCCL.
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

  /// Joins the others, all of whom have the same id, size and configuration.
  ///
  /// @param check called between slices of a wait; ends it by throwing, then or in later calls
  /// @throws GpuError also when not all have joined in time
  public static NcclCommunicator join(
      Gpu gpu, byte[] id, int rank, int size, Configuration how, Runnable check, Duration timeout) {
    if (id.length != Nccl.UNIQUE_ID_BYTES) {
      throw new IllegalArgumentException(
          "NCCL's id must have " + Nccl.UNIQUE_ID_BYTES + " bytes but has " + id.length);
    }
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("rank must be 0.." + (size - 1) + " but was " + rank);
    }
    if (how.copyEngines()) {
      Nccl.need("ncclAlltoAll", "2.28"); // the version that learnt to gather by copy engines
    }
    Nccl.version();
    var joined = Joining.join(gpu, id, rank, size, how, check, timeout);
    return new NcclCommunicator(gpu, size, check, timeout, joined);
  }

  public int size() {
    return size;
  }

  /// Whether it was left or given up.
  public boolean isClosed() {
    return closed.get();
  }

  /// `count` elements of every rank, side by side in `to` in the order of the ranks.
  public void allGather(long from, long to, long count, Nccl.Type type, GpuStream on) {
    settle(
        "ncclAllGather",
        ncclAllGather(at(from), at(to), count, type.number(), live(), on.pointer()));
  }

  /// The sum of what all have of this rank's `count` elements; `from` has `size` times as many.
  public void reduceScatterSum(long from, long to, long count, Nccl.Type type, GpuStream on) {
    settle(
        "ncclReduceScatter",
        ncclReduceScatter(at(from), at(to), count, type.number(), ncclSum, live(), on.pointer()));
  }

  public void allReduceSum(long from, long to, long count, Nccl.Type type, GpuStream on) {
    settle(
        "ncclAllReduce",
        ncclAllReduce(at(from), at(to), count, type.number(), ncclSum, live(), on.pointer()));
  }

  /// The root's elements, to all; `from` matters on the root only.
  public void broadcast(long from, long to, long count, Nccl.Type type, int root, GpuStream on) {
    settle(
        "ncclBroadcast",
        ncclBroadcast(at(from), at(to), count, type.number(), root, live(), on.pointer()));
  }

  /// The i-th `countPerRank` elements go to rank i; what rank i sent lies at the i-th place of
  /// `to`.
  public void allToAll(long from, long to, long countPerRank, Nccl.Type type, GpuStream on) {
    if (Nccl.has("ncclAlltoAll")) {
      settle(
          "ncclAlltoAll",
          ncclAlltoAll(at(from), at(to), countPerRank, type.number(), live(), on.pointer()));
      return;
    }
    var stride = countPerRank * type.bytes();
    group(
        () -> {
          for (int peer = 0; peer < size; peer++) {
            send(from + peer * stride, countPerRank, type, peer, on);
            receive(to + peer * stride, countPerRank, type, peer, on);
          }
        });
  }

  /// Matched by the peer's `receive`. Both directions at once need a `group`.
  public void send(long from, long count, Nccl.Type type, int peer, GpuStream on) {
    settle("ncclSend", ncclSend(at(from), count, type.number(), peer, live(), on.pointer()));
  }

  public void receive(long to, long count, Nccl.Type type, int peer, GpuStream on) {
    settle("ncclRecv", ncclRecv(at(to), count, type.number(), peer, live(), on.pointer()));
  }

  /// Makes one operation of the calls, so that sends and receives cannot wait for each other.
  public void group(Runnable calls) {
    live();
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

  /// Tells NCCL of memory that all ranks register at once, at the same offset of allocations alike:
  /// made by `VirtualMemory`, both numbers multiples of 4096. Not while a stream captures.
  ///
  /// @throws GpuError where NCCL cannot use the memory so, which it says by success without a
  ///   window
  public NcclWindow register(long address, long bytes) {
    Nccl.need("ncclCommWindowRegister", "2.27");
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
          ncclCommWindowRegister(live(), at(address), bytes, slot, NCCL_WIN_COLL_SYMMETRIC));
      var made = slot.get(ncclWindow_vidmem.class, 0);
      if (made == null || made.isNull()) {
        throw new GpuError(
            "ncclCommWindowRegister",
            ncclSuccess,
            Nccl.name(ncclSuccess),
            "NCCL made no window of "
                + bytes
                + " bytes: the memory is not symmetric, or not all GPUs reach each other",
            gpu.where(),
            "use memory of VirtualMemory on all ranks, or collectives without windows");
      }
      var window = new NcclWindow(this, made, address, bytes);
      windows.add(window);
      return window;
    }
  }

  void deregister(NcclWindow window) {
    if (!closed.get() && windows.remove(window)) {
      settle("ncclCommWindowDeregister", ncclCommWindowDeregister(communicator, window.pointer()));
    }
  }

  /// What went wrong on the device or at a peer since, if anything; never waits.
  public Optional<GpuError> asynchronousError() {
    if (closed.get()) {
      return Optional.empty();
    }
    var state = Joining.state(communicator);
    return state == ncclSuccess || state == ncclInProgress
        ? Optional.empty()
        : Optional.of(Nccl.error("ncclCommGetAsyncError", state, communicator, gpu.where()));
  }

  /// Gives the group up at once: whatever of it still runs on this device ends, without a result.
  /// Twice is harmless.
  public void abort() {
    if (closed.compareAndSet(false, true)) {
      gpu.use();
      Nccl.check("ncclCommAbort", ncclCommAbort(communicator), null, gpu.where());
    }
  }

  /// Leaves the group when all that was enqueued is done; all ranks do. Where that takes too long,
  /// or something has failed already, it is given up. Twice is harmless.
  @Override
  public void close() {
    if (asynchronousError().isPresent()) {
      abort();
    } else if (closed.compareAndSet(false, true)) {
      Leaving.leave(gpu, communicator, List.copyOf(windows));
    }
    windows.clear();
  }

  /// A call on a communicator that does not block may still be going on: NCCL makes such ones only
  /// where the environment tells it to.
  private void settle(String call, int result) {
    var code = result;
    if (code == ncclInProgress) {
      var deadline = System.nanoTime() + timeout.toNanos();
      while (code == ncclInProgress && System.nanoTime() - deadline < 0) {
        LockSupport.parkNanos(POLL_NANOS);
        check.run();
        code = Joining.state(communicator);
      }
    }
    if (code != ncclSuccess) {
      throw Nccl.error(call, code, communicator, gpu.where());
    }
  }

  private ncclComm live() {
    if (closed.get()) {
      throw new IllegalStateException(
          "the communicator of " + gpu.where() + " is closed; make a new one on all ranks");
    }
    gpu.use();
    return communicator;
  }

  private static Pointer at(long address) {
    return new Address(address);
  }
}
