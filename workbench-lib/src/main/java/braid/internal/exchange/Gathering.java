package braid.internal.exchange;

import braid.Method;
import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Work;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/// An all-gather: every rank's rows come to every rank. Each rank fetches: its peers' rows lie in
/// symmetric memory, and it copies them into `whole`, each to its place.
public final class Gathering {
  /// What is done with rows once they are there.
  public interface Arrivals {
    /// This rank's own rows, which were there from the start.
    void own(int chunk, Slice rows);

    /// Rows of other ranks, there once the event is reached.
    void arrived(int chunk, List<Slice> rows, Event there);

    /// All rows, of every rank, are in `whole` once the event is reached: what is not overlapped
    /// begins then.
    void all(Event there);

    /// Nothing is done with any.
    Arrivals NOTHING =
        new Arrivals() {
          @Override
          public void own(int chunk, Slice rows) {}

          @Override
          public void arrived(int chunk, List<Slice> rows, Event there) {}

          @Override
          public void all(Event there) {}
        };
  }

  /// How this rank's own rows come to be among all rows.
  public enum Own {
    /// They do not: nobody looks for them there.
    LEFT_OUT,
    /// By a copy within the rank.
    COPIED,
    /// They are there from the start: shards are as long as the whole, and each rank's rows lie in
    /// their place in its own.
    IN_PLACE
  }

  private final Rig rig;
  private final Handshake handshake;
  private final Layout layout;
  private final Rows rows;
  private final SymmetricMemory shards;
  private final IntFunction<MemorySegment> landing;
  private final Own own;
  private final Stream communication;

  /// @param layout of each rank's rows, by part
  /// @param shards each rank's rows, from its first on, or from the whole's first where they are in
  ///   place
  /// @param landing where all rows come together on a rank: on this one, and in a ring on the one
  ///   before it
  public Gathering(
      Rig rig,
      Handshake handshake,
      Layout layout,
      Rows rows,
      SymmetricMemory shards,
      IntFunction<MemorySegment> landing,
      Own own) {
    this.rig = rig;
    this.handshake = handshake;
    this.layout = layout;
    this.rows = rows;
    this.shards = shards;
    this.landing = landing;
    this.own = own;
    this.communication = rig.communication("comm");
  }

  public Stream communication() {
    return communication;
  }

  /// Where all rows come together on this rank.
  public MemorySegment whole() {
    return landing.apply(rig.place.rank());
  }

  /// Those rows of a rank, where that rank has them.
  public MemorySegment shard(int source, Slice of) {
    int first = own == Own.IN_PLACE ? 0 : layout.rows(source, 0).start();
    return rows.of(shards.on(source), new Slice(of.start() - first, of.length()));
  }

  /// Lays out one all-gather.
  public void layOut(Arrivals arrivals) {
    handshake.begin(communication);
    switch (rig.how.method()) {
      case PIPELINED, BULK -> pipelined(arrivals);
      case DIRECT -> direct(arrivals);
      case RING -> ring(arrivals);
      case UNFUSED -> unfused(arrivals);
    }
  }

  /// The collective in chunks: chunk c is the c-th part of every rank's rows. Own rows are there
  /// already and are worked on first; what comes from the peers when all of the chunk has landed,
  /// as behind a library's collective.
  ///
  /// ```
  /// comm    | copy chunk 0 | copy chunk 1 | copy chunk 2 |
  /// gemm-0  | own            |            | gemm 1              |
  /// gemm-1  |              | gemm 0              |       | gemm 2              |
  ///                        ^ landed 0     ^ landed 1     ^ landed 2
  /// ```
  ///
  /// What is left without company is part of the first chunk's copy and the last one's
  /// multiplication: more chunks make both shorter, until what each costs by itself (the link's
  /// latency, smaller multiplications) is more.
  private void pipelined(Arrivals arrivals) {
    var peers = rig.peers();
    int piece = 0;
    arrivals.own(piece, own());
    peers.forEach(peer -> handshake.awaitBegun(communication, peer));
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      piece++;
      int at = chunk;
      var landed = peers.stream().map(peer -> layout.rows(peer, at)).toList();
      fetchAll(piece, peers, landed);
      if (!landed.isEmpty()) {
        arrivals.arrived(piece, landed, communication.mark());
      }
    }
    end(arrivals);
  }

  /// Peer by peer, each peer's rows in chunks.
  ///
  /// ```
  /// comm    | copy r+1  | copy r+2  | copy r+3  |
  /// gemm-0  | gemm own  | gemm r+1  | gemm r+2  | gemm r+3  |
  ///                     ^ landed    ^ landed    ^ landed
  /// ```
  ///
  /// Own rows are worked on while the first peer's come, so little is left without company. Unlike
  /// a collective's, the pieces come from one peer at a time, which wants links between each pair.
  private void direct(Arrivals arrivals) {
    int piece = 0;
    arrivals.own(piece, own());
    for (int peer : rig.peers()) {
      handshake.awaitBegun(communication, peer);
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        piece++;
        var some = layout.rows(peer, chunk);
        fetch(piece, peer, some);
        arrivals.arrived(piece, List.of(some), communication.mark());
      }
    }
    end(arrivals);
  }

  /// Round the ring: each rank fetches from the one before it what that one has, first its own
  /// rows, then what it fetched itself.
  ///
  /// ```
  /// comm    | copy r-1's  | copy r-2's  | copy r-3's  |      all of them from r-1
  /// gemm-0  | gemm own    | gemm r-1    | gemm r-2    | gemm r-3  |
  ///                       ^ landed, raised to r+1, which fetches it now
  /// ```
  ///
  /// Only links between neighbours are used.
  private void ring(Arrivals arrivals) {
    int piece = 0;
    arrivals.own(piece, own());
    for (int step = 1; step < rig.place.size(); step++) {
      int source = rig.back(step);
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        piece++;
        var some = layout.rows(source, chunk);
        if (step == 1) {
          handshake.awaitBegun(communication, source);
          fetch(piece, source, some);
        } else {
          // Raised below, by the rank before this one.
          handshake.awaitLanded(communication, source, chunk, rig.previous());
          copy(piece, source, rows.of(landing.apply(rig.previous()), some), some);
        }
        if (step < rig.place.size() - 1) {
          handshake.landed(communication, rig.next(), source, chunk);
        }
        arrivals.arrived(piece, List.of(some), communication.mark());
      }
    }
    if (rig.place.size() > 1) {
      handshake.read(communication, rig.previous());
    }
    copyOwn();
    if (rig.place.size() > 1) {
      handshake.awaitRead(communication, rig.next());
    }
  }

  /// All of the communication, then all of the multiplication.
  ///
  /// ```
  /// comm    | copy r+1  | copy r+2  | copy r+3  |
  /// gemm-0                                      | gemm                                |
  ///                                             ^ landed
  /// ```
  ///
  /// As in a library's collective in place, own rows need no copy where nobody keeps them.
  private void unfused(Arrivals arrivals) {
    var peers = rig.peers();
    peers.forEach(peer -> handshake.awaitBegun(communication, peer));
    fetchAll(0, peers, peers.stream().map(this::part).toList());
    end(arrivals);
  }

  private void end(Arrivals arrivals) {
    rig.peers().forEach(peer -> handshake.read(communication, peer));
    copyOwn();
    if (rig.how.method() == Method.UNFUSED) {
      arrivals.all(communication.mark());
    }
    rig.peers().forEach(peer -> handshake.awaitRead(communication, peer));
  }

  private Slice own() {
    return part(rig.place.rank());
  }

  private Slice part(int source) {
    int start = layout.rows(source, 0).start();
    return new Slice(start, layout.offset(source, layout.chunks()));
  }

  private void fetch(int chunk, int source, Slice some) {
    copy(chunk, source, shard(source, some), some);
  }

  /// From each of those ranks its part, on their way at once where the hardware can.
  private void fetchAll(int chunk, List<Integer> sources, List<Slice> parts) {
    var copies = new ArrayList<Copy>();
    for (int i = 0; i < parts.size(); i++) {
      var some = parts.get(i);
      int source = sources.get(i);
      if (some.length() > 0) {
        copies.add(new Copy(work(chunk, source), shard(source, some), rows.of(whole(), some)));
      }
    }
    communication.copyAll(rig.work(chunk, () -> "all-gather, chunk %d,".formatted(chunk)), copies);
  }

  private void copy(int chunk, int source, MemorySegment from, Slice some) {
    if (some.length() > 0) {
      communication.copy(work(chunk, source), from, rows.of(whole(), some));
    }
  }

  private Work work(int chunk, int source) {
    return rig.work(chunk, () -> "all-gather, chunk %d (rank %d's rows),".formatted(chunk, source));
  }

  private void copyOwn() {
    if (own == Own.COPIED) {
      communication.copyLocal(
          rig.work(() -> "all-gather, own rows,"),
          shard(rig.place.rank(), own()),
          rows.of(whole(), own()));
    }
  }
}
