package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.Collective;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.IntToLongFunction;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Keys and values that each rank fetches, unit by unit: directly from their owners, or from the
/// predecessor in a ring, which holds what it has fetched for the successor. Or a library gathers
/// them: each chunk of the rows of all ranks, also those that a rank does not see.
final class FetchedKeys {
  /// Pieces of a chunk up to which each is a copy of its own.
  private static final int MOST_COPIES = 8;

  private final AttentionSpec spec;
  private final ContextParallel how;
  private final int ranks;
  private final ExchangedKeys exchanged;

  /// Each rank's own keys and values, as it sends them, and as it uses them.
  private final KeyValue kv;

  private final KeyValue own;

  /// The rank's own keys and values, as a library sends them.
  private final KeyValue outgoing;

  private final Lane comm;

  /// Present if ranks exchange with neighbors only.
  private final Optional<RingRoute> route;

  /// Present if a library gathers the keys and values, in two calls per chunk, or in one if they
  /// are fused.
  private final Optional<LibraryLane> library;

  /// One pair of buffers per unit in flight in a ring, or one for the sequence.
  private final List<KeyValue> slots = new ArrayList<>();

  /// By slot, the fetched keys and values as they are used.
  private final List<KeyValue> used = new ArrayList<>();

  /// Queries, keys and fetched units, by rank.
  private final List<Tokens> queries;

  private final List<Tokens> keys;
  private final List<List<FetchedUnit>> units;

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
  }

  /// @param given each rank's own keys and values
  /// @param gradients true if gradients of what was fetched are returned
  FetchedKeys(
      AttentionSpec spec,
      ContextParallel how,
      Schedule.Builder builder,
      KeyValue given,
      int ranks,
      boolean gradients) {
    this.spec = spec;
    this.how = how;
    this.ranks = ranks;
    exchanged = new ExchangedKeys(spec, builder, given);
    kv = exchanged.sent();
    own = exchanged.restored(kv);
    comm = AttentionLanes.communication(builder, "comm", how);
    queries = IntStream.range(0, ranks).mapToObj(rank -> Tokens.of(spec, ranks, rank)).toList();
    keys = IntStream.range(0, ranks).mapToObj(rank -> Tokens.ofKeys(spec, ranks, rank)).toList();
    route =
        how.neighborsOnly()
            ? Optional.of(new RingRoute(spec, how, queries, keys, gradients))
            : Optional.empty();
    boolean byLibrary = how.transport().isLibrary();
    if (byLibrary) {
      checkEqualParts();
    }
    library =
        byLibrary
            ? Optional.of(
                new LibraryLane(builder, comm, ranks, (kv.areFused() ? 1 : 2) * how.splits()))
            : Optional.empty();
    units = IntStream.range(0, ranks).mapToObj(this::planned).toList();
    rows =
        route
            .map(around -> Collections.nCopies(ranks, around.mostRows()))
            .orElseGet(() -> IntStream.range(0, ranks).mapToObj(this::slotRows).toList());
    for (int slot = 0; slot < slots(); slot++) {
      slots.add(slot(builder, slot));
      used.add(exchanged.restored(slots.getLast()));
    }
    outgoing = byLibrary && kv.areFused() ? contiguous(builder) : kv;
  }

  private void checkEqualParts() {
    for (int rank = 0; rank < ranks; rank++) {
      long rows = keys.get(rank).count();
      if (rows * ranks != spec.keys()) {
        throw new BraidException(
            "%s gathers equal parts, so each of %d ranks must have as many tokens but rank %d has %d of %d; take over(COPY_ENGINE)"
                .formatted(how.transport(), ranks, rank, rows, spec.keys()));
      }
    }
  }

  /// Returns a pair of buffers, or one if keys and values are fused.
  private KeyValue slot(Schedule.Builder builder, int slot) {
    if (kv.areFused()) {
      return KeyValue.halves(
          buffer(builder, "fetched kv " + slot, shapes(rows::get, kv.both().columns())));
    }
    return KeyValue.of(
        buffer(builder, "fetched key " + slot, shapes(rows::get, kv.key().columns())),
        buffer(builder, "fetched value " + slot, shapes(rows::get, kv.value().columns())));
  }

  private Buffer buffer(Schedule.Builder builder, String name, List<Shape> shapes) {
    boolean symmetric = route.isPresent() || LibraryLane.needsSymmetric(how.transport());
    var buffer = new Buffer(name, kv.key().dtype(), shapes, symmetric, false);
    // No symmetric memory is empty.
    return route.isPresent() && rows.getFirst() == 0 ? buffer : builder.add(buffer);
  }

  /// Returns fused keys and values in rows without gaps, as a library sends them.
  private KeyValue contiguous(Schedule.Builder builder) {
    var both = kv.both();
    return both.columns() == both.buffer().columns(0)
        ? kv
        : KeyValue.halves(buffer(builder, "sent kv", shapes(both::rows, both.columns())));
  }

  private long slotRows(int rank) {
    if (library.isPresent()) {
      return spec.keys();
    }
    return units.get(rank).stream()
        .flatMap(unit -> unit.keys().stream())
        .mapToLong(piece -> piece.fetchedRows().end())
        .max()
        .orElse(0);
  }

  /// Returns the shapes of a slot's keys as they are used.
  List<Shape> shapes() {
    return shapes(rows::get, own.key().columns());
  }

  private List<Shape> shapes(IntToLongFunction rowsOf, long columns) {
    return Buffer.shapes(ranks, rank -> new Shape(rowsOf.applyAsLong(rank), columns));
  }

  /// Returns the number of slots: one more than there are streams in a ring.
  int slots() {
    return how.method() == Method.RING ? how.streams() + 1 : 1;
  }

  /// Returns the rank's own keys and values as it uses them, by rank.
  KeyValue own() {
    return own;
  }

  Lane comm() {
    return comm;
  }

  /// Returns what a rank fetches, in order.
  List<FetchedUnit> units(int rank) {
    return units.get(rank);
  }

  private List<FetchedUnit> planned(int rank) {
    if (route.isPresent()) {
      return route.get().units(rank);
    }
    if (library.isPresent()) {
      return gatheredUnits(rank);
    }
    var planned = new ArrayList<FetchedUnit>();
    var sources = new Neighbors(rank, ranks, ChunkOrder.PREVIOUS_FIRST).peers();
    if (how.method() == Method.RING) {
      for (int source : sources) {
        for (int chunk = 0; chunk < how.splits(); chunk++) {
          planned.add(unit(chunk, List.of(source), seen(rank, source, chunk), 0));
        }
      }
    } else {
      // All chunks have one slot. The rows of each follow each other.
      long row = 0;
      for (int chunk = 0; chunk < how.splits(); chunk++) {
        var seen = new ArrayList<Piece>();
        for (int source : sources) {
          seen.addAll(seen(rank, source, chunk));
        }
        // Stripes are one block for each owner; parts of other layouts may join.
        if (spec.layout() != TokenLayout.STRIPED) {
          seen.sort(Comparator.comparingLong(piece -> piece.run().first()));
        }
        planned.add(unit(chunk, sources, seen, row));
        row += seen.stream().mapToLong(Piece::length).sum();
      }
    }
    planned.removeIf(unit -> unit.keys().isEmpty());
    return planned;
  }

  /// Returns a unit of pieces in rows one after another.
  private static FetchedUnit unit(int chunk, List<Integer> sources, List<Piece> pieces, long row) {
    var placed = new ArrayList<Piece>();
    for (var piece : pieces) {
      placed.add(new Piece(piece.source(), piece.run(), row));
      row += piece.length();
    }
    return unit(chunk, sources, placed);
  }

  private static FetchedUnit unit(int chunk, List<Integer> sources, List<Piece> pieces) {
    var having = pieces.stream().map(Piece::source).collect(Collectors.toSet());
    var owners = sources.stream().filter(having::contains).toList();
    return new FetchedUnit(owners, chunk, 1, pieces, pieces, List.of());
  }

  /// Returns the chunks that a library gathers. Their rows are one chunk after the other, and in it
  /// those of all ranks, by rank.
  private List<FetchedUnit> gatheredUnits(int rank) {
    var chunks = new ArrayList<FetchedUnit>();
    var sources = IntStream.range(0, ranks).boxed().toList();
    long row = 0;
    for (int chunk = 0; chunk < how.splits(); chunk++) {
      var rows = chunkRows(chunk);
      var gathered = new ArrayList<Piece>();
      for (int source : sources) {
        for (var run : keys.get(source).runs()) {
          var sent = run.inRows(rows.start(), rows.end());
          for (var seen : source == rank ? List.<Tokens.Run>of() : seen(rank, sent)) {
            gathered.add(new Piece(source, seen, row + seen.row() - sent.row()));
          }
          row += sent.length();
        }
      }
      chunks.add(unit(chunk, sources, gathered));
    }
    return chunks;
  }

  /// Returns the rows of each rank's own keys in a chunk that a library gathers.
  private Slice chunkRows(int chunk) {
    return new Slice(0, spec.keys() / ranks).part(how.splits(), chunk);
  }

  /// Returns the keys of a run that a rank's queries see.
  private List<Tokens.Run> seen(int rank, Tokens.Run some) {
    return some.length() == 0 ? List.of() : queries.get(rank).seen(spec, some);
  }

  /// Returns the pieces of a chunk of a source that a rank's queries see. Of many short ones, a
  /// ring also fetches the rows between them, if these are no more than theirs: all are one copy
  /// then, and their gradients one sum.
  private List<Piece> seen(int rank, int source, int chunk) {
    var runs = keys.get(source).runs();
    var seen = runs.stream().flatMap(run -> seen(rank, run).stream()).toList();
    var parts = seen.stream().map(run -> run.part(how.splits(), chunk));
    if (how.method() == Method.RING && seen.size() > MOST_COPIES) {
      long start = seen.getFirst().row();
      var all = new Slice(start, seen.getLast().endRow() - start);
      if (all.length() <= 2 * seen.stream().mapToLong(Tokens.Run::length).sum()) {
        var rows = all.part(how.splits(), chunk);
        if (seen.stream().noneMatch(run -> Slice.rows(run).overlaps(rows))) {
          return List.of();
        }
        parts = runs.stream().map(run -> run.inRows(rows.start(), rows.end()));
      }
    }
    return parts.filter(part -> part.length() > 0).map(part -> new Piece(source, part, 0)).toList();
  }

  /// Returns the pieces of a chunk of an owner that a rank fetches.
  List<Piece> pieces(int rank, int owner, int chunk) {
    return units.get(rank).stream()
        .filter(unit -> unit.chunk() == chunk && unit.owners().contains(owner))
        .flatMap(unit -> unit.keys().stream())
        .filter(piece -> piece.source() == owner)
        .toList();
  }

  /// Returns the part of one rank.
  OfRank of(Program program) {
    return new OfRank(program);
  }

  /// The steps of one rank.
  final class OfRank {
    private final Program program;
    private final int rank;
    private final int previous;
    private final List<FetchedUnit> units;
    private final Turns turns;

    /// Units that the predecessor in the ring fetches.
    private final List<FetchedUnit> ofPrevious;

    /// Slots that it fetches them into.
    private final Turns turnsOfPrevious;

    private OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.previous = new Neighbors(rank, ranks, ChunkOrder.NEXT_FIRST).previous();
      this.units = FetchedKeys.this.units.get(rank);
      this.turns = turns(units);
      this.ofPrevious = route.isPresent() ? FetchedKeys.this.units.get(previous) : List.of();
      this.turnsOfPrevious = turns(ofPrevious);
    }

    private Turns turns(List<FetchedUnit> of) {
      return Turns.of(slots(), of, unit -> !unit.keys().isEmpty());
    }

    List<FetchedUnit> units() {
      return units;
    }

    /// Returns the keys and values of a unit as they are used.
    KeyValue keys(int unit) {
      return used.get(slot(unit));
    }

    private int slot(int unit) {
      return slots.size() == 1 ? 0 : turns.slot(unit);
    }

    /// Rounds the rank's own keys and values if they are exchanged so.
    void round(Lane lane) {
      exchanged.round(program, lane);
      exchanged.restoreOwn(program, lane, own);
    }

    /// Restores a fetched unit that was rounded.
    void restore(Lane lane, int unit) {
      var rows = Slice.joined(units.get(unit).keys().stream().map(Piece::fetchedRows).toList());
      exchanged.restore(program, lane, unit + 1, slots.get(slot(unit)), keys(unit), rows);
    }

    /// Fetches a unit from its owners, or from the predecessor in the ring.
    void fetch(int number) {
      var unit = units.get(number);
      if (library.isPresent()) {
        gather(library.get(), number, unit.chunk());
        return;
      }
      if (unit.keys().isEmpty()) {
        return;
      }
      // A slot holds a unit until the successor has fetched it, which is the next hop of the chunk.
      program.round(unit.chunk() * (ranks + 1) + unit.hops());
      program.copy(comm, number + 1, route.isPresent() ? fromPrevious(number) : fromOwners(number));
      program.round(0);
    }

    private void gather(LibraryLane calls, int number, int chunk) {
      var own = chunkRows(chunk);
      var all = new Slice(ranks * own.start(), ranks * own.length());
      var slot = slots.getFirst();
      var gather = Collective.ALL_GATHER;
      if (kv.areFused()) {
        if (!outgoing.equals(kv)) {
          program.copy(
              comm,
              number + 1,
              kv.moves(rank, List.of(new KeyValue.Rows(own, own)), outgoing, rank));
        }
        calls.call(
            program,
            chunk,
            number + 1,
            gather,
            outgoing.both().on(rank, own),
            slot.both().on(rank, all));
        return;
      }
      calls.call(
          program, 2 * chunk, number + 1, gather, kv.key().on(rank, own), slot.key().on(rank, all));
      calls.call(
          program,
          2 * chunk + 1,
          number + 1,
          gather,
          kv.value().on(rank, own),
          slot.value().on(rank, all));
    }

    private List<Move> fromOwners(int number) {
      var unit = units.get(number);
      var moves = new ArrayList<Move>();
      for (int owner : unit.owners()) {
        var rows =
            unit.keys().stream()
                .filter(piece -> piece.source() == owner)
                .map(piece -> new KeyValue.Rows(piece.rows(), piece.fetchedRows()));
        moves.addAll(kv.moves(owner, rows.toList(), slots.get(slot(number)), rank));
      }
      return moves;
    }

    /// Returns the moves from the predecessor's own keys, or from a slot of it.
    private List<Move> fromPrevious(int number) {
      var unit = units.get(number);
      boolean first = unit.hops() == 1;
      var from = first ? kv : slots.get(turnsOfPrevious.slot(atPrevious(unit)));
      var rows =
          unit.keys().stream()
              .map(
                  piece ->
                      new KeyValue.Rows(
                          first ? piece.rows() : piece.fetchedRows(), piece.fetchedRows()));
      return from.moves(previous, rows.toList(), slots.get(slot(number)), rank);
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
  }
}
