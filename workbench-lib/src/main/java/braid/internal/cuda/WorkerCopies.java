package braid.internal.cuda;

import braid.internal.cuda.device.Launch;
import braid.internal.work.Transfer;
import braid.natives.kernels.Kernels;

/// Copies by multiprocessors, so many workers to each. In bulk a worker is one thread that gives
/// orders, and leaves registers and threads to the multiplication beside it; by loads it is 512
/// threads, which copy what a GPU without bulk copies, or an address or a size that is no multiple
/// of 16, leaves to them. Rows that begin a pitch apart are copied by loads, 256 threads a worker.
public final class WorkerCopies {
  private final Kernels kernels;
  private final boolean bulk;

  /// @param bulk whether they copy in bulk where they can
  public WorkerCopies(Kernels kernels, boolean bulk) {
    this.kernels = kernels;
    this.bulk = bulk && kernels.hasTma();
  }

  /// How that is copied, decided once for every time it will be.
  public Launch of(int workers, Transfer transfer) {
    long to = transfer.to().address();
    long from = transfer.from().address();
    if (!transfer.isOnePiece()) {
      return on ->
          kernels.copyRows(
              on,
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
        ? on -> kernels.copyTma(on, workers, to, from, bytes)
        : on -> kernels.copy(on, workers, to, from, bytes);
  }
}
