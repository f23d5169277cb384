package braid.natives.nccl;

import static org.bytedeco.cuda.global.nccl.ncclCommAbort;
import static org.bytedeco.cuda.global.nccl.ncclCommDestroy;
import static org.bytedeco.cuda.global.nccl.ncclCommFinalize;
import static org.bytedeco.cuda.global.nccl.ncclCommWindowDeregister;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.nccl.ncclComm;
import org.jspecify.annotations.Nullable;

/// Closes a communicator on a thread of its own, because NCCL waits for the other ranks without a
/// time limit. After the time limit it is aborted, which ends that wait.
final class CommunicatorClose {
  private static final long LIMIT_MILLISECONDS = 10_000;
  private static final long POLL_NANOS = 100_000;

  private enum State {
    FINALIZING,
    DESTROYING,
    ABORTED
  }

  private final Gpu gpu;
  private final ncclComm communicator;
  private final List<NcclWindow> windows;
  private final AtomicReference<State> state = new AtomicReference<>(State.FINALIZING);
  private final AtomicReference<@Nullable GpuError> failure = new AtomicReference<>();

  private CommunicatorClose(Gpu gpu, ncclComm communicator, List<NcclWindow> windows) {
    this.gpu = gpu;
    this.communicator = communicator;
    this.windows = windows;
  }

  static void leave(Gpu gpu, ncclComm communicator, List<NcclWindow> windows) {
    new CommunicatorClose(gpu, communicator, windows).run();
  }

  private void run() {
    var thread = Thread.ofPlatform().daemon().name("nccl-leave").start(this::finish);
    var interrupted = join(thread);
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive()) {
      var aborted = state.compareAndSet(State.FINALIZING, State.ABORTED);
      if (aborted) {
        gpu.use();
        ncclCommAbort(communicator);
      }
      throw new GpuError(
          aborted ? "ncclCommFinalize" : "ncclCommDestroy",
          ncclInProgress,
          Nccl.name(ncclInProgress),
          "not done within "
              + LIMIT_MILLISECONDS
              + " ms"
              + (aborted ? ", so the communicator was aborted" : ""),
          gpu.where(),
          "close it on every rank; restart the ranks if one has ended");
    }
    var failed = failure.get();
    if (failed != null) {
      throw failed;
    }
  }

  /// Ignores interrupts during the wait, which has a limit: a half-closed communicator would be
  /// worse.
  private static boolean join(Thread thread) {
    var interrupted = false;
    var deadline = System.nanoTime() + LIMIT_MILLISECONDS * 1_000_000;
    for (var left = LIMIT_MILLISECONDS;
        left > 0;
        left = (deadline - System.nanoTime()) / 1_000_000) {
      try {
        thread.join(left);
        break;
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    return interrupted;
  }

  private void finish() {
    gpu.use();
    for (var window : windows) {
      settle("ncclCommWindowDeregister", ncclCommWindowDeregister(communicator, window.pointer()));
    }
    settle("ncclCommFinalize", ncclCommFinalize(communicator));
    if (state.compareAndSet(State.FINALIZING, State.DESTROYING)) {
      note("ncclCommDestroy", ncclCommDestroy(communicator));
    }
  }

  private void settle(String call, int result) {
    var code = result;
    while (code == ncclInProgress && state.get() == State.FINALIZING) {
      LockSupport.parkNanos(POLL_NANOS);
      code = CommunicatorInit.state(communicator);
    }
    if (state.get() == State.FINALIZING) {
      note(call, code);
    }
  }

  /// Keeps the first failure; the remaining steps still run.
  private void note(String call, int code) {
    if (code != ncclSuccess) {
      failure.compareAndSet(null, Nccl.error(call, code, null, gpu.where()));
    }
  }
}
