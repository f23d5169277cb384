package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.natives.nccl.Nccl;
import braid.natives.nccl.NcclCommunicator;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// NCCL communicators of this rank, one for each set of ranks and policy. They are created at first
/// use, kept as long as the rank, aborted if a rank is lost, and closed in the order of their
/// creation, which is the same on all ranks.
///
/// An asynchronous error of one ends all waits of the rank.
public final class Communicators implements AutoCloseable {
  private static final String NONE = "";

  /// Engines that run a communicator's collectives.
  public enum Policy {
    MULTIPROCESSORS,
    /// Copy engines wherever NCCL can: gathers and all-to-alls of windows.
    COPY_ENGINES
  }

  private record Key(List<Integer> ranks, Policy policy) {}

  /// @param id unique id with which the ranks joined, to check that all have the same
  private record Joined(NcclCommunicator communicator, String id) {}

  private final CudaDevice device;
  private final Waits waits;
  private final Duration timeout;
  private final Map<Key, Joined> joined = new LinkedHashMap<>();
  private final Runnable check = this::check;

  public Communicators(CudaDevice device, Waits waits, Duration timeout) {
    this.device = device;
    this.waits = waits;
    this.timeout = timeout;
    waits.watch(check);
  }

  /// Returns the communicator of the ranks. Collective: if one of them has lost it, all join a new
  /// one.
  public synchronized NcclCommunicator of(Rendezvous rendezvous, Policy policy) {
    var key = new Key(List.copyOf(rendezvous.ranks()), policy);
    var label = "NCCL communicator for " + policy;
    var existing = Optional.ofNullable(joined.get(key));
    var ids =
        rendezvous.exchange(label, existing.map(Joined::id).orElse(NONE)).stream()
            .distinct()
            .toList();
    if (existing.isPresent() && ids.size() == 1) {
      return existing.get().communicator();
    }
    existing.map(Joined::communicator).ifPresent(this::abort);
    var fresh = join(rendezvous, policy, label);
    joined.put(key, fresh);
    return fresh.communicator();
  }

  private Joined join(Rendezvous rendezvous, Policy policy, String label) {
    int rank = rendezvous.place().rank();
    var id =
        rendezvous
            .exchange(label, rank == 0 ? HexFormat.of().formatHex(Nccl.uniqueId()) : NONE)
            .getFirst();
    return new Joined(
        NcclCommunicator.join(
            device.gpu(),
            HexFormat.of().parseHex(id),
            rank,
            rendezvous.place().size(),
            new NcclCommunicator.Configuration(policy == Policy.COPY_ENGINES, 0, 0),
            () -> waits.check(() -> label),
            timeout),
        id);
  }

  private synchronized void check() {
    for (var each : List.copyOf(joined.values())) {
      var failed = each.communicator().asynchronousError();
      if (failed.isPresent()) {
        // Aborted, so that it does not end later waits too.
        abort(each.communicator());
        throw failed.get();
      }
    }
  }

  /// Aborts all communicators, because a rank is lost; new ones are created at the next use.
  public synchronized void abort() {
    var left = new ArrayDeque<AutoCloseable>();
    joined.values().forEach(each -> left.add(each.communicator()::abort));
    joined.clear();
    Closing.all(left::poll);
  }

  /// Aborts a communicator and removes it.
  public synchronized void abort(NcclCommunicator communicator) {
    joined.values().removeIf(each -> each.communicator().equals(communicator));
    communicator.abort();
  }

  @Override
  public synchronized void close() {
    waits.unwatch(check);
    var left = new ArrayDeque<AutoCloseable>();
    joined.values().forEach(each -> left.add(each.communicator()));
    joined.clear();
    Closing.all(left::poll);
  }
}
