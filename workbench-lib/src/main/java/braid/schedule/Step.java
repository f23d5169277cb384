package braid.schedule;

import java.util.ArrayList;
import java.util.List;

/// Something that one rank does on one of its lanes in every iteration. A step names regions, lanes
/// and words, and nothing of a backend. `chunk` is [#NO_CHUNK] for steps of no chunk.
public sealed interface Step {
  int NO_CHUNK = -1;

  Lane lane();

  int chunk();

  /// Regions that it reads and writes.
  ///
  /// @param rank that does it
  List<Access> accesses(int rank);

  /// A few words for messages and spans, such as `wait for begun from rank 1`.
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
      case Gemm gemm -> "gemm to " + gemm.tiles().getFirst().output();
      case Reduce reduce -> "sum to " + reduce.output();
      case Zero zero -> "clearing " + zero.target();
      case Prepare prepare -> "preparing " + prepare.weight();
      case LibraryCall call -> call.collective() + " by a library";
      case Signal signal -> "signal %s to rank %d".formatted(signal.word(), signal.to());
      case Wait wait -> "wait for %s from rank %d".formatted(wait.word(), wait.from());
      case Mark mark -> "mark " + mark.number();
      case After after -> "wait for mark " + after.mark();
    };
  }

  /// A step's use of a region.
  record Access(Region region, Use use) {
    public enum Use {
      READ,
      WRITE,
      /// Reads and writes with one atomic operation, whose order does not matter: an amax.
      RAISE;

      public boolean conflicts(Use other) {
        return this != other || this == WRITE;
      }
    }

    static Access read(Region region) {
      return new Access(region, Use.READ);
    }

    static Access write(Region region) {
      return new Access(region, Use.WRITE);
    }
  }

  /// Copies regions to others of the same size. The moves do not need each other and may be on
  /// their way at once.
  record Copy(Lane lane, int chunk, List<Move> moves) implements Step {
    public Copy {
      moves = List.copyOf(moves);
    }

    @Override
    public List<Access> accesses(int rank) {
      return moves.stream()
          .flatMap(
              move -> java.util.stream.Stream.of(Access.read(move.from()), Access.write(move.to())))
          .toList();
    }
  }

  /// One region's way to another.
  record Move(Region from, Region to) {
    /// Whether no link has to do with it.
    public boolean isLocal() {
      return from.rank() == to.rank();
    }
  }

  /// Multiplies rows of the input by the weight, into rows of the output. Several tiles are one
  /// multiplication each, or one of them together.
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

  /// Rows of a multiplication.
  record Tile(Region input, Region output) {}

  /// Adds up regions of one size, in their order and in fp32. What finishes the sum gets it rounded
  /// to the first part's type, as a collective would return it.
  record Reduce(Lane lane, int chunk, List<Region> parts, Region output, Finish finish)
      implements Step {
    public Reduce {
      parts = List.copyOf(parts);
    }

    @Override
    public List<Access> accesses(int rank) {
      var accesses = new ArrayList<Access>();
      parts.forEach(part -> accesses.add(Access.read(part)));
      finished(finish, output, accesses);
      return accesses;
    }
  }

  /// Sets a region to zero.
  record Zero(Lane lane, int chunk, Region target) implements Step {
    @Override
    public List<Access> accesses(int rank) {
      return List.of(Access.write(target));
    }
  }

  /// Makes a weight ready for multiplications after it has changed. A backend may keep another form
  /// of it: the host widens narrow types once an iteration instead of once a chunk.
  record Prepare(Lane lane, Region weight) implements Step {
    private static final String OPERAND = " (prepared)";

    /// The prepared form of a weight, which multiplications read.
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

  /// A collective that a library makes, with this rank's parts of `x` and `y`. All ranks make their
  /// library calls in the same order.
  ///
  /// @param root of a broadcast; 0 for others
  /// @param hostWaits whether the host waits for the lane before it makes the call
  record LibraryCall(
      Lane lane, Collective collective, Region x, Region y, int root, boolean hostWaits)
      implements Step {
    @Override
    public int chunk() {
      return NO_CHUNK;
    }

    @Override
    public List<Access> accesses(int rank) {
      return List.of(Access.read(x), Access.write(y));
    }
  }

  /// Raises a word of another rank, behind all earlier steps of the lane.
  record Signal(Lane lane, int chunk, Flag flag, int index, int to) implements Step {
    /// Such as `landed[3]`.
    String word() {
      return "%s[%d]".formatted(flag, index);
    }

    @Override
    public List<Access> accesses(int rank) {
      return List.of();
    }
  }

  /// Holds the lane until this rank's word was raised in this iteration, by rank `from`.
  record Wait(Lane lane, int chunk, Flag flag, int index, int from) implements Step {
    /// Such as `landed[3]`; the raiser's rank is left out where it is the index.
    public String word() {
      return index == from ? flag.name() : "%s[%d]".formatted(flag, index);
    }

    @Override
    public List<Access> accesses(int rank) {
      return List.of();
    }
  }

  /// The point at which all earlier steps of the lane are done.
  ///
  /// @param number of the mark, of this rank's own; marks are numbered in their order
  record Mark(Lane lane, int chunk, int number) implements Step {
    @Override
    public List<Access> accesses(int rank) {
      return List.of();
    }
  }

  /// Holds the lane until another lane of the rank has come to a mark.
  record After(Lane lane, int chunk, int mark) implements Step {
    @Override
    public List<Access> accesses(int rank) {
      return List.of();
    }
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
