package braid.schedule;

import braid.model.AttentionSpec;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Tile;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/// Collects the steps of one rank, in the order in which the rank enqueues them on its lanes. Omits
/// steps without rows, and marks and waits without effect.
public final class Program {
  private final int rank;
  private final int ranks;
  private final List<Step> steps = new ArrayList<>();

  /// By step, its round.
  private final List<Integer> rounds = new ArrayList<>();

  private int round;
  private final Set<Passed> passed = new HashSet<>();

  /// Lanes with steps.
  private final Set<Lane> begun = new HashSet<>();

  /// Marks of lanes without earlier steps.
  private final Set<Integer> idle = new HashSet<>();

  private final List<Marked> marks = new ArrayList<>();

  /// By lane, the last mark of each lane that comes before the next step.
  private final Map<Lane, Map<Lane, Integer>> reached = new HashMap<>();

  /// A mark's lane, and the last mark of each lane that comes before it, itself included.
  private record Marked(Lane lane, Map<Lane, Integer> reached) {}

  /// A word that a lane has waited for.
  private record Passed(Lane lane, String flag, int index) {}

  Program(int rank, int ranks) {
    this.rank = rank;
    this.ranks = ranks;
  }

  public int rank() {
    return rank;
  }

  public int ranks() {
    return ranks;
  }

  /// Sets the round of the steps that follow; 0 at first. It orders steps of different ranks that
  /// use the same rows, in a schedule that is built by [Schedule.Builder#ordered]: those of an
  /// earlier round come first, and in one round writes come before reads. Only rows that several
  /// steps overwrite need rounds.
  public Program round(int number) {
    round = number;
    return this;
  }

  /// Copies one region.
  public Program copy(Lane lane, int chunk, Region from, Region to) {
    return copy(lane, chunk, List.of(new Move(from, to)));
  }

  /// Copies independent regions.
  public Program copy(Lane lane, int chunk, List<Move> moves) {
    var nonEmpty = moves.stream().filter(move -> !move.from().isEmpty()).toList();
    return nonEmpty.isEmpty() ? this : add(new Copy(lane, chunk, nonEmpty));
  }

  /// Multiplies rows of the input by the weight.
  public Program gemm(
      Lane lane, int chunk, Region input, Region weight, Region output, Finish finish) {
    return gemm(lane, chunk, List.of(new Tile(input, output)), weight, finish);
  }

  /// Multiplies rows of the input by the weight, and stores the result unchanged.
  public Program gemm(Lane lane, int chunk, Region input, Region weight, Region output) {
    return gemm(lane, chunk, input, weight, output, Finish.NONE);
  }

  /// Multiplies several pieces of rows by the weight.
  public Program gemm(Lane lane, int chunk, List<Tile> tiles, Region weight, Finish finish) {
    var nonEmpty = tiles.stream().filter(tile -> !tile.output().isEmpty()).toList();
    return nonEmpty.isEmpty() ? this : add(new Gemm(lane, chunk, nonEmpty, weight, finish));
  }

  public Program reduce(Lane lane, int chunk, List<Region> parts, Region output, Finish finish) {
    return output.isEmpty() ? this : add(new Reduce(lane, chunk, parts, output, finish));
  }

  /// Computes the attention of consecutive positions to others, as a block of a larger attention.
  ///
  /// @param continued true to add the keys to those that the result includes
  public Program attend(
      Lane lane,
      int chunk,
      AttentionSpec spec,
      Region query,
      long queryPosition,
      Region key,
      Region value,
      long keyPosition,
      Partial result,
      boolean continued) {
    return query.isEmpty() || key.isEmpty()
        ? this
        : add(
            new Attend(
                lane,
                chunk,
                spec,
                query,
                queryPosition,
                key,
                value,
                keyPosition,
                result,
                continued));
  }

  /// Merges the attention of the same rows to different keys.
  public Program merge(Lane lane, int chunk, List<Partial> parts, Partial result) {
    return result.output().isEmpty() ? this : add(new Merge(lane, chunk, parts, result));
  }

  /// Computes the gradients of a block of an attention.
  ///
  /// @param continuesQuery true to add to the gradient of the query
  /// @param continuesKeys true to add to the gradients of key and value
  public Program attendGradient(
      Attend block,
      Region outputGradient,
      Gradients result,
      boolean continuesQuery,
      boolean continuesKeys) {
    return block.query().isEmpty() || block.key().isEmpty()
        ? this
        : add(new AttendGradient(block, outputGradient, result, continuesQuery, continuesKeys));
  }

  public Program zero(Lane lane, int chunk, Region target) {
    return target.isEmpty() ? this : add(new Zero(lane, chunk, target));
  }

  /// Prepares a weight for multiplications.
  public Program prepare(Lane lane, Region weight) {
    return add(new Prepare(lane, weight));
  }

  public Program call(LibraryCall call) {
    return add(call);
  }

  /// Raises a word of rank `to`.
  public Program signal(Lane lane, int chunk, Flag flag, int index, int to) {
    return add(new Signal(lane, chunk, flag, index, to));
  }

  /// Raises this rank's word at rank `to`: the word whose index is this rank.
  public Program signal(Lane lane, Flag flag, int to) {
    return signal(lane, Step.NO_CHUNK, flag, rank, to);
  }

  /// Waits for rank `from`'s word: the word whose index is that rank.
  public Program await(Lane lane, Flag flag, int from) {
    return await(lane, Step.NO_CHUNK, flag, from, from);
  }

  /// Waits for a word that rank `from` raises. A lane that has waited for it does not wait again.
  public Program await(Lane lane, int chunk, Flag flag, int index, int from) {
    return passed.add(new Passed(lane, flag.name(), index))
        ? add(new Wait(lane, chunk, flag, index, from))
        : this;
  }

  /// Marks the current point of the lane; [#after] waits for it.
  public int mark(Lane lane, int chunk) {
    if (!begun.contains(lane)) {
      idle.add(marks.size());
    }
    int mark = marks.size();
    var before = reachedBy(lane);
    before.put(lane, mark);
    marks.add(new Marked(lane, Map.copyOf(before)));
    add(new Mark(lane, chunk, mark));
    return mark;
  }

  private Map<Lane, Integer> reachedBy(Lane lane) {
    return reached.computeIfAbsent(lane, _ -> new HashMap<>());
  }

  /// Waits for a mark of another lane. A lane that has waited for it, or for a mark after it, does
  /// not wait again.
  public Program after(Lane lane, int chunk, int mark) {
    if (mark < 0 || mark >= marks.size()) {
      // The check names it.
      return add(new After(lane, chunk, mark));
    }
    var before = reachedBy(lane);
    var marked = marks.get(mark);
    if (idle.contains(mark) || before.getOrDefault(marked.lane(), -1) >= mark) {
      return this;
    }
    marked.reached().forEach((other, last) -> before.merge(other, last, Math::max));
    return add(new After(lane, chunk, mark));
  }

  /// Waits for all steps of another lane so far.
  public Program after(Lane lane, int chunk, Lane earlier) {
    return after(lane, chunk, mark(earlier, chunk));
  }

  /// Adds a step, also of a kind that has no method of its own.
  public Program add(Step step) {
    begun.add(step.lane());
    steps.add(step);
    rounds.add(round);
    return this;
  }

  /// Returns the steps, without marks that no step waits for and waits that no step follows.
  public List<Step> steps() {
    return numbered(kept().mapToObj(steps::get).toList());
  }

  /// Returns the rounds of the steps.
  public int[] rounds() {
    return kept().map(rounds::get).toArray();
  }

  private IntStream kept() {
    var kept = new BitSet();
    var followed = new HashSet<Lane>();
    var awaited = new HashSet<Integer>();
    for (int at = steps.size() - 1; at >= 0; at--) {
      var step = steps.get(at);
      if ((step instanceof Mark mark && !awaited.contains(mark.number()))
          || (step instanceof After after && !followed.contains(after.lane()))) {
        continue;
      }
      if (step instanceof After after) {
        awaited.add(after.mark());
      }
      followed.add(step.lane());
      kept.set(at);
    }
    return kept.stream();
  }

  /// Returns the steps with consecutive mark numbers.
  public static List<Step> numbered(List<Step> steps) {
    var numbers = new HashMap<Integer, Integer>();
    var all = new ArrayList<Step>();
    for (var step : steps) {
      all.add(
          switch (step) {
            case Mark mark -> {
              numbers.put(mark.number(), numbers.size());
              yield new Mark(mark.lane(), mark.chunk(), numbers.size() - 1);
            }
            case After after ->
                new After(
                    after.lane(), after.chunk(), numbers.getOrDefault(after.mark(), after.mark()));
            default -> step;
          });
    }
    return List.copyOf(all);
  }
}
