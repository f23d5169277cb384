package braid.internal.remote;

import braid.internal.rank.Once;
import braid.internal.rank.Waits;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.ControlMemory;
import braid.internal.shared.SharedFile;
import braid.internal.work.Transfer;
import braid.model.BraidException;
import braid.natives.load.BraidNativeMissing;
import braid.natives.ucx.UcxError;
import braid.natives.ucx.UcxPeer;
import braid.natives.ucx.UcxWorker;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// This rank's connections to ranks of other hosts, by UCX. Opened at the first use by a group of
/// several hosts; groups of one host never use it.
///
/// **Memory.** A rank *exports* its part of symmetric memory: it maps it for UCX and passes key and
/// address to the other members in the meeting of the allocation. They open a [RemoteWindow] on it.
/// Copies to a window are one-sided: the owner's worker thread writes or reads, or its network
/// card; the owner's streams do nothing. A copy has ended when the bytes have arrived, so the
/// signal that a stream raises after it follows them.
///
/// **Signals** to a window are messages. The owner's worker thread sets the word and wakes the
/// thread that sleeps on it, as a peer of the same host does by itself.
///
/// **Words of control** ([ControlMemory]) are copied to all members by messages, because they are
/// polled: a poll over a network would cost a round trip.
///
/// **Freeing.** A peer may still read memory that its owner has closed, as within a host, where the
/// peer's mapping keeps it. So a rank that closes its window tells the owner, and the owner frees
/// the memory after the last one, or when its worker is closed: nobody writes to it after that.
///
/// **Failures.** UCX reports a peer that has ended. All waits of this rank then fail with its host
/// and rank, unless the peer has said that it leaves. Waits for a transfer end with all others; the
/// transfer is then given a moment, and its connection is closed, before the memory may be freed.
public final class Network implements AutoCloseable {
  /// Time for the last messages of this rank.
  private static final Duration FAREWELL = Duration.ofMillis(500);

  private static final char FAILED = '!';
  private static final String SEPARATOR = ",";

  private final int rank;
  private final Supplier<Hosts> hosts;
  private final Waits waits;
  private final Transfers transfers;
  private final Runnable check = this::check;

  /// Leaves in order if the process ends: a rank that has done its work is not lost.
  private final Thread farewell = new Thread(this::close);

  private final Map<Integer, Connection> connections = new HashMap<>();
  private final Exports exports = new Exports();
  private final Map<Integer, String> lost = new ConcurrentHashMap<>();
  private final Set<Integer> leaving = ConcurrentHashMap.newKeySet();
  private @Nullable UcxWorker worker;
  private boolean closed;

  private record Connection(String address, UcxPeer peer) {}

  /// A member's memory, as the others reach it: UCX's address of its worker, key and address of the
  /// memory, and number of the export.
  private record Offer(String address, String key, long remote, long export) {
    String text() {
      return String.join(SEPARATOR, address, key, Long.toString(remote), Long.toString(export));
    }

    static Offer parse(String text) {
      var fields = text.split(SEPARATOR, -1);
      return new Offer(fields[0], fields[1], Long.parseLong(fields[2]), Long.parseLong(fields[3]));
    }
  }

  /// @param rank this rank of the world
  public Network(int rank, Supplier<Hosts> hosts, Waits waits) {
    this.rank = rank;
    this.hosts = hosts;
    this.waits = waits;
    this.transfers = new Transfers(waits);
  }

  /// Returns the hosts of all ranks. The first call waits until every rank has started.
  public Hosts hosts() {
    return hosts.get();
  }

  /// Returns whether these ranks, one of which is this rank, are on several hosts.
  public boolean spans(List<Integer> ranks) {
    return ranks.size() > 1 && hosts.get().areSeveral(ranks);
  }

  /// Allocates memory for a group of several hosts: within each host as `withinHost` does it for
  /// the members there, and windows on the other hosts' memory. Collective: all members call it
  /// together.
  public SymmetricMemory allocate(
      String label, Rendezvous rendezvous, Function<Rendezvous, SymmetricMemory> withinHost) {
    var ranks = rendezvous.ranks();
    int self = rendezvous.place().rank();
    var all = hosts.get().members(ranks);
    var own = all.stream().filter(host -> host.ranks().contains(self)).findFirst().orElseThrow();
    var others = all.stream().filter(host -> !host.equals(own)).toList();
    var far =
        others.stream()
            .flatMap(host -> host.ranks().stream())
            .map(ranks::get)
            .collect(Collectors.toSet());
    var near = withinHost.apply(new HostRendezvous(rendezvous, own, others, SharedFile::require));
    var windows = new ArrayList<RemoteWindow>();
    var made = new ArrayList<Exports.Export>();
    var part = near.on(own.ranks().indexOf(self));
    Runnable free =
        new Once(
            () -> {
              windows.forEach(this::release);
              if (made.isEmpty()) {
                near.close();
              } else {
                exports.close(made.getFirst(), near::close);
              }
            });
    try {
      var offers =
          offers(
              label,
              rendezvous,
              () -> {
                var mapping = worker().map(part);
                var export = exports.add(part, mapping, present(far));
                made.add(export);
                return offer(mapping.key(), part.address(), export);
              });
      var parts = new ArrayList<MemorySegment>();
      for (int member = 0; member < ranks.size(); member++) {
        if (own.ranks().contains(member)) {
          parts.add(near.on(own.ranks().indexOf(member)));
        } else {
          var window = window(ranks.get(member), offers.get(member), part.byteSize());
          windows.add(window);
          parts.add(window.segment());
        }
      }
      return SymmetricMemory.inPieces(
          parts,
          "the parts of %s are on several hosts, so they are not side by side".formatted(label),
          free);
    } catch (RuntimeException | Error e) {
      free.run();
      throw e;
    }
  }

  /// Allocates memory for a group of several hosts whose ranks have no address of other hosts'
  /// memory: within each host as `withinHost` does it, and placeholders for the other parts.
  /// Collective: all members call it together.
  ///
  /// @param failed whether an outcome that a member exchanges is a failure, which fails on all
  public SymmetricMemory allocateApart(
      String label,
      Rendezvous rendezvous,
      Predicate<String> failed,
      Function<Rendezvous, SymmetricMemory> withinHost) {
    var ranks = rendezvous.ranks();
    int self = rendezvous.place().rank();
    var all = hosts.get().members(ranks);
    var own = all.stream().filter(host -> host.ranks().contains(self)).findFirst().orElseThrow();
    var others = all.stream().filter(host -> !host.equals(own)).toList();
    HostRendezvous.Requirement success =
        (step, members, outcomes) -> {
          for (int i = 0; i < outcomes.size(); i++) {
            if (failed.test(outcomes.get(i))) {
              throw new AllocationFailed(
                  "%s failed on another host (rank %d: %s)"
                      .formatted(step, members.get(i), outcomes.get(i)));
            }
          }
        };
    var near = withinHost.apply(new HostRendezvous(rendezvous, own, others, success));
    long bytes = near.bytesPerRank();
    var parts = new ArrayList<MemorySegment>();
    for (int member = 0; member < ranks.size(); member++) {
      int place = own.ranks().indexOf(member);
      parts.add(place < 0 ? RemoteWindow.placeholder(bytes) : near.on(place));
    }
    return new SymmetricMemory(
        parts,
        Optional.empty(),
        "the parts of %s are on several hosts, so they are not side by side".formatted(label),
        near.attachment(),
        near.free(),
        near.discard());
  }

  /// Allocates words of control: a file that all members of one host share, or a copy of all parts
  /// on each member of several hosts. Collective: all members call it together.
  public ControlMemory control(
      String token, String label, long bytesPerRank, Rendezvous rendezvous) {
    return spans(rendezvous.ranks())
        ? copied(label, bytesPerRank, rendezvous)
        : ControlMemory.shared(
            SharedFile.allocate(token, label, bytesPerRank, rendezvous), rendezvous.place().rank());
  }

  private ControlMemory copied(String label, long bytesPerRank, Rendezvous rendezvous) {
    var ranks = rendezvous.ranks();
    int self = rendezvous.place().rank();
    var arena = Arena.ofShared();
    try {
      var memory = arena.allocate(ranks.size() * bytesPerRank, Long.BYTES * 8L);
      var made = new ArrayList<Exports.Export>();
      var offers =
          offers(
              label,
              rendezvous,
              () -> {
                var _ = worker();
                var export = exports.add(memory, null, Set.of());
                made.add(export);
                return offer(new byte[0], 0, export);
              });
      for (int member = 0; member < ranks.size(); member++) {
        if (member != self) {
          connect(ranks.get(member), offers.get(member).address());
        }
      }
      var export = made.getFirst();
      return new ControlMemory(
          SymmetricMemory.sideBySide(
              memory, bytesPerRank, new Once(() -> exports.close(export, arena::close))),
          self,
          new Copies(ranks, self, bytesPerRank, offers));
    } catch (RuntimeException | Error e) {
      arena.close();
      throw e;
    }
  }

  /// Publishes to the members' copies.
  private final class Copies implements ControlMemory.Publisher {
    private final List<Integer> ranks;
    private final int self;
    private final long bytesPerRank;
    private final List<Offer> offers;

    Copies(List<Integer> ranks, int self, long bytesPerRank, List<Offer> offers) {
      this.ranks = ranks;
      this.self = self;
      this.bytesPerRank = bytesPerRank;
      this.offers = offers;
    }

    @Override
    public void raise(int part, long offset, int epoch, int step) {
      long place = part * bytesPerRank + offset;
      for (int member = 0; member < ranks.size(); member++) {
        if (member != self && (part == self || part == member)) {
          send(
              ranks.get(member),
              new Message.Raise(offers.get(member).export(), place, epoch, step));
        }
      }
    }

    @Override
    public void store(long offset, MemorySegment bytes) {
      long place = self * bytesPerRank + offset;
      for (int member = 0; member < ranks.size(); member++) {
        if (member != self) {
          send(ranks.get(member), new Message.Store(offers.get(member).export(), place, bytes));
        }
      }
    }
  }

  /// Exchanges offers. A failure on one member fails on all.
  private List<Offer> offers(String label, Rendezvous rendezvous, Supplier<Offer> own) {
    String text;
    try {
      text = own.get().text();
    } catch (UcxError | BraidNativeMissing e) {
      text = FAILED + String.valueOf(e.getMessage());
    }
    var all = rendezvous.exchange(label, text);
    for (int member = 0; member < all.size(); member++) {
      if (all.get(member).charAt(0) == FAILED) {
        int failed = rendezvous.ranks().get(member);
        throw new AllocationFailed(
            "%s needs UCX between hosts %s but rank %d on %s has none: %s"
                .formatted(
                    label,
                    hosts.get().members(rendezvous.ranks()).stream()
                        .map(host -> host.name())
                        .collect(Collectors.joining(", ")),
                    failed,
                    hosts.get().name(failed),
                    all.get(member).substring(1)));
      }
    }
    return all.stream().map(Offer::parse).toList();
  }

  private Offer offer(byte[] key, long remote, Exports.Export export) {
    return new Offer(
        HexFormat.of().formatHex(worker().address()),
        HexFormat.of().formatHex(key),
        remote,
        export.number());
  }

  private synchronized UcxWorker worker() {
    var open = worker;
    if (open == null) {
      if (closed) {
        throw new IllegalStateException("rank " + rank + " is closed");
      }
      open = UcxWorker.open(rank + "-network", this::receive);
      worker = open;
      waits.watch(check);
      Runtime.getRuntime().addShutdownHook(farewell);
    }
    return open;
  }

  /// Returns those of some ranks that are still connected.
  private Set<Integer> present(Set<Integer> ranks) {
    return ranks.stream()
        .filter(each -> !lost.containsKey(each) && !leaving.contains(each))
        .collect(Collectors.toSet());
  }

  private RemoteWindow window(int owner, Offer offer, long bytes) {
    var peer = connect(owner, offer.address());
    return RemoteWindow.open(
        this,
        bytes,
        owner,
        offer.export(),
        offer.remote(),
        peer.memory(HexFormat.of().parseHex(offer.key())));
  }

  private synchronized UcxPeer connect(int peer, String address) {
    var known = connections.get(peer);
    if (known != null && known.address().equals(address)) {
      return known.peer();
    }
    var connected =
        worker().connect(HexFormat.of().parseHex(address), reason -> onFailure(peer, reason));
    connections.put(peer, new Connection(address, connected));
    return connected;
  }

  private synchronized UcxPeer peer(int number) {
    var known = connections.get(number);
    if (known == null) {
      throw new IllegalStateException("rank %d is not connected to %d".formatted(rank, number));
    }
    return known.peer();
  }

  /// Closes a window after its last use.
  private void release(RemoteWindow window) {
    window.close();
    send(window.rank(), new Message.Released(rank, window.export()));
  }

  /// Sends a message. One that does not arrive is reported as the loss of its peer.
  void send(int peer, Message message) {
    if (lost.containsKey(peer) || leaving.contains(peer)) {
      return;
    }
    var _ = peer(peer).send(message.encoded());
  }

  /// Takes a message, on the worker's thread. Messages to memory that was closed are dropped.
  private void receive(MemorySegment bytes) {
    switch (Message.read(bytes)) {
      case Message.Raise raise -> exports.raise(raise);
      case Message.Store store -> exports.store(store);
      case Message.Released released -> exports.release(released);
      case Message.Leaving(int peer) -> {
        leaving.add(peer);
        exports.forget(peer);
      }
    }
  }

  private void onFailure(int peer, String reason) {
    if (!leaving.contains(peer)) {
      lost.putIfAbsent(peer, reason);
    }
    exports.forget(peer);
  }

  /// Throws if a rank of another host was lost. Every wait of this rank calls it.
  private void check() {
    for (var peer : lost.keySet()) {
      throw lost(peer, "");
    }
  }

  private BraidException lost(int peer, String description) {
    return new BraidException(
        "%srank %d on host %s does not answer (UCX: %s); see what happened to it there"
            .formatted(
                description.isEmpty() ? "" : description + ": ",
                peer,
                hosts.get().name(peer),
                lost.getOrDefault(peer, "connection closed")));
  }

  void put(Supplier<String> description, RemoteWindow window, Transfer transfer) {
    var pieces =
        window.pieces(
            transfer.from(), transfer.fromPitch(), transfer.to(), transfer.toPitch(), transfer);
    var peer = peer(window.rank());
    await(description, window, pieces, some -> peer.put(window.memory(), some));
  }

  void fetch(Supplier<String> description, RemoteWindow window, Transfer transfer) {
    var pieces =
        window.pieces(
            transfer.to(), transfer.toPitch(), transfer.from(), transfer.fromPitch(), transfer);
    var peer = peer(window.rank());
    await(description, window, pieces, some -> peer.fetch(window.memory(), some));
  }

  private void await(
      Supplier<String> description,
      RemoteWindow window,
      List<UcxPeer.Piece> pieces,
      Function<List<UcxPeer.Piece>, CompletableFuture<Void>> start) {
    int owner = window.rank();
    try {
      transfers.await(
          description,
          pieces,
          start,
          () -> {
            lost.putIfAbsent(owner, "a transfer did not end");
            peer(owner).close();
          });
    } catch (UcxError e) {
      lost.putIfAbsent(owner, e.status());
      throw lost(owner, description.get());
    }
  }

  private void forgetFarewell() {
    try {
      Runtime.getRuntime().removeShutdownHook(farewell);
    } catch (IllegalStateException e) {
      // The process ends already; the other call of close finds nothing to do.
    }
  }

  /// Tells the peers that this rank leaves, ends all connections and frees what is exported.
  /// Idempotent.
  @Override
  public void close() {
    UcxWorker open;
    List<CompletableFuture<Void>> last;
    synchronized (this) {
      open = worker;
      if (closed || open == null) {
        closed = true;
        return;
      }
      closed = true;
      last = new ArrayList<>();
      connections.forEach(
          (number, connection) -> {
            if (!lost.containsKey(number) && !leaving.contains(number)) {
              var _ = connection.peer().send(new Message.Leaving(rank).encoded());
              last.add(connection.peer().flush());
            }
          });
    }
    waits.unwatch(check);
    if (!Thread.currentThread().equals(farewell)) {
      forgetFarewell();
    }
    var _ =
        Transfers.settles(
            CompletableFuture.allOf(last.toArray(CompletableFuture[]::new)), FAREWELL);
    open.close();
    exports.freeAll();
  }
}
