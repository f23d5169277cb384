package braid.internal.remote;

import braid.internal.rank.Once;
import braid.internal.rank.Waits;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.ControlMemory;
import braid.internal.shared.SharedFile;
import braid.internal.shared.SignalWord;
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
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
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
  /// Time for a transfer to end after its wait has been ended.
  private static final Duration GRACE = Duration.ofSeconds(1);

  /// Time for the last messages of this rank.
  private static final Duration FAREWELL = Duration.ofMillis(500);

  /// Rows of a transfer that are under way at once.
  private static final int ROWS_AT_ONCE = 1024;

  private static final char FAILED = '!';
  private static final String SEPARATOR = ",";

  private final int rank;
  private final Supplier<Hosts> hosts;
  private final Waits waits;
  private final Runnable check = this::check;

  /// Leaves in order if the process ends: a rank that has done its work is not lost.
  private final Thread farewell = new Thread(this::close);

  private final Map<Integer, Connection> connections = new HashMap<>();
  private final Map<Long, Export> exports = new ConcurrentHashMap<>();
  private final Map<Integer, String> lost = new ConcurrentHashMap<>();
  private final Set<Integer> leaving = ConcurrentHashMap.newKeySet();
  private @Nullable UcxWorker worker;
  private long exported;
  private boolean closed;

  private record Connection(String address, UcxPeer peer) {}

  /// Memory of this rank that ranks of other hosts reach.
  ///
  /// @param mapping null if they reach it by messages only
  /// @param holders ranks that have not closed their windows
  private record Export(
      long number,
      MemorySegment memory,
      UcxWorker.@Nullable Mapping mapping,
      Set<Integer> holders,
      CompletableFuture<Runnable> free) {}

  /// What a member tells the others about its memory.
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
    var made = new ArrayList<Export>();
    var part = near.on(own.ranks().indexOf(self));
    Runnable free =
        new Once(
            () -> {
              windows.forEach(this::release);
              if (made.isEmpty()) {
                near.close();
              } else {
                made.getFirst().free().complete(near::close);
                freeUnused(made.getFirst());
              }
            });
    try {
      var offers =
          offers(
              label,
              rendezvous,
              () -> {
                var mapping = worker().map(part);
                var export = export(part, mapping, far);
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
      var made = new ArrayList<Export>();
      var offers =
          offers(
              label,
              rendezvous,
              () -> {
                var _ = worker();
                var export = export(memory, null, Set.of());
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
              memory,
              bytesPerRank,
              new Once(
                  () -> {
                    export.free().complete(arena::close);
                    freeUnused(export);
                  })),
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

  private Offer offer(byte[] key, long remote, Export export) {
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

  private synchronized Export export(
      MemorySegment memory, UcxWorker.@Nullable Mapping mapping, Set<Integer> holders) {
    var holding = ConcurrentHashMap.<Integer>newKeySet();
    holding.addAll(holders);
    holding.removeAll(lost.keySet());
    holding.removeAll(leaving);
    var export = new Export(++exported, memory, mapping, holding, new CompletableFuture<>());
    exports.put(export.number(), export);
    return export;
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

  /// Frees exported memory that is closed and that no window reaches.
  private void freeUnused(Export export) {
    var free = export.free().getNow(null);
    if (free != null && export.holders().isEmpty() && exports.remove(export.number(), export)) {
      var mapping = export.mapping();
      if (mapping != null) {
        mapping.close();
      }
      free.run();
    }
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
      case Message.Raise(long number, long offset, int epoch, int step) -> {
        var export = exports.get(number);
        if (export != null) {
          SignalWord.raise(export.memory(), offset, epoch, step);
        }
      }
      case Message.Store(long number, long offset, MemorySegment stored) -> {
        var export = exports.get(number);
        if (export != null) {
          Message.store(export.memory().asSlice(offset, stored.byteSize()), stored);
        }
      }
      case Message.Released(int holder, long number) -> {
        var export = exports.get(number);
        if (export != null && export.holders().remove(holder)) {
          freeSoon(List.of(export));
        }
      }
      case Message.Leaving(int peer) -> {
        leaving.add(peer);
        forget(peer);
      }
    }
  }

  private void onFailure(int peer, String reason) {
    if (!leaving.contains(peer)) {
      lost.putIfAbsent(peer, reason);
    }
    forget(peer);
  }

  /// Removes a peer that closes no windows any more.
  private void forget(int peer) {
    var held = exports.values().stream().filter(each -> each.holders().remove(peer)).toList();
    freeSoon(held);
  }

  /// Frees memory on another thread: the worker's is in a call of UCX.
  private void freeSoon(List<Export> closing) {
    if (!closing.isEmpty()) {
      Thread.ofVirtual().start(() -> closing.forEach(this::freeUnused));
    }
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
    transfer(description, window, pieces, some -> peer.put(window.memory(), some));
  }

  void fetch(Supplier<String> description, RemoteWindow window, Transfer transfer) {
    var pieces =
        window.pieces(
            transfer.to(), transfer.toPitch(), transfer.from(), transfer.fromPitch(), transfer);
    var peer = peer(window.rank());
    transfer(description, window, pieces, some -> peer.fetch(window.memory(), some));
  }

  private void transfer(
      Supplier<String> description,
      RemoteWindow window,
      List<UcxPeer.Piece> pieces,
      Function<List<UcxPeer.Piece>, CompletableFuture<Void>> start) {
    for (int first = 0; first < pieces.size(); first += ROWS_AT_ONCE) {
      waits.check(description);
      var some = pieces.subList(first, Math.min(first + ROWS_AT_ONCE, pieces.size()));
      await(description, window.rank(), start.apply(some).thenApply(_ -> Boolean.TRUE));
    }
  }

  private void await(Supplier<String> description, int peer, CompletableFuture<Boolean> done) {
    try {
      var _ = waits.until(description, nanos -> poll(done, nanos));
    } catch (UcxError e) {
      lost.putIfAbsent(peer, e.status());
      throw lost(peer, description.get());
    } catch (RuntimeException | Error e) {
      end(peer, done);
      throw e;
    }
  }

  private static @Nullable Boolean poll(CompletableFuture<Boolean> done, long nanos)
      throws InterruptedException {
    try {
      return done.get(nanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      return null;
    } catch (ExecutionException e) {
      throw e.getCause() instanceof UcxError failed
          ? failed
          : new IllegalStateException("a transfer failed", e);
    }
  }

  /// Ends a transfer whose wait has ended, since its memory may be freed next.
  private void end(int peer, CompletableFuture<Boolean> done) {
    if (!settles(done, GRACE)) {
      lost.putIfAbsent(peer, "a transfer did not end");
      peer(peer).close();
      var _ = settles(done, GRACE);
    }
  }

  /// Waits without a check of releases, which have ended the wait before. Returns whether the
  /// transfer has ended, in any way.
  private static boolean settles(CompletableFuture<?> done, Duration limit) {
    boolean interrupted = Thread.interrupted();
    try {
      done.handle((_, _) -> true).get(limit.toMillis(), TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException | ExecutionException e) {
      return false;
    } catch (InterruptedException e) {
      interrupted = true;
      return done.isDone();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
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
    var _ = settles(CompletableFuture.allOf(last.toArray(CompletableFuture[]::new)), FAREWELL);
    open.close();
    for (var export : List.copyOf(exports.values())) {
      export.holders().clear();
      freeUnused(export);
    }
  }
}
