package braid.internal.cuda;

import braid.internal.cuda.device.Launch;
import braid.natives.kernels.Kernels;

/// Copies by multiprocessors, so many workers to each. In bulk a worker is one thread that gives
/// orders, and leaves registers and threads to the multiplication beside it; by loads it is 512
/// threads, which copy what a GPU without bulk copies, or an address or a size that is no multiple
/// of 16, leaves to them.
public final class WorkerCopies {
  private final Kernels kernels;
  private final boolean bulk;

  /// @param bulk whether they copy in bulk where they can
  public WorkerCopies(Kernels kernels, boolean bulk) {
    this.kernels = kernels;
    this.bulk = bulk && kernels.hasTma();
  }

  /// How that is copied, decided once for every time it will be.
  public Launch of(int workers, long to, long from, long bytes) {
    return bulk && Kernels.fitsTma(to, from, bytes)
        ? on -> kernels.copyTma(on, workers, to, from, bytes)
        : on -> kernels.copy(on, workers, to, from, bytes);
  }
}
