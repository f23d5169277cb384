package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.natives.nccl.Nccl;
import braid.natives.nccl.NcclCommunicator;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HexFormat;
import java.util.List;

/// NCCL communicators of this rank, one for each set of ranks and policy. They are created at first
/// use, aborted if a rank is lost, and closed after their last user ([SharedCommunicators]), or
/// with the rank in the order of their creation, which is the same on all ranks.
///
/// An asynchronous error of one ends all waits of the rank.
public final class Communicators implements AutoCloseable {
  private static final String NONE = "";

  /// Engines that run a communicator's collectives.
  public enum Policy {
    MULTIPROCESSORS,
    /// Copy engines wherever NCCL can: gathers and all-to-alls of windows.
    COPY_ENGINES,
    /// Multiprocessors, by NCCL's symmetric kernels where all tensors are in windows.
    WINDOWS
  }

  private final CudaDevice device;
  private final Waits waits;
  private final Duration timeout;
  private final SharedCommunicators<NcclCommunicator> shared = new SharedCommunicators<>();
  private final Runnable check = this::check;

  public Communicators(CudaDevice device, Waits waits, Duration timeout) {
    this.device = device;
    this.waits = waits;
    this.timeout = timeout;
    waits.watch(check);
  }

  /// Returns a rendezvous whose first exchange also closes the communicators that none of their
  /// ranks uses. Every set-up of memory and libraries meets by it.
  public Rendezvous closingUnused(Rendezvous rendezvous) {
    return shared.closingUnused(rendezvous);
  }

  /// Begins a use of the communicator of the ranks. Collective: if one of them has lost it, all
  /// join a new one.
  public synchronized SharedCommunicators.Lease<NcclCommunicator> lease(
      Rendezvous rendezvous, Policy policy) {
    var key = new SharedCommunicators.Key(List.copyOf(rendezvous.ranks()), policy);
    var label = "NCCL communicator for " + policy;
    var existing = shared.lease(key);
    try {
      var ids =
          rendezvous.exchange(label, shared.id(key).orElse(NONE)).stream().distinct().toList();
      if (existing.isPresent() && ids.size() == 1) {
        return existing.get();
      }
    } catch (RuntimeException | Error e) {
      existing.ifPresent(lease -> Closing.after(e, lease));
      throw e;
    }
    existing.ifPresent(
        lease -> {
          lease.close();
          abort(lease.communicator());
        });
    return join(rendezvous, key, label);
  }

  private SharedCommunicators.Lease<NcclCommunicator> join(
      Rendezvous rendezvous, SharedCommunicators.Key key, String label) {
    int rank = rendezvous.place().rank();
    var id =
        rendezvous
            .exchange(label, rank == 0 ? HexFormat.of().formatHex(Nccl.uniqueId()) : NONE)
            .getFirst();
    return shared.add(
        key,
        id,
        NcclCommunicator.join(
            device.gpu(),
            HexFormat.of().parseHex(id),
            rank,
            rendezvous.place().size(),
            new NcclCommunicator.Configuration(key.policy() == Policy.COPY_ENGINES, 0, 0),
            () -> waits.check(() -> label),
            timeout));
  }

  private synchronized void check() {
    for (var each : shared.all()) {
      var failed = each.asynchronousError();
      if (failed.isPresent()) {
        // Aborted, so that it does not end later waits too.
        abort(each);
        throw failed.get();
      }
    }
  }

  /// Aborts all communicators, because a rank is lost; new ones are created at the next use.
  public synchronized void abort() {
    var left = new ArrayDeque<AutoCloseable>();
    shared.removeAll().forEach(each -> left.add(each::abort));
    Closing.all(left::poll);
  }

  /// Aborts a communicator and removes it.
  public synchronized void abort(NcclCommunicator communicator) {
    shared.remove(communicator);
    communicator.abort();
  }

  @Override
  public synchronized void close() {
    waits.unwatch(check);
    var left = new ArrayDeque<AutoCloseable>(shared.removeAll());
    Closing.all(left::poll);
  }
}
