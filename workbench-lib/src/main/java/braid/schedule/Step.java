package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.Stage;
import braid.model.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/// A step of one rank on one of its lanes, in every iteration. It refers to regions, lanes and
/// words, independent of the backend. `chunk` is [#NO_CHUNK] for steps without a chunk.
public sealed interface Step {
  int NO_CHUNK = -1;

  Lane lane();

  int chunk();

  /// Returns the regions that it reads and writes.
  ///
  /// @param rank the rank that executes it
  default List<Access> accesses(int rank) {
    return List.of();
  }

  /// Describes it for messages and spans, such as `wait for begun[1] from rank 1`.
  default String text() {
    return switch (this) {
      case Copy copy ->
          "copy of %s to %s%s"
              .formatted(
                  copy.moves().getFirst().from(),
                  copy.moves().getFirst().to(),
                  copy.moves().size() == 1
                      ? ""
                      : " and %d more".formatted(copy.moves().size() - 1));
      case Recode recode ->
          "%s of %s to %s"
              .formatted(
                  recode.rounds() ? "rounding" : "restoring",
                  recode.moves().getFirst().from(),
                  recode.moves().getFirst().to());
      case Gemm gemm -> "gemm to " + gemm.tiles().getFirst().output();
      case Reduce reduce -> "sum to " + reduce.output();
      case Attend attend -> "attention of %s to %s".formatted(attend.query(), attend.key());
      case AttendGradient gradient ->
          "backward of %s to %s".formatted(gradient.block().query(), gradient.block().key());
      case Merge merge -> "merge to " + merge.result().output();
      case Zero zero -> "clearing " + zero.target();
      case Prepare prepare -> "preparing " + prepare.weight();
      case LibraryCall call -> "%s by %s".formatted(call.collective(), call.lane().transport());
      case Signal signal -> "signal %s to rank %d".formatted(signal.word(), signal.to());
      case Wait wait -> "wait for %s from rank %d".formatted(wait.word(), wait.from());
      case Mark mark -> "mark " + mark.number();
      case After after -> "wait for mark " + after.mark();
    };
  }

  /// Names it among all steps, such as `rank 1, lane comm, step 7 (mark 2)`.
  ///
  /// @param number number of the step among those of the rank, from 0 on
  default String name(int rank, int number) {
    return "rank %d, lane %s, step %d (%s)".formatted(rank, lane(), number, text());
  }

  /// Returns the kind of its work, which timelines show; empty for steps that only order others.
  default Optional<Stage> stage() {
    return switch (this) {
      case Copy copy -> Optional.of(copy.isLocal() ? Stage.LOCAL : Stage.COPY);
      case LibraryCall _ -> Optional.of(Stage.COPY);
      case Gemm _ -> Optional.of(Stage.GEMM);
      case Reduce _ -> Optional.of(Stage.REDUCE);
      case Attend _, AttendGradient _, Merge _ -> Optional.of(Stage.ATTENTION);
      case Recode _, Zero _, Prepare _ -> Optional.of(Stage.LOCAL);
      case Signal _, Wait _, Mark _, After _ -> Optional.empty();
    };
  }

  /// Returns whether it takes a unit of time in timelines. Clearing and preparing take too little.
  default boolean takesTime() {
    return stage().isPresent() && !(this instanceof Zero || this instanceof Prepare);
  }

  /// Returns whether it may write a region that it reads, row by row.
  default boolean worksInPlace() {
    return switch (this) {
      case Reduce _, Merge _ -> true;
      case Gemm gemm -> gemm.finish().accumulate();
      case Attend attend -> attend.continued();
      case AttendGradient gradient -> gradient.continuesQuery() || gradient.continuesKeys();
      case Copy _, Recode _, LibraryCall _, Zero _, Prepare _, Signal _, Wait _, Mark _, After _ ->
          false;
    };
  }

  /// A step's use of a region.
  record Access(Region region, Use use) {
    public enum Use {
      READ,
      WRITE,
      /// Reads and writes with one atomic operation in any order: an amax.
      RAISE;

      public boolean conflicts(Use other) {
        return this != other || this == WRITE;
      }
    }

    public static Access read(Region region) {
      return new Access(region, Use.READ);
    }

    public static Access write(Region region) {
      return new Access(region, Use.WRITE);
    }
  }

  /// Copies regions to others of the same size. The moves are independent and may run concurrently.
  record Copy(Lane lane, int chunk, List<Move> moves) implements Step {
    public Copy {
      moves = List.copyOf(moves);
    }

    /// Returns whether all moves are within one rank.
    public boolean isLocal() {
      return moves.stream().allMatch(Move::isLocal);
    }

    @Override
    public List<Access> accesses(int rank) {
      return moved(moves);
    }
  }

  /// A copy of one region to another.
  record Move(Region from, Region to) {
    /// Returns whether it is within one rank, without a link.
    public boolean isLocal() {
      return from.rank() == to.rank();
    }
  }

  /// Rounds heads to e4m3, each row of a head with a scale of its own, or restores what was
  /// rounded: see [AttentionSpec#exchanged]. A rounded head has its numbers, a byte each, and then
  /// its scale in fp32. All moves are within the rank.
  record Recode(Lane lane, int chunk, List<Move> moves, int headSize) implements Step {
    private static final int SCALE_BYTES = Float.BYTES;

    public Recode {
      moves = List.copyOf(moves);
    }

    /// Returns the columns of rounded heads, which have so many columns unrounded.
    public static long rounded(long columns, int headSize) {
      return columns / headSize * (headSize + SCALE_BYTES);
    }

    /// Returns whether it rounds; it restores otherwise.
    public boolean rounds() {
      return moves.getFirst().to().buffer().dtype() == DType.FP8_E4M3;
    }

    public long bytes() {
      return moves.stream().mapToLong(move -> move.from().bytes() + move.to().bytes()).sum();
    }

    @Override
    public List<Access> accesses(int rank) {
      return moved(moves);
    }
  }

  /// Multiplies rows of the input by the weight, into rows of the output. Several tiles run as one
  /// multiplication each, or batched as one.
  record Gemm(Lane lane, int chunk, List<Tile> tiles, Region weight, Finish finish)
      implements Step {
    public Gemm {
      tiles = List.copyOf(tiles);
    }

    @Override
    public List<Access> accesses(int rank) {
      var accesses = new ArrayList<Access>();
      accesses.add(Access.read(weight));
      accesses.add(Access.read(Prepare.operand(weight)));
      for (var tile : tiles) {
        accesses.add(Access.read(tile.input()));
        finished(finish, tile.output(), accesses);
      }
      return accesses;
    }
  }

  /// Input and output rows of a multiplication.
  record Tile(Region input, Region output) {}

  /// Sums regions of one size, in order and in fp32. The finish applies to the sum rounded to the
  /// first part's type, as a collective would return it. Parts may be in the symmetric memory of
  /// other ranks, which the sum then reads over the link.
  record Reduce(Lane lane, int chunk, List<Region> parts, Region output, Finish finish)
      implements Step {
    public Reduce {
      parts = List.copyOf(parts);
    }

    /// Returns the number of bytes of its parts in the memory of other ranks than that one.
    public long linkBytes(int rank) {
      return parts.stream().filter(part -> part.rank() != rank).mapToLong(Region::bytes).sum();
    }

    @Override
    public List<Access> accesses(int rank) {
      var accesses = new ArrayList<Access>();
      parts.forEach(part -> accesses.add(Access.read(part)));
      finished(finish, output, accesses);
      return accesses;
    }
  }

  /// Attention of query rows to some keys: a block of a larger attention, with its statistics. It
  /// masks by positions.
  ///
  /// @param queries positions of the query's rows; rows without one are left as they are
  /// @param keys positions of all rows of key and value
  /// @param continued true to add the keys to those that the result already includes; false to
  ///   begin a result
  /// @param finished place of the output of all rows if this is the last block, which writes it
  ///   there in its type, and not to the result
  record Attend(
      Lane lane,
      int chunk,
      AttentionSpec spec,
      Region query,
      Tokens queries,
      Region key,
      Region value,
      Tokens keys,
      Partial result,
      boolean continued,
      Optional<Region> finished)
      implements Step {
    /// A block whose result others continue, or that is the result.
    public Attend(
        Lane lane,
        int chunk,
        AttentionSpec spec,
        Region query,
        Tokens queries,
        Region key,
        Region value,
        Tokens keys,
        Partial result,
        boolean continued) {
      this(
          lane, chunk, spec, query, queries, key, value, keys, result, continued, Optional.empty());
    }

    /// Returns the last block of an attention, which writes the output.
    public Attend finishing(Region output) {
      return new Attend(
          lane,
          chunk,
          spec,
          query,
          queries,
          key,
          value,
          keys,
          result,
          continued,
          Optional.of(output));
    }

    /// Returns the same block with its output in the result.
    Attend unfinished() {
      return new Attend(lane, chunk, spec, query, queries, key, value, keys, result, continued);
    }

    /// Returns the output that it writes, with the result's LSE.
    public Partial written() {
      return new Partial(finished.orElse(result.output()), result.lse());
    }

    /// Returns the number of pairs of a query and a key that it sees.
    public double pairs() {
      return Tokens.count(spec, queries, keys);
    }

    @Override
    public List<Access> accesses(int rank) {
      var accesses = new ArrayList<Access>();
      accesses.add(Access.read(query));
      accesses.add(Access.read(key));
      accesses.add(Access.read(value));
      if (continued) {
        result.accesses(Access.Use.READ, accesses);
      }
      written().accesses(Access.Use.WRITE, accesses);
      return accesses;
    }
  }

  /// The attention of some rows to some keys: the output, and the log-sum-exp (LSE) of the scores,
  /// by which it is merged with the attention to other keys.
  record Partial(Region output, Region lse) {
    private void accesses(Access.Use use, List<Access> into) {
      into.add(new Access(output, use));
      into.add(new Access(lse, use));
    }
  }

  /// Merges the attention of the same rows to different keys, in fp32 and in order. The result may
  /// be one of the parts.
  record Merge(Lane lane, int chunk, List<Partial> parts, Partial result) implements Step {
    public Merge {
      parts = List.copyOf(parts);
    }

    @Override
    public List<Access> accesses(int rank) {
      var accesses = new ArrayList<Access>();
      parts.forEach(part -> part.accesses(Access.Use.READ, accesses));
      result.accesses(Access.Use.WRITE, accesses);
      return accesses;
    }
  }

  /// Gradients of a block of an attention. The gradient of the query is that by the keys of the
  /// block; those of key and value are by its queries.
  ///
  /// @param block the block; its result is the finished attention of the query, which the step
  ///   reads
  /// @param outputGradient gradient of the result's output
  /// @param continuesQuery true to add to the gradient of the query; false to begin it
  /// @param continuesKeys true to add to the gradients of key and value; false to begin them
  record AttendGradient(
      Attend block,
      Region outputGradient,
      Gradients result,
      boolean continuesQuery,
      boolean continuesKeys)
      implements Step {
    @Override
    public Lane lane() {
      return block.lane();
    }

    @Override
    public int chunk() {
      return block.chunk();
    }

    @Override
    public List<Access> accesses(int rank) {
      var accesses = new ArrayList<Access>();
      accesses.add(Access.read(block.query()));
      accesses.add(Access.read(block.key()));
      accesses.add(Access.read(block.value()));
      block.result().accesses(Access.Use.READ, accesses);
      accesses.add(Access.read(outputGradient));
      result.accesses(continuesQuery, continuesKeys, accesses);
      return accesses;
    }
  }

  /// Gradients of query, key and value by some of the pairs of queries and keys: in fp32, or in the
  /// type of the attention if nothing is added to them.
  record Gradients(Region query, Region key, Region value) {
    private void accesses(boolean continuesQuery, boolean continuesKeys, List<Access> into) {
      if (continuesQuery) {
        into.add(Access.read(query));
      }
      if (continuesKeys) {
        into.add(Access.read(key));
        into.add(Access.read(value));
      }
      into.add(Access.write(query));
      into.add(Access.write(key));
      into.add(Access.write(value));
    }
  }

  /// Sets a region to zero.
  record Zero(Lane lane, int chunk, Region target) implements Step {
    @Override
    public List<Access> accesses(int rank) {
      return List.of(Access.write(target));
    }
  }

  /// Prepares a weight for multiplications after it has changed. A backend may convert it: the host
  /// widens narrow types once per iteration instead of once per chunk.
  record Prepare(Lane lane, Region weight) implements Step {
    private static final String OPERAND = " (prepared)";

    /// Returns the prepared form of a weight, which multiplications read.
    public static Region operand(Region weight) {
      var of = weight.buffer();
      return new Region(
          new Buffer(of.name() + OPERAND, of.dtype(), of.shapes(), false, of.transposed()),
          weight.rank(),
          weight.row(),
          weight.rows());
    }

    @Override
    public int chunk() {
      return NO_CHUNK;
    }

    @Override
    public List<Access> accesses(int rank) {
      return List.of(Access.read(weight), Access.write(operand(weight)));
    }
  }

  /// A collective by the library of the lane's transport, with this rank's parts of `x` and `y`.
  /// All ranks make their library calls in the same order.
  ///
  /// @param root rank of a broadcast; 0 for other collectives
  /// @param hostWaits true if the host waits for the lane before the call
  record LibraryCall(
      Lane lane, int chunk, Collective collective, Region x, Region y, int root, boolean hostWaits)
      implements Step {
    /// @throws BraidException for a message, which no library sends, and on a lane without a
    ///   library
    public LibraryCall {
      if (!lane.transport().isLibrary()) {
        throw new BraidException(
            "a library call must be on a lane over a library but lane `%s` is over %s; add a lane over nccl_kernels"
                .formatted(lane, lane.transport()));
      }
      if (collective.isMessage()) {
        throw new BraidException(
            "a library call must be a collective of all ranks but was %s; copy instead"
                .formatted(collective));
      }
    }

    @Override
    public List<Access> accesses(int rank) {
      return List.of(Access.read(x), Access.write(y));
    }
  }

  /// Raises a word of another rank, after all earlier steps of the lane.
  record Signal(Lane lane, int chunk, Flag flag, int index, int to) implements Step {
    /// Returns the word, such as `landed[3]`.
    String word() {
      return "%s[%d]".formatted(flag, index);
    }
  }

  /// Blocks the lane until rank `from` has raised this rank's word in this iteration.
  record Wait(Lane lane, int chunk, Flag flag, int index, int from) implements Step {
    /// Returns the word, such as `landed[3]`.
    public String word() {
      return "%s[%d]".formatted(flag, index);
    }
  }

  /// Marks the point at which all earlier steps of the lane are done.
  ///
  /// @param number number of the mark among those of this rank, in order
  record Mark(Lane lane, int chunk, int number) implements Step {}

  /// Blocks the lane until another lane of the rank has reached a mark.
  record After(Lane lane, int chunk, int mark) implements Step {}

  private static List<Access> moved(List<Move> moves) {
    return moves.stream()
        .flatMap(move -> Stream.of(Access.read(move.from()), Access.write(move.to())))
        .toList();
  }

  private static void finished(Finish finish, Region output, List<Access> into) {
    if (finish.accumulate()) {
      into.add(Access.read(output));
    }
    into.add(Access.write(output));
    finish.bias().ifPresent(bias -> into.add(Access.read(bias.on(output.rank()))));
    finish
        .preActivation()
        .ifPresent(kept -> into.add(Access.write(kept.on(output.rank(), output.slice()))));
    finish.amax().ifPresent(amax -> into.add(new Access(amax.on(output.rank()), Access.Use.RAISE)));
  }
}
