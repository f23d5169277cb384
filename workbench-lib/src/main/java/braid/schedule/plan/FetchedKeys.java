package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import braid.schedule.Tokens;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/// Keys and values that each rank fetches, unit by unit: directly from their owners, or from the
/// predecessor in a ring, which holds what it has fetched for the successor.
final class FetchedKeys {
  /// Neither a mark nor a unit.
  static final int NONE = -1;

  private final AttentionSpec spec;
  private final ContextParallel how;
  private final int ranks;
  private final Handshake handshake;
  private final KeyValue kv;
  private final Lane comm;

  /// Present if ranks exchange with neighbors only.
  private final Optional<RingRoute> route;

  /// Raised by the successor, by owner and chunk: it has fetched the chunk out of its slot.
  private final Optional<Flag> fetched;

  /// One pair of buffers per unit in flight in a ring, or one for the sequence.
  private final List<KeyValue> slots = new ArrayList<>();

  /// Rows of a slot, by rank.
  private final List<Long> rows;

  /// Units that use some slots in turn; all use a slot that is the only one.
  record Turns(int slots, List<Integer> units) {
    static Turns of(int slots, List<FetchedUnit> units, Predicate<FetchedUnit> which) {
      return new Turns(
          slots,
          IntStream.range(0, units.size())
              .filter(at -> which.test(units.get(at)))
              .boxed()
              .toList());
    }

    int slot(int unit) {
      return units.indexOf(unit) % slots;
    }

    /// Returns the unit before in the slot, or [#NONE].
    int before(int unit) {
      int at = units.indexOf(unit) - slots;
      return slots == 1 || at < 0 ? NONE : units.get(at);
    }

    boolean isLast(int unit) {
      return slots == 1 || units.indexOf(unit) + slots >= units.size();
    }
  }

  /// @param gradients true if gradients of what was fetched are returned
  FetchedKeys(
      AttentionSpec spec,
      ContextParallel how,
      Schedule.Builder builder,
      int ranks,
      boolean gradients) {
    this.spec = spec;
    this.how = how;
    this.ranks = ranks;
    handshake = new Handshake(builder, ranks, how.splits());
    kv = new KeyValue(builder.symmetric(Part.KEY), builder.symmetric(Part.VALUE));
    comm = AttentionLanes.communication(builder, "comm", how);
    route =
        how.neighborsOnly()
            ? Optional.of(new RingRoute(spec, how, ranks, gradients))
            : Optional.empty();
    fetched = route.map(_ -> builder.flag("fetched", ranks * how.splits()));
    rows =
        route
            .map(around -> Collections.nCopies(ranks, around.mostRows()))
            .orElseGet(() -> IntStream.range(0, ranks).mapToObj(this::slotRows).toList());
    for (int slot = 0; slot < slots(); slot++) {
      slots.add(
          new KeyValue(
              buffer("fetched key " + slot, kv.key()),
              buffer("fetched value " + slot, kv.value())));
      // No symmetric memory is empty.
      if (route.isEmpty() || rows.getFirst() > 0) {
        builder.add(slots.getLast().key());
        builder.add(slots.getLast().value());
      }
    }
  }

  private Buffer buffer(String name, Buffer like) {
    return new Buffer(name, like.dtype(), shapes(), route.isPresent(), false);
  }

  private long slotRows(int rank) {
    var units = units(rank);
    if (how.method() != Method.RING) {
      return units.isEmpty() ? 0 : spec.sequence();
    }
    return units.stream().mapToLong(unit -> unit.layout().rows()).max().orElse(0);
  }

  /// Returns the shapes of a slot.
  List<Shape> shapes() {
    return Buffer.shapes(ranks, rank -> new Shape(rows.get(rank), kv.key().columns(rank)));
  }

  /// Returns the number of slots: one more than there are streams in a ring.
  int slots() {
    return how.method() == Method.RING ? how.streams() + 1 : 1;
  }

  /// Returns the rank's own keys and values, by rank.
  KeyValue own() {
    return kv;
  }

  Lane comm() {
    return comm;
  }

  /// Returns what a rank fetches, in order.
  List<FetchedUnit> units(int rank) {
    if (route.isPresent()) {
      return route.get().units(rank);
    }
    var units = new ArrayList<FetchedUnit>();
    var sources = new Neighbors(rank, ranks, ChunkOrder.PREVIOUS_FIRST).peers();
    if (how.method() == Method.RING) {
      for (int source : sources) {
        for (int chunk = 0; chunk < how.splits(); chunk++) {
          var pieces = pieces(rank, source, chunk);
          units.add(unit(chunk, pieces, Tokens.of(pieces.stream().map(Piece::positions).toList())));
        }
      }
    } else {
      var byPosition = Tokens.of(List.of(new Slice(0, spec.sequence())));
      for (int chunk = 0; chunk < how.splits(); chunk++) {
        var pieces = new ArrayList<Piece>();
        for (int source : sources) {
          pieces.addAll(pieces(rank, source, chunk));
        }
        units.add(unit(chunk, pieces, byPosition));
      }
    }
    units.removeIf(unit -> unit.keys().isEmpty());
    return units;
  }

  private static FetchedUnit unit(int chunk, List<Piece> pieces, Tokens layout) {
    var owners = pieces.stream().map(Piece::source).distinct().toList();
    return new FetchedUnit(owners, chunk, 1, pieces, pieces, List.of(), layout);
  }

  /// Returns the pieces of a chunk of a source that a rank's queries see.
  List<Piece> pieces(int rank, int source, int chunk) {
    var pieces = new ArrayList<Piece>();
    for (var run : Tokens.of(spec, ranks, source).runs()) {
      for (var needed : Tokens.of(spec, ranks, rank).seen(spec, run.positions())) {
        var positions = needed.part(how.splits(), chunk);
        if (!positions.isEmpty()) {
          pieces.add(new Piece(source, run, positions));
        }
      }
    }
    return pieces;
  }

  private boolean fetches(int rank, int source) {
    return Tokens.of(spec, ranks, source).runs().stream()
        .anyMatch(run -> !Tokens.of(spec, ranks, rank).seen(spec, run.positions()).isEmpty());
  }

  /// Returns the part of one rank.
  OfRank of(Program program) {
    return new OfRank(program);
  }

  /// The steps of one rank.
  final class OfRank {
    private final Program program;
    private final int rank;
    private final Neighbors neighbors;
    private final Handshake.OfRank signals;
    private final List<FetchedUnit> units;
    private final Turns turns;

    /// Units that the predecessor in the ring fetches.
    private final List<FetchedUnit> ofPrevious;

    /// Slots that it fetches them into.
    private final Turns turnsOfPrevious;

    /// Mark after the attention to each unit.
    private final int[] done;

    private OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.neighbors = new Neighbors(rank, ranks, ChunkOrder.NEXT_FIRST);
      this.signals = handshake.of(program);
      this.units = FetchedKeys.this.units(rank);
      this.turns = turns(units);
      this.ofPrevious =
          route.isPresent() ? FetchedKeys.this.units(neighbors.previous()) : List.of();
      this.turnsOfPrevious = turns(ofPrevious);
      this.done = new int[units.size()];
      Arrays.fill(done, NONE);
    }

    private Turns turns(List<FetchedUnit> of) {
      return Turns.of(slots(), of, unit -> !unit.keys().isEmpty());
    }

    Handshake.OfRank signals() {
      return signals;
    }

    List<FetchedUnit> units() {
      return units;
    }

    /// Returns the keys and values of a unit.
    KeyValue keys(int unit) {
      return slots.get(turns.slot(unit));
    }

    /// Sets the mark after the attention to a unit.
    void done(int unit, int mark) {
      done[unit] = mark;
    }

    /// Signals all ranks that access this rank's memory to begin.
    void begin() {
      SequencedSet<Integer> accessing = new LinkedHashSet<>();
      if (route.isEmpty()) {
        accessing.addAll(readers());
      } else {
        if (fetchesOf(neighbors.next(), unit -> unit.hops() == 1)) {
          accessing.add(neighbors.next());
        }
        if (units.stream().anyMatch(unit -> !unit.sums().isEmpty())) {
          accessing.add(neighbors.previous());
        }
      }
      accessing.forEach(peer -> signals.begin(comm, peer));
    }

    private boolean fetchesOf(int other, Predicate<FetchedUnit> which) {
      return FetchedKeys.this.units(other).stream()
          .anyMatch(unit -> !unit.keys().isEmpty() && which.test(unit));
    }

    /// Returns the ranks that fetch from this one.
    private List<Integer> readers() {
      return neighbors.peers().stream()
          .filter(
              peer ->
                  route.isEmpty()
                      ? fetches(peer, rank)
                      : peer == neighbors.next() && fetchesOf(peer, _ -> true))
          .toList();
    }

    /// Waits until all ranks are done with this rank's memory.
    void end() {
      readers().forEach(reader -> signals.awaitRead(comm, reader));
    }

    /// Fetches a unit into the slot of one that is done.
    void fetch(int number) {
      var unit = units.get(number);
      if (unit.keys().isEmpty()) {
        return;
      }
      int earlier = turns.before(number);
      if (earlier != NONE && done[earlier] != NONE) {
        program.after(comm, number + 1, done[earlier]);
      }
      if (route.isPresent()) {
        exchange(number, earlier, route.get(), fetched.orElseThrow());
      } else {
        fetchFromOwners(number);
      }
    }

    private void fetchFromOwners(int number) {
      var unit = units.get(number);
      var moves = new ArrayList<Move>();
      for (var piece : unit.keys()) {
        signals.awaitBegun(comm, piece.source());
        moves.addAll(kv.moves(piece.source(), piece.rows(), keys(number), rank, unit.rows(piece)));
      }
      program.copy(comm, number + 1, moves);
      // Each source learns of the last unit that reads its memory.
      var sources = new HashSet<>(unit.owners());
      units
          .subList(number + 1, units.size())
          .forEach(later -> later.owners().forEach(sources::remove));
      sources.stream().sorted().forEach(source -> signals.read(comm, source));
    }

    /// Fetches a unit from the predecessor: the predecessor's own keys, or those in a slot of it.
    ///
    /// @param earlier the unit before in the slot, which the successor has fetched by then
    private void exchange(int number, int earlier, RingRoute around, Flag taken) {
      var unit = units.get(number);
      int previous = neighbors.previous();
      int next = neighbors.next();
      if (earlier != NONE && isFetched(around, units.get(earlier))) {
        program.await(comm, unit.chunk(), taken, word(units.get(earlier)), next);
      }
      var from = kv;
      boolean first = unit.hops() == 1;
      if (first) {
        signals.awaitBegun(comm, previous);
      } else {
        signals.awaitLanded(comm, unit.owner(), unit.chunk(), previous);
        from = slots.get(turnsOfPrevious.slot(atPrevious(unit)));
      }
      var moves = new ArrayList<Move>();
      for (var block : unit.blocks()) {
        var rowsFrom =
            first ? Tokens.of(spec, ranks, previous).rows(block.positions()) : block.rows();
        moves.addAll(from.moves(previous, rowsFrom, keys(number), rank, block.rows()));
      }
      program.copy(comm, number + 1, moves);
      if (isFetched(around, unit)) {
        signals.landed(comm, next, unit.owner(), unit.chunk());
      }
      if (!first && !turnsOfPrevious.isLast(atPrevious(unit))) {
        program.signal(comm, unit.chunk(), taken, word(unit), previous);
      }
      if (number == turns.units().getLast()) {
        signals.read(comm, previous);
      }
    }

    /// Returns the number of a unit at the predecessor.
    private int atPrevious(FetchedUnit unit) {
      int at = 0;
      while (ofPrevious.get(at).owner() != unit.owner()
          || ofPrevious.get(at).chunk() != unit.chunk()) {
        at++;
      }
      return at;
    }

    /// Returns whether the successor fetches a unit from this rank.
    private static boolean isFetched(RingRoute around, FetchedUnit unit) {
      return !around.unit(unit.owner(), unit.chunk(), unit.hops() + 1).keys().isEmpty();
    }

    private int word(FetchedUnit unit) {
      return unit.owner() * how.splits() + unit.chunk();
    }
  }
}
