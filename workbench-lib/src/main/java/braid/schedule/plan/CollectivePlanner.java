package braid.schedule.plan;

import braid.model.CollectiveWay;
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
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Plans a standalone collective. Every rank fetches elements from its peers' tensors and writes
/// only its own; or it pushes into its peers' tensors; or a library runs it.
///
/// All collectives declare the same flags, so those of a group share their words: a word is always
/// raised by the same rank.
public final class CollectivePlanner {

  private final CollectiveSpec spec;
  private final int ranks;
  private final Schedule.Builder builder;
  private final List<Flag> flags;
  private final Lane comm;
  private final Lane adder;
  private final Buffer x;
  private final Buffer y;
  private final Buffer inbox;

  private CollectivePlanner(CollectiveSpec spec, int ranks) {
    this.spec = spec;
    this.ranks = ranks;
    this.builder = Schedule.on(new Goal.Collected(spec.collective(), spec.root()), ranks);
    this.flags =
        Ordering.FLAGS.stream()
            .map(name -> builder.flag(name, CollectiveSpec.words(name) * ranks))
            .toList();
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
    return planner.builder.ordered(program -> planner.new OfRank(program).write());
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
        case BARRIER -> meet(flags.getFirst());
        default -> {
          switch (spec.way()) {
            case COPY_ENGINE, WORKERS, ONE_KERNEL -> fetch();
            case PUSHING -> push();
            case NCCL_KERNELS, NCCL_COPY_ENGINE, NCCL_SYMMETRIC, NVSHMEM_PUTS -> call();
          }
        }
      }
    }

    /// Waits until all ranks are here: for a library, which needs it, and for a barrier.
    private void meet(Flag flag) {
      peers.forEach(peer -> program.signal(comm, flag, peer));
      peers.forEach(peer -> program.await(comm, flag, peer));
    }

    private void fetch() {
      switch (spec.collective()) {
        case ALL_GATHER -> copyAll(peer -> new Move(x.on(peer), y.on(rank, slot(peer))));
        case ALL_TO_ALL -> {
          var mine = part(x, rank);
          copyAll(peer -> new Move(x.on(peer, mine), y.on(rank, part(y, peer))));
        }
        case REDUCE_SCATTER -> reduce(part(x, rank), new Slice(0, y.rows(rank)));
        case ALL_REDUCE -> {
          switch (spec.algorithm()) {
            case ONE_SHOT -> oneShot();
            case TWO_SHOT -> twoShot();
          }
        }
        case BROADCAST -> {
          int root = spec.root();
          if (rank != root) {
            program.copy(comm, Step.NO_CHUNK, x.on(root), x.on(rank));
          }
        }
        case SEND, RECEIVE, BARRIER ->
            throw new IllegalStateException("nothing is fetched in " + spec.collective());
      }
    }

    /// Copies the part of each peer, and this rank's own: in one step if one kernel makes it.
    private void copyAll(IntFunction<Move> move) {
      boolean joined = inOneKernel();
      var own = move.apply(rank);
      var moves = peers.stream().map(move::apply);
      program.copy(
          comm, Step.NO_CHUNK, (joined ? Stream.concat(moves, Stream.of(own)) : moves).toList());
      if (!joined) {
        keepOwn(own.from(), own.to());
      }
    }

    private boolean inOneKernel() {
      return spec.way() == CollectiveWay.ONE_KERNEL;
    }

    /// Each rank sums one part, and the others fetch it from there; in one kernel it passes the sum
    /// on. If `x` is `y`, a part is overwritten only after its sum is ready, hence after its owner
    /// has read it on all ranks.
    private void twoShot() {
      var mine = part(x, rank);
      reduce(mine, mine);
      program.round(1);
      if (inOneKernel()) {
        var sum = y.on(rank, mine);
        program.copy(
            comm,
            Step.NO_CHUNK,
            peers.stream().map(peer -> new Move(sum, y.on(peer, mine))).toList());
      } else {
        peers.forEach(this::fetchSum);
      }
    }

    private void fetchSum(int peer) {
      var slice = part(y, peer);
      program.copy(comm, Step.NO_CHUNK, y.on(peer, slice), y.on(rank, slice));
    }

    /// Each rank sums everything. If `x` is `y`, it is overwritten only after every rank has
    /// fetched all of it.
    private void oneShot() {
      var all = new Slice(0, spec.elements());
      if (!spec.inPlace() || ranks == 1) {
        reduce(all, all);
        return;
      }
      var pieces = pieces(all);
      if (pieces.size() > CollectiveSpec.ROOMS) {
        throw new IllegalStateException("no room for all of " + spec);
      }
      for (int chunk = 0; chunk < pieces.size(); chunk++) {
        fetchParts(chunk, pieces.get(chunk));
      }
      program.round(1);
      for (int chunk = 0; chunk < pieces.size(); chunk++) {
        add(chunk, pieces.get(chunk), y.on(rank, pieces.get(chunk)));
      }
    }

    /// Sums the elements `some` of all ranks' `x`, in the order of the ranks, in fp32, and rounds
    /// once.
    private void reduce(Slice some, Slice target) {
      if (ranks == 1) {
        keepOwn(x.on(rank, some), y.on(rank, target));
        return;
      }
      if (inOneKernel()) {
        sumInPlace(some, y.on(rank, target));
        return;
      }
      var pieces = pieces(some);
      for (int chunk = 0; chunk < pieces.size(); chunk++) {
        var piece = pieces.get(chunk);
        fetchParts(chunk, piece);
        long skipped = piece.start() - some.start();
        add(chunk, piece, y.on(rank, new Slice(target.start() + skipped, piece.length())));
      }
    }

    /// Sums elements where they are, on all ranks.
    private void sumInPlace(Slice some, Region sum) {
      program.reduce(
          comm,
          Step.NO_CHUNK,
          IntStream.range(0, ranks).mapToObj(source -> x.on(source, some)).toList(),
          sum,
          Finish.NONE);
    }

    /// Returns the chunks of some elements, in order.
    private List<Slice> pieces(Slice some) {
      var pieces = new ArrayList<Slice>();
      for (long skipped = 0; skipped < some.length(); skipped += chunk()) {
        pieces.add(new Slice(some.start() + skipped, Math.min(chunk(), some.length() - skipped)));
      }
      return pieces;
    }

    /// Fetches the peers' parts; one kernel copies this rank's own part too.
    private void fetchParts(int chunk, Slice piece) {
      var sources = inOneKernel() ? IntStream.range(0, ranks).boxed().toList() : peers;
      program.copy(
          comm,
          chunk,
          sources.stream()
              .map(source -> new Move(x.on(source, piece), inbox(chunk, source, piece.length())))
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
      if (moved && !inOneKernel()) {
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

    private void push() {
      switch (spec.collective()) {
        case ALL_GATHER -> {
          peers.forEach(peer -> push(x.on(rank), y.on(peer, slot(rank))));
          keepOwn(x.on(rank), y.on(rank, slot(rank)));
        }
        case ALL_TO_ALL -> {
          var mine = part(y, rank);
          peers.forEach(peer -> push(x.on(rank, part(x, peer)), y.on(peer, mine)));
          keepOwn(x.on(rank, mine), y.on(rank, mine));
        }
        case BROADCAST -> {
          if (rank == spec.root()) {
            peers.forEach(peer -> push(x.on(rank), x.on(peer)));
          }
        }
        case REDUCE_SCATTER, ALL_REDUCE, SEND, RECEIVE, BARRIER ->
            throw new IllegalStateException("nothing is pushed in " + spec.collective());
      }
    }

    private void push(Region from, Region to) {
      program.copy(comm, Step.NO_CHUNK, from, to);
    }

    private void call() {
      if (spec.needs().meetsBefore()) {
        meet(flags.getFirst());
      }
      program.call(
          new Step.LibraryCall(
              comm,
              Step.NO_CHUNK,
              spec.collective(),
              x.on(rank),
              y.on(rank),
              spec.root(),
              spec.needs().hostWaits()));
      if (spec.needs().meetsAfter()) {
        meet(flags.getLast());
      }
    }

    private void keepOwn(Region from, Region to) {
      if (!from.equals(to)) {
        program.copy(adder, Step.NO_CHUNK, from, to);
      }
    }
  }
}
