package braid.schedule.plan;

import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Flag;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Plans a standalone collective. Every rank fetches elements from its peers' tensors and writes
/// only its own; or it pushes into its peers' tensors; or a library runs it.
///
/// | flag | raised by | waited for by | meaning |
/// |---|---|---|---|
/// | begun | each rank, to a peer that accesses its tensors | that peer, before its access | its `x` is ready, its `y` may be written |
/// | summed | the rank that sums a part, to all others | the others, before they fetch it | the sum is ready, and all its inputs have been read |
/// | read | the reader, to the source | the source, at the end | its tensors are no longer read |
/// | landed | the writer, to the target rank | the target rank, at the end | the data has arrived |
///
/// All collectives use the same flags, so those of a group share their words.
public final class CollectivePlanner {

  private final CollectiveSpec spec;
  private final int ranks;
  private final Schedule.Builder builder;
  private final Flag begun;
  private final Flag summed;
  private final Flag read;
  private final Flag landed;
  private final Lane comm;
  private final Lane adder;
  private final Buffer x;
  private final Buffer y;
  private final Buffer inbox;

  private CollectivePlanner(CollectiveSpec spec, int ranks) {
    this.spec = spec;
    this.ranks = ranks;
    this.builder = Schedule.on(new Goal.Collected(spec.collective(), spec.root()), ranks);
    var flags = CollectiveSpec.FLAGS.stream().map(name -> builder.flag(name, ranks)).toList();
    this.begun = flags.get(0);
    this.summed = flags.get(1);
    this.read = flags.get(2);
    this.landed = flags.get(3);
    var lanes = CollectiveSpec.lanes(spec.way(), spec.workers());
    lanes.forEach(builder::add);
    this.comm = lanes.getFirst();
    this.adder = lanes.getLast();
    long elements = spec.elements();
    this.x = builder.symmetric("x", spec.dtype(), elements, 1);
    this.y =
        spec.inPlace()
            ? x
            : switch (spec.collective()) {
              case ALL_GATHER -> builder.symmetric("y", spec.dtype(), elements * ranks, 1);
              case REDUCE_SCATTER -> builder.symmetric("y", spec.dtype(), elements / ranks, 1);
              case ALL_REDUCE, ALL_TO_ALL -> builder.symmetric("y", spec.dtype(), elements, 1);
              case BROADCAST, SEND, RECEIVE, BARRIER -> x;
            };
    // Only sums need an inbox.
    this.inbox =
        spec.collective().adds()
            ? builder.local("inbox", spec.dtype(), (long) CollectiveSpec.ROOMS * ranks * chunk(), 1)
            : x;
    switch (spec.collective()) {
      case BROADCAST ->
          builder
              .given("x", rank -> rank == spec.root() ? x.on(rank) : x.on(rank, new Slice(0, 0)))
              .made("y", x::on);
      case BARRIER -> {}
      default -> builder.given("x", x::on).made("y", y::on);
    }
  }

  /// Returns the schedule of a standalone collective, from `x` to `y`.
  public static Schedule plan(CollectiveSpec spec, int ranks) {
    var planner = new CollectivePlanner(spec, ranks);
    return planner.builder.steps(program -> planner.new OfRank(program).write());
  }

  /// Returns the number of elements of a chunk of a sum.
  private long chunk() {
    return CollectiveSpec.CHUNK_BYTES / spec.dtype().bytes();
  }

  /// Returns a rank's part of a tensor.
  private Slice part(Buffer of, int rank) {
    return Slice.of(of.rows(rank), ranks, rank);
  }

  /// Returns the elements of a gathered `y` that hold a rank's `x`.
  private Slice slot(int rank) {
    return new Slice(rank * spec.elements(), spec.elements());
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final List<Integer> peers;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      // Starts with the next rank, so that not all ranks access the same one.
      this.peers = IntStream.range(1, ranks).mapToObj(i -> (rank + i) % ranks).toList();
    }

    void write() {
      switch (spec.collective()) {
        case BARRIER -> meet();
        default -> {
          switch (spec.way()) {
            case COPY_ENGINE, WORKERS -> fetch();
            case PUSHING -> push();
            case NCCL, NCCL_COPY_ENGINE, NVSHMEM -> call();
          }
        }
      }
    }

    private void meet() {
      begin();
      awaitAll(begun);
    }

    private void fetch() {
      switch (spec.collective()) {
        case ALL_GATHER -> {
          meet();
          program.copy(
              comm,
              Step.NO_CHUNK,
              peers.stream().map(peer -> new Move(x.on(peer), y.on(rank, slot(peer)))).toList());
          keepOwn(x.on(rank), y.on(rank, slot(rank)));
          finish();
        }
        case ALL_TO_ALL -> {
          meet();
          var mine = part(x, rank);
          program.copy(
              comm,
              Step.NO_CHUNK,
              peers.stream()
                  .map(peer -> new Move(x.on(peer, mine), y.on(rank, part(y, peer))))
                  .toList());
          keepOwn(x.on(rank, mine), y.on(rank, mine));
          finish();
        }
        case REDUCE_SCATTER -> {
          meet();
          reduce(part(x, rank), new Slice(0, y.rows(rank)));
          finish();
        }
        case ALL_REDUCE -> {
          meet();
          switch (spec.algorithm()) {
            case ONE_SHOT -> oneShot();
            case TWO_SHOT -> twoShot();
          }
        }
        case BROADCAST -> broadcast();
        case SEND, RECEIVE, BARRIER ->
            throw new IllegalStateException("nothing is fetched in " + spec.collective());
      }
    }

    /// Each rank sums one part, and the others fetch it from there. If `x` is `y`, a part is
    /// overwritten only after its sum is ready, hence after its owner has read it on all ranks.
    private void twoShot() {
      var mine = part(x, rank);
      reduce(mine, mine);
      // On the adding lane, after the sum.
      peers.forEach(peer -> program.signal(adder, Step.NO_CHUNK, summed, rank, peer));
      for (int peer : peers) {
        program.await(comm, Step.NO_CHUNK, summed, peer, peer);
        var slice = part(y, peer);
        program.copy(comm, Step.NO_CHUNK, y.on(peer, slice), y.on(rank, slice));
      }
      finish();
    }

    /// Each rank sums everything. If `x` is `y`, it is overwritten only after every rank has
    /// fetched all of it.
    private void oneShot() {
      var all = new Slice(0, spec.elements());
      if (!spec.inPlace() || ranks == 1) {
        reduce(all, all);
        finish();
        return;
      }
      var pieces = pieces(all);
      if (pieces.size() > CollectiveSpec.ROOMS) {
        throw new IllegalStateException("no room for all of " + spec);
      }
      for (int chunk = 0; chunk < pieces.size(); chunk++) {
        fetchParts(chunk, pieces.get(chunk));
      }
      finish();
      program.after(adder, Step.NO_CHUNK, program.mark(comm, Step.NO_CHUNK));
      for (int chunk = 0; chunk < pieces.size(); chunk++) {
        add(chunk, pieces.get(chunk), y.on(rank, pieces.get(chunk)));
      }
    }

    /// Fetches the root's `x`. Only the root waits for all ranks.
    private void broadcast() {
      int root = spec.root();
      if (rank == root) {
        begin();
        awaitAll(read);
      } else {
        program.await(comm, Step.NO_CHUNK, begun, root, root);
        program.copy(comm, Step.NO_CHUNK, x.on(root), x.on(rank));
        program.signal(comm, Step.NO_CHUNK, read, rank, root);
      }
    }

    /// Sums the elements `some` of all ranks' `x`, in the order of the ranks, in fp32, and rounds
    /// once.
    private void reduce(Slice some, Slice target) {
      if (ranks == 1) {
        keepOwn(x.on(rank, some), y.on(rank, target));
        return;
      }
      var pieces = pieces(some);
      var done = new ArrayList<Integer>();
      for (int chunk = 0; chunk < pieces.size(); chunk++) {
        if (chunk >= CollectiveSpec.ROOMS) {
          program.after(comm, chunk, done.get(chunk - CollectiveSpec.ROOMS));
        }
        var piece = pieces.get(chunk);
        fetchParts(chunk, piece);
        program.after(adder, chunk, program.mark(comm, chunk));
        long skipped = piece.start() - some.start();
        add(chunk, piece, y.on(rank, new Slice(target.start() + skipped, piece.length())));
        done.add(program.mark(adder, chunk));
      }
    }

    /// Returns the chunks of some elements, in order.
    private List<Slice> pieces(Slice some) {
      var pieces = new ArrayList<Slice>();
      for (long skipped = 0; skipped < some.length(); skipped += chunk()) {
        pieces.add(new Slice(some.start() + skipped, Math.min(chunk(), some.length() - skipped)));
      }
      return pieces;
    }

    private void fetchParts(int chunk, Slice piece) {
      program.copy(
          comm,
          chunk,
          peers.stream()
              .map(peer -> new Move(x.on(peer, piece), inbox(chunk, peer, piece.length())))
              .toList());
    }

    private void add(int chunk, Slice piece, Region sum) {
      program.reduce(adder, chunk, parts(chunk, piece, sum), sum, Finish.NONE);
    }

    /// Returns all ranks' parts of a chunk, in the order of the ranks. This rank's own part is
    /// copied to the inbox if the sum overwrites it.
    private List<Region> parts(int chunk, Slice piece, Region sum) {
      var mine = x.on(rank, piece);
      boolean moved = mine.equals(sum);
      if (moved) {
        program.copy(adder, chunk, mine, inbox(chunk, rank, piece.length()));
      }
      return IntStream.range(0, ranks)
          .mapToObj(
              source -> source == rank && !moved ? mine : inbox(chunk, source, piece.length()))
          .toList();
    }

    private Region inbox(int chunk, int source, long length) {
      long room = (long) (chunk % CollectiveSpec.ROOMS) * ranks + source;
      return inbox.on(rank, new Slice(room * chunk(), length));
    }

    /// Each rank signals that its tensors may be written; a writer signals that it has written.
    private void push() {
      switch (spec.collective()) {
        case ALL_GATHER -> {
          begin();
          peers.forEach(peer -> pushTo(peer, x.on(rank), y.on(peer, slot(rank))));
          keepOwn(x.on(rank), y.on(rank, slot(rank)));
          awaitAll(landed);
        }
        case ALL_TO_ALL -> {
          begin();
          var mine = part(y, rank);
          peers.forEach(peer -> pushTo(peer, x.on(rank, part(x, peer)), y.on(peer, mine)));
          keepOwn(x.on(rank, mine), y.on(rank, mine));
          awaitAll(landed);
        }
        case BROADCAST -> {
          int root = spec.root();
          if (rank == root) {
            peers.forEach(peer -> pushTo(peer, x.on(rank), x.on(peer)));
          } else {
            program.signal(comm, Step.NO_CHUNK, begun, rank, root);
            program.await(comm, Step.NO_CHUNK, landed, root, root);
          }
        }
        case REDUCE_SCATTER, ALL_REDUCE, SEND, RECEIVE, BARRIER ->
            throw new IllegalStateException("nothing is pushed in " + spec.collective());
      }
    }

    private void pushTo(int peer, Region from, Region to) {
      program.await(comm, Step.NO_CHUNK, begun, peer, peer);
      program.copy(comm, Step.NO_CHUNK, from, to);
      program.signal(comm, Step.NO_CHUNK, landed, rank, peer);
    }

    private void call() {
      if (spec.needs().meetsBefore()) {
        meet();
      }
      program.call(
          new Step.LibraryCall(
              comm,
              spec.collective(),
              x.on(rank),
              y.on(rank),
              spec.root(),
              spec.needs().hostWaits()));
      if (spec.needs().meetsAfter()) {
        peers.forEach(peer -> program.signal(comm, Step.NO_CHUNK, landed, rank, peer));
        awaitAll(landed);
      }
    }

    private void keepOwn(Region from, Region to) {
      if (!from.equals(to)) {
        program.copy(adder, Step.NO_CHUNK, from, to);
      }
    }

    private void begin() {
      peers.forEach(peer -> program.signal(comm, Step.NO_CHUNK, begun, rank, peer));
    }

    private void awaitAll(Flag flag) {
      peers.forEach(peer -> program.await(comm, Step.NO_CHUNK, flag, peer, peer));
    }

    private void finish() {
      peers.forEach(peer -> program.signal(comm, Step.NO_CHUNK, read, rank, peer));
      awaitAll(read);
    }
  }
}
