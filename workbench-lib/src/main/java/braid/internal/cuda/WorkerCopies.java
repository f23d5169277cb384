package braid.internal.cuda;

import braid.internal.cuda.device.Launch;
import braid.internal.work.Transfer;
import braid.natives.kernels.Kernels;

/// Copies by multiprocessors, with a number of workers per copy. In a bulk copy a worker is one
/// thread that issues it, and leaves registers and threads to a concurrent multiplication. Without
/// bulk copies, or if an address or a size is no multiple of 16, a worker is 512 threads that copy
/// by loads. Rows that begin a pitch apart are copied by loads, with 256 threads per worker.
public final class WorkerCopies {
  private final Kernels kernels;
  private final boolean bulk;

  /// @param bulk true if bulk copies are used where possible
  public WorkerCopies(Kernels kernels, boolean bulk) {
    this.kernels = kernels;
    this.bulk = bulk && kernels.hasTma();
  }

  /// Returns a launch for the transfer, which may run any number of times.
  public Launch of(int workers, Transfer transfer) {
    long to = transfer.to().address();
    long from = transfer.from().address();
    if (!transfer.isOnePiece()) {
      return stream ->
          kernels.copyRows(
              stream,
              workers,
              to,
              transfer.toPitch(),
              from,
              transfer.fromPitch(),
              transfer.rowBytes(),
              transfer.rows());
    }
    long bytes = transfer.bytes();
    return bulk && Kernels.fitsTma(to, from, bytes)
        ? lane -> kernels.copyTma(lane, workers, to, from, bytes)
        : queue -> kernels.copy(queue, workers, to, from, bytes);
  }
}
