package braid.internal.cuda.device;

import braid.internal.cuda.device.SharedCommunicators.Lease;
import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.natives.nccl.Nccl;
import braid.natives.nccl.NcclCommunicator;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// NCCL communicators of this rank, one for each set of ranks and policy. They are created at first
/// use, aborted if a rank is lost, and closed after their last user ([SharedCommunicators]), or
/// with the rank in the order of their creation, which is the same on all ranks.
///
/// An asynchronous error of one ends all waits of the rank.
public final class Communicators implements AutoCloseable {
  private static final String NONE = "";
  private static final String SEPARATOR = " ";
  private static final long POLL_NANOS = 50_000;

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
  public Lease<NcclCommunicator> lease(Rendezvous rendezvous, Policy policy) {
    return lease(rendezvous, List.of(new SharedCommunicators.Key(rendezvous.ranks(), policy, NONE)))
        .getFirst();
  }

  /// Begins uses of communicators, of all ranks or of some. Collective: all ranks of the rendezvous
  /// name the same ones in the same order. Returns those of which this rank is a member.
  public synchronized List<Lease<NcclCommunicator>> lease(
      Rendezvous rendezvous, List<SharedCommunicators.Key> keys) {
    int self = rendezvous.ranks().get(rendezvous.place().rank());
    var mine = keys.stream().filter(key -> key.ranks().contains(self)).toList();
    var label = keys.isEmpty() ? "" : "NCCL communicators for " + keys.getFirst().policy();
    var leases = new LinkedHashMap<SharedCommunicators.Key, Lease<NcclCommunicator>>();
    try {
      mine.forEach(key -> shared.lease(key).ifPresent(lease -> leases.put(key, lease)));
      var known = exchange(rendezvous, label, keys, key -> shared.id(key).orElse(NONE));
      var lost = keys.stream().filter(key -> !agree(known.get(key))).toList();
      if (lost.isEmpty()) {
        return List.copyOf(leases.values());
      }
      for (var key : lost) {
        var lease = leases.remove(key);
        if (lease != null) {
          lease.close();
          abort(lease.communicator());
        }
      }
      var ids =
          exchange(
              rendezvous,
              label,
              lost,
              key ->
                  key.ranks().getFirst() == self
                      ? HexFormat.of().formatHex(Nccl.uniqueId())
                      : NONE);
      for (var key : lost) {
        if (key.ranks().contains(self)) {
          var lease = join(key, self, Objects.requireNonNull(ids.get(key)).getFirst(), label);
          leases.put(key, lease);
          if (key.isOfChannel()) {
            connect(lease.communicator(), 1 - key.ranks().indexOf(self));
          }
        }
      }
      return mine.stream().map(key -> Objects.requireNonNull(leases.get(key))).toList();
    } catch (RuntimeException | Error e) {
      leases.values().forEach(lease -> Closing.after(e, lease));
      throw e;
    }
  }

  /// Returns whether all members have the same communicator.
  private static boolean agree(@Nullable List<String> ids) {
    return ids != null && !ids.contains(NONE) && ids.stream().distinct().count() == 1;
  }

  /// Exchanges a text for each communicator. Returns those of its members, in their order.
  private static Map<SharedCommunicators.Key, List<String>> exchange(
      Rendezvous rendezvous,
      String label,
      List<SharedCommunicators.Key> keys,
      Function<SharedCommunicators.Key, String> text) {
    int self = rendezvous.ranks().get(rendezvous.place().rank());
    var mine = keys.stream().filter(key -> key.ranks().contains(self)).map(text).toList();
    var all = rendezvous.exchange(label, String.join(SEPARATOR, mine));
    var next = new HashMap<Integer, Iterator<String>>();
    for (int member = 0; member < all.size(); member++) {
      next.put(
          rendezvous.ranks().get(member), List.of(all.get(member).split(SEPARATOR, -1)).iterator());
    }
    var texts = new HashMap<SharedCommunicators.Key, List<String>>();
    for (var key : keys) {
      texts.put(
          key,
          key.ranks().stream().map(rank -> Objects.requireNonNull(next.get(rank)).next()).toList());
    }
    return texts;
  }

  /// Exchanges a message with the other rank of a channel. NCCL connects two ranks in their first
  /// call, on the caller's thread; all ranks connect their channels in one order.
  private void connect(NcclCommunicator communicator, int other) {
    var gpu = device.gpu();
    long bytes = gpu.allocate(2);
    try (var stream = gpu.stream(gpu.greatestPriority())) {
      communicator.group(
          () -> {
            communicator.send(bytes, 1, Nccl.Type.INT8, other, stream);
            communicator.receive(bytes + 1, 1, Nccl.Type.INT8, other, stream);
          });
      waits.until(
          () -> "the first message between hosts",
          nanos -> {
            if (stream.isDone()) {
              return Boolean.TRUE;
            }
            TimeUnit.NANOSECONDS.sleep(POLL_NANOS);
            return null;
          });
    }
    gpu.free(bytes);
  }

  private Lease<NcclCommunicator> join(
      SharedCommunicators.Key key, int self, String id, String label) {
    return shared.add(
        key,
        id,
        NcclCommunicator.join(
            device.gpu(),
            HexFormat.of().parseHex(id),
            key.ranks().indexOf(self),
            key.ranks().size(),
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
