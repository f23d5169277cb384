package braid.internal.cuda;

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

/// NCCL communicators of this rank, one for each set of ranks and policy that asked. They are made
/// at the first use, kept as long as the rank, aborted where a rank is lost, and closed in the
/// order in which they were made, which is the same on all ranks.
public final class Communicators implements AutoCloseable {
  /// Which engines carry its collectives.
  public enum Policy {
    MULTIPROCESSORS,
    /// Copy engines wherever NCCL can: gathers and all-to-alls of windows.
    COPY_ENGINES
  }

  private record Key(List<Integer> ranks, Policy policy) {}

  private final CudaDevice device;
  private final Waits waits;
  private final Duration timeout;
  private final Map<Key, NcclCommunicator> made = new LinkedHashMap<>();

  public Communicators(CudaDevice device, Waits waits, Duration timeout) {
    this.device = device;
    this.waits = waits;
    this.timeout = timeout;
  }

  /// The communicator of those ranks. All of them call it together; only the first time they meet.
  public synchronized NcclCommunicator of(Rendezvous rendezvous, Policy policy) {
    var key = new Key(List.copyOf(rendezvous.ranks()), policy);
    var existing = made.get(key);
    if (existing != null) {
      return existing;
    }
    var label = "NCCL communicator for " + policy;
    int rank = rendezvous.place().rank();
    var ids =
        rendezvous.exchange(label, rank == 0 ? HexFormat.of().formatHex(Nccl.uniqueId()) : "");
    var communicator =
        NcclCommunicator.join(
            device.gpu(),
            HexFormat.of().parseHex(ids.getFirst()),
            rank,
            rendezvous.place().size(),
            new NcclCommunicator.Configuration(policy == Policy.COPY_ENGINES, 0, 0),
            () -> waits.check(() -> label),
            timeout);
    made.put(key, communicator);
    return communicator;
  }

  /// Ends what they are at, because a rank is lost; new ones are made when they are asked for.
  public synchronized void abort() {
    for (var each : made.values()) {
      each.abort();
    }
    made.clear();
  }

  @Override
  public synchronized void close() {
    var left = new ArrayDeque<AutoCloseable>(made.values());
    made.clear();
    Closing.all(left::poll);
  }
}
