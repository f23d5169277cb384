package braid.natives.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommAbort;
import static org.bytedeco.cuda.global.nccl.ncclCommGetAsyncError;
import static org.bytedeco.cuda.global.nccl.ncclCommInitRankConfig;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclConfig_t;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/// Initializes a communicator on a thread of its own, because NCCL waits for the other ranks
/// without a time limit. A non-blocking communicator would need no thread here, but NCCL would then
/// create one per collective, and profiler annotations of the calling thread would not reach it.
///
/// A caller that stops waiting leaves the thread behind. When NCCL returns, that thread aborts the
/// communicator.
final class CommunicatorInit {
  private static final long SLICE_MILLISECONDS = 50;
  private static final long POLL_NANOS = 100_000;

  private final Gpu gpu;
  private final byte[] id;
  private final int rank;
  private final int size;
  private final NcclCommunicator.Configuration configuration;
  private final CompletableFuture<ncclComm> joined = new CompletableFuture<>();

  private CommunicatorInit(
      Gpu gpu, byte[] id, int rank, int size, NcclCommunicator.Configuration configuration) {
    this.gpu = gpu;
    this.id = id;
    this.rank = rank;
    this.size = size;
    this.configuration = configuration;
  }

  static ncclComm join(
      Gpu gpu,
      byte[] id,
      int rank,
      int size,
      NcclCommunicator.Configuration configuration,
      Runnable check,
      Duration timeout) {
    var joining = new CommunicatorInit(gpu, id, rank, size, configuration);
    Thread.ofPlatform().daemon().name("nccl-join-" + rank).start(joining::run);
    return joining.await(check, timeout);
  }

  private ncclComm await(Runnable check, Duration timeout) {
    var deadline = System.nanoTime() + timeout.toNanos();
    try {
      while (true) {
        try {
          return joined.get(SLICE_MILLISECONDS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
          check.run();
          if (System.nanoTime() - deadline >= 0) {
            throw timeoutError(timeout);
          }
        }
      }
    } catch (ExecutionException e) {
      throw rethrown(e);
    } catch (InterruptedException e) {
      joined.completeExceptionally(e);
      Thread.currentThread().interrupt();
      var cancelled = new CancellationException("interrupted while joining NCCL's communicator");
      cancelled.initCause(e);
      throw cancelled;
    } catch (RuntimeException | Error e) {
      joined.completeExceptionally(e);
      throw e;
    }
  }

  private void run() {
    try {
      var communicator = initialize();
      if (!joined.complete(communicator)) {
        ncclCommAbort(communicator);
      }
    } catch (RuntimeException | Error e) {
      joined.completeExceptionally(e);
    }
  }

  private ncclComm initialize() {
    gpu.use();
    try (var slot = new PointerPointer<ncclComm>(1);
        var unique = new ncclUniqueId();
        var struct = new ncclConfig_t()) {
      slot.put(0, (Pointer) null);
      unique.internal().put(id);
      NcclConfiguration.fill(struct, configuration);
      var code = ncclCommInitRankConfig(slot, size, unique, rank, struct);
      var communicator = slot.get(ncclComm.class, 0);
      // Only if the environment makes every communicator non-blocking.
      while (code == ncclInProgress && communicator != null && !joined.isDone()) {
        LockSupport.parkNanos(POLL_NANOS);
        code = state(communicator);
      }
      if (code == ncclInProgress && communicator != null) {
        return communicator;
      }
      if (code != ncclSuccess || communicator == null) {
        var error = Nccl.error("ncclCommInitRankConfig", code, communicator, gpu.where());
        if (communicator != null) {
          ncclCommAbort(communicator);
        }
        throw error;
      }
      return communicator;
    }
  }

  static int state(ncclComm communicator) {
    var state = new int[1];
    var code = ncclCommGetAsyncError(communicator, state);
    return code == ncclSuccess ? state[0] : code;
  }

  private GpuError timeoutError(Duration timeout) {
    return new GpuError(
        "ncclCommInitRankConfig",
        ncclInProgress,
        Nccl.name(ncclInProgress),
        "not all of " + size + " ranks have joined within " + timeout.toMillis() + " ms",
        gpu.where(),
        "find the rank that has not joined; restart the ranks before the next try");
  }

  private static RuntimeException rethrown(ExecutionException e) {
    return switch (e.getCause()) {
      case RuntimeException runtime -> runtime;
      case Error error -> throw error;
      case null, default -> new IllegalStateException("joining NCCL's communicator failed", e);
    };
  }
}
