package braid.schedule;

import braid.model.Tokens;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import braid.schedule.Step.Recode;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Tile;
import braid.schedule.Step.Zero;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;

/// A mistake planted into a schedule.
///
/// @param of the affected step
record Mutation(Kind kind, Step of, String text, Schedule schedule) {
  enum Kind {
    REMOVED,
    NEIGHBORS_SWAPPED,
    SWAPPED,
    WRONG_RANK,
    WRONG_INDEX,
    SHIFTED;

    boolean swaps() {
      return this == NEIGHBORS_SWAPPED || this == SWAPPED;
    }
  }

  /// Returns a mutation of a kind at a random place; empty if the place allows none.
  static Optional<Mutation> of(Schedule schedule, Kind kind, Random random) {
    int rank = random.nextInt(schedule.ranks());
    var steps = new ArrayList<>(schedule.steps(rank));
    int at = random.nextInt(steps.size());
    var step = steps.get(at);
    var text = "%s on lane %s of rank %d, step %d".formatted(step.text(), step.lane(), rank, at);
    switch (kind) {
      case REMOVED -> steps.remove(at);
      case NEIGHBORS_SWAPPED, SWAPPED -> {
        var others =
            IntStream.range(at + 1, steps.size())
                .filter(other -> steps.get(other).lane().equals(step.lane()))
                // Such as sums of two messages in one slot.
                .filter(other -> !steps.get(other).text().equals(step.text()))
                .limit(kind == Kind.SWAPPED ? steps.size() : 1)
                .toArray();
        if (others.length == 0) {
          return Optional.empty();
        }
        int other = others[random.nextInt(others.length)];
        text += " with %s, step %d".formatted(steps.get(other).text(), other);
        steps.set(at, steps.get(other));
        steps.set(other, step);
      }
      case WRONG_RANK -> {
        if (!(step instanceof Signal signal) || schedule.ranks() == 1) {
          return Optional.empty();
        }
        // May be the rank itself.
        int to = (signal.to() + 1 + random.nextInt(schedule.ranks() - 1)) % schedule.ranks();
        steps.set(at, new Signal(signal.lane(), signal.chunk(), signal.flag(), signal.index(), to));
      }
      case WRONG_INDEX -> {
        if (!(step instanceof Signal signal)) {
          return Optional.empty();
        }
        // May be beyond the last word.
        int index =
            (signal.index() + 1 + random.nextInt(signal.flag().words()))
                % (signal.flag().words() + 1);
        steps.set(at, new Signal(signal.lane(), signal.chunk(), signal.flag(), index, signal.to()));
      }
      case SHIFTED -> {
        var shifted = shifted(step, random);
        if (shifted.isEmpty()) {
          return Optional.empty();
        }
        text += " to " + shifted.get();
        steps.set(at, shifted.get());
      }
    }
    return Optional.of(new Mutation(kind, step, text, schedule.with(rank, List.copyOf(steps))));
  }

  private static Optional<Step> shifted(Step step, Random random) {
    long by = random.nextBoolean() ? 1 : -1;
    return switch (step) {
      case Copy copy -> {
        var moves = new ArrayList<>(copy.moves());
        int at = random.nextInt(moves.size());
        var move = moves.get(at);
        boolean columns = random.nextBoolean();
        var other =
            random.nextBoolean()
                ? shifted(move.from(), by, columns).map(from -> new Move(from, move.to()))
                : shifted(move.to(), by, columns).map(to -> new Move(move.from(), to));
        yield other.map(
            changed -> {
              moves.set(at, changed);
              return new Copy(copy.lane(), copy.chunk(), moves);
            });
      }
      case Recode recode -> {
        var moves = new ArrayList<>(recode.moves());
        int at = random.nextInt(moves.size());
        var move = moves.get(at);
        var other =
            random.nextBoolean()
                ? shifted(move.from(), by).map(from -> new Move(from, move.to()))
                : shifted(move.to(), by).map(to -> new Move(move.from(), to));
        yield other.map(
            changed -> {
              moves.set(at, changed);
              return new Recode(recode.lane(), recode.chunk(), moves, recode.headSize());
            });
      }
      case Gemm gemm -> {
        var tiles = new ArrayList<>(gemm.tiles());
        int at = random.nextInt(tiles.size());
        var tile = tiles.get(at);
        var other =
            random.nextBoolean()
                ? shifted(tile.input(), by).map(input -> new Tile(input, tile.output()))
                : shifted(tile.output(), by).map(output -> new Tile(tile.input(), output));
        yield other.map(
            changed -> {
              tiles.set(at, changed);
              return new Gemm(gemm.lane(), gemm.chunk(), tiles, gemm.weight(), gemm.finish());
            });
      }
      case Reduce reduce -> {
        var parts = new ArrayList<>(reduce.parts());
        int at = random.nextInt(parts.size() + 1);
        yield shifted(at == parts.size() ? reduce.output() : parts.get(at), by)
            .map(
                changed -> {
                  if (at < parts.size()) {
                    parts.set(at, changed);
                  }
                  return new Reduce(
                      reduce.lane(),
                      reduce.chunk(),
                      parts,
                      at < parts.size() ? reduce.output() : changed,
                      reduce.finish());
                });
      }
      case Attend attend ->
          switch (random.nextInt(5)) {
            case 0 ->
                shifted(attend.query(), by)
                    .map(query -> attend(attend, query, attend.key(), attend.value(), 0));
            case 1 ->
                shifted(attend.key(), by)
                    .map(key -> attend(attend, attend.query(), key, attend.value(), 0));
            case 2 ->
                shifted(attend.value(), by)
                    .map(value -> attend(attend, attend.query(), attend.key(), value, 0));
            case 3 -> Optional.of(attend(attend, attend.query(), attend.key(), attend.value(), by));
            default ->
                shifted(attend.result(), by)
                    .map(
                        result ->
                            new Attend(
                                attend.lane(),
                                attend.chunk(),
                                attend.spec(),
                                attend.query(),
                                attend.queries(),
                                attend.key(),
                                attend.value(),
                                attend.keys(),
                                result,
                                attend.continued()));
          };
      case AttendGradient gradient ->
          switch (random.nextInt(3)) {
            case 0 ->
                shifted(gradient.block(), random)
                    .map(
                        block ->
                            gradient(
                                gradient,
                                (Attend) block,
                                gradient.outputGradient(),
                                gradient.result()));
            case 1 ->
                shifted(gradient.outputGradient(), by)
                    .map(
                        changed ->
                            gradient(gradient, gradient.block(), changed, gradient.result()));
            default ->
                shifted(gradient.result(), random.nextInt(3), by)
                    .map(
                        changed ->
                            gradient(
                                gradient, gradient.block(), gradient.outputGradient(), changed));
          };
      case Merge merge -> {
        var parts = new ArrayList<>(merge.parts());
        int at = random.nextInt(parts.size() + 1);
        yield shifted(at == parts.size() ? merge.result() : parts.get(at), by)
            .map(
                changed -> {
                  if (at < parts.size()) {
                    parts.set(at, changed);
                  }
                  return new Merge(
                      merge.lane(),
                      merge.chunk(),
                      parts,
                      at < parts.size() ? merge.result() : changed);
                });
      }
      case Zero zero ->
          shifted(zero.target(), by).map(changed -> new Zero(zero.lane(), zero.chunk(), changed));
      default -> Optional.empty();
    };
  }

  private static Attend attend(Attend of, Region query, Region key, Region value, long further) {
    return new Attend(
        of.lane(),
        of.chunk(),
        of.spec(),
        query,
        moved(of.queries(), further),
        key,
        value,
        of.keys(),
        of.result(),
        of.continued());
  }

  private static Tokens moved(Tokens tokens, long positions) {
    return new Tokens(
        tokens.runs().stream()
            .map(run -> new Tokens.Run(run.row(), run.first() + positions, run.length()))
            .toList());
  }

  private static AttendGradient gradient(
      AttendGradient of, Attend block, Region outputGradient, Gradients result) {
    return new AttendGradient(
        block, outputGradient, result, of.continuesQuery(), of.continuesKeys());
  }

  /// Shifts one of the three gradients.
  private static Optional<Gradients> shifted(Gradients of, int which, long by) {
    return switch (which) {
      case 0 -> shifted(of.query(), by).map(query -> new Gradients(query, of.key(), of.value()));
      case 1 -> shifted(of.key(), by).map(key -> new Gradients(of.query(), key, of.value()));
      default -> shifted(of.value(), by).map(value -> new Gradients(of.query(), of.key(), value));
    };
  }

  /// Shifts one of the two regions of a partial result.
  private static Optional<Partial> shifted(Partial partial, long by) {
    return by > 0
        ? shifted(partial.output(), by).map(output -> new Partial(output, partial.lse()))
        : shifted(partial.lse(), by).map(lse -> new Partial(partial.output(), lse));
  }

  private static Optional<Region> shifted(Region region, long by) {
    return region.row() + by < 0
            || region.row() + by + region.rows() > region.buffer().rows(region.rank())
        ? Optional.empty()
        : Optional.of(region.rows(region.slice().shifted(by)));
  }

  /// Shifts the columns of a region that has some of them, by one or by all of its own.
  private static Optional<Region> shifted(Region region, long by, boolean columns) {
    if (!columns || region.hasAllColumns()) {
      return shifted(region, by);
    }
    var other = region.columnSlice().shifted(by * (region.row() % 2 == 0 ? region.columns() : 1));
    return other.start() < 0 || other.end() > region.buffer().columns(region.rank())
        ? Optional.empty()
        : Optional.of(region.columns(other));
  }

  /// Returns whether all steps that use rows are unchanged.
  boolean keepsData() {
    return kind != Kind.SHIFTED && (kind != Kind.REMOVED || of.accesses(0).isEmpty());
  }

  @Override
  public String toString() {
    return "%s: %s".formatted(kind, text);
  }
}
