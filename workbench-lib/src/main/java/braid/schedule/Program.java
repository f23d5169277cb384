package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.Tokens;
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
import braid.schedule.Step.Recode;
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
/// steps without rows, blocks of attention that would add nothing since the mask hides all their
/// keys, and marks and waits without effect.
///
/// In [Schedule.Builder#ordered] a program moves data and computes; signals, waits and marks are
/// added. In [Schedule.Builder#steps] it writes those too. Below, `plan` is the builder, `p` the
/// program, `me` and `peer` are ranks, `comm` and `math` are lanes, and the other names are buffers
/// and slices:
///
/// ```java
/// plan.ordered(p -> {
///   int me = p.rank();
///   p.copy(comm, peer, input.on(peer), fetched.on(me));
///   p.gemm(math, peer, fetched.on(me), weight.on(me), output.on(me, rows));
/// })
/// ```
///
/// A chunk is a number that timelines and profiles show, or [Step#NO_CHUNK].
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

  /// Returns the rank whose steps it collects.
  ///
  /// ```java
  /// int me = p.rank();
  /// p.copy(comm, 0, input.on(peer), fetched.on(me));
  /// ```
  public int rank() {
    return rank;
  }

  /// Returns the number of ranks of the schedule.
  ///
  /// ```java
  /// int next = (p.rank() + 1) % p.ranks();
  /// ```
  public int ranks() {
    return ranks;
  }

  /// Sets the round of the steps that follow; 0 at first. It orders steps of different ranks that
  /// use the same rows, in a schedule that is built by [Schedule.Builder#ordered]: those of an
  /// earlier round come first, and in one round writes come before reads. Only rows that several
  /// steps overwrite need rounds.
  ///
  /// ```java
  /// p.round(chunk);                                            // the inbox has room for one chunk
  /// p.copy(comm, chunk, partial.on(me, rows), inbox.on(peer)); // after the peer's earlier sum
  /// p.reduce(math, chunk, List.of(inbox.on(me)), sum, Finish.NONE);
  /// ```
  public Program round(int number) {
    round = number;
    return this;
  }

  /// Copies one region to another one of the same size. One of them may be on another rank, in a
  /// symmetric buffer.
  ///
  /// ```java
  /// p.copy(comm, peer, input.on(peer), gathered.on(me, rows));     // fetches
  /// p.copy(comm, peer, partial.on(me, rows), inbox.on(peer));      // sends
  /// ```
  public Program copy(Lane lane, int chunk, Region from, Region to) {
    return copy(lane, chunk, List.of(new Move(from, to)));
  }

  /// Copies independent regions in one step, which may run concurrently.
  ///
  /// ```java
  /// var moves = peers.stream().map(peer -> new Step.Move(input.on(peer), inbox.on(me, slot(peer))));
  /// p.copy(comm, chunk, moves.toList());
  /// ```
  public Program copy(Lane lane, int chunk, List<Move> moves) {
    var nonEmpty = moves.stream().filter(move -> !move.from().isEmpty()).toList();
    return nonEmpty.isEmpty() ? this : add(new Copy(lane, chunk, nonEmpty));
  }

  /// Multiplies rows of the input by the weight, and finishes the result before it is stored.
  ///
  /// ```java
  /// var bias = new Finish(false, false, Optional.of(biases), Optional.empty(), Optional.empty());
  /// p.gemm(math, chunk, input.on(me, rows), weight.on(me), output.on(me, rows), bias);
  /// ```
  public Program gemm(
      Lane lane, int chunk, Region input, Region weight, Region output, Finish finish) {
    return gemm(lane, chunk, List.of(new Tile(input, output)), weight, finish);
  }

  /// Multiplies rows of the input by the weight, and stores the result unchanged.
  ///
  /// ```java
  /// p.gemm(math, chunk, input.on(me, rows), weight.on(me), output.on(me, rows));
  /// ```
  public Program gemm(Lane lane, int chunk, Region input, Region weight, Region output) {
    return gemm(lane, chunk, input, weight, output, Finish.NONE);
  }

  /// Multiplies several pieces of rows by the weight, in one step.
  ///
  /// ```java
  /// var first = new Step.Tile(gathered.on(me, rows(0)), output.on(me, rows(0)));
  /// var third = new Step.Tile(gathered.on(me, rows(2)), output.on(me, rows(2)));
  /// p.gemm(math, chunk, List.of(first, third), weight.on(me), Finish.NONE);
  /// ```
  public Program gemm(Lane lane, int chunk, List<Tile> tiles, Region weight, Finish finish) {
    var nonEmpty = tiles.stream().filter(tile -> !tile.output().isEmpty()).toList();
    return nonEmpty.isEmpty() ? this : add(new Gemm(lane, chunk, nonEmpty, weight, finish));
  }

  /// Sums regions of one size in fp32, in the order of the list.
  ///
  /// ```java
  /// p.reduce(add, chunk, List.of(partial.on(me, rows), inbox.on(me)), output.on(me), Finish.NONE);
  /// ```
  public Program reduce(Lane lane, int chunk, List<Region> parts, Region output, Finish finish) {
    return output.isEmpty() ? this : add(new Reduce(lane, chunk, parts, output, finish));
  }

  /// Computes the attention of consecutive positions to others, as a block of a larger attention.
  ///
  /// ```java
  /// var sum = new Step.Partial(output.on(me), lse.on(me));
  /// p.attend(math, me, spec, query.on(me), at, key.on(me), value.on(me), at, sum, false);
  /// p.attend(math, peer, spec, query.on(me), at, keys.on(me), values.on(me), from, sum, true);
  /// ```
  ///
  /// @param queryPosition position of the query's first row; of other keys than queries, the last
  ///   query of the problem is at the position of the last key
  /// @param keyPosition position of the first row of key and value
  /// @param continued true to add the keys to those that the result includes; false to begin a
  ///   result
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
    return attend(
        new Attend(
            lane,
            chunk,
            spec,
            query,
            Tokens.from(queryPosition, query.rows()),
            key,
            value,
            Tokens.from(keyPosition, key.rows()),
            result,
            continued));
  }

  /// Computes the attention of some positions to others, as a block of a larger attention. [Tokens]
  /// has the positions of each rank: one run, two in the zigzag layout, two for each sequence if
  /// sequences are divided one by one. Rows and keys that see nothing of each other are left out,
  /// and a block that no kernel computes at once becomes several steps.
  ///
  /// The last block of a result can write the output itself:
  ///
  /// ```java
  /// p.attend(last.finishing(output.on(me)));
  /// ```
  public Program attend(Attend block) {
    if (block.query().isEmpty()) {
      return this;
    }
    for (var each : AttentionBlocks.of(block)) {
      add(each);
    }
    return this;
  }

  /// Rounds heads to e4m3 or restores them: see [AttentionSpec#exchanged].
  ///
  /// ```java
  /// p.recode(math, chunk, List.of(new Step.Move(key.on(me), sentKey.on(me))), spec.headSize());
  /// ```
  public Program recode(Lane lane, int chunk, List<Move> moves, int headSize) {
    var some = moves.stream().filter(move -> !move.from().isEmpty()).toList();
    return some.isEmpty() ? this : add(new Recode(lane, chunk, some, headSize));
  }

  /// Merges the attention of the same rows to different keys.
  ///
  /// ```java
  /// var near = new Step.Partial(nearOutput.on(me), nearLse.on(me));
  /// var far = new Step.Partial(farOutput.on(me), farLse.on(me));
  /// p.merge(math, Step.NO_CHUNK, List.of(near, far), new Step.Partial(output.on(me), lse.on(me)));
  /// ```
  public Program merge(Lane lane, int chunk, List<Partial> parts, Partial result) {
    return result.output().isEmpty() ? this : add(new Merge(lane, chunk, parts, result));
  }

  /// Computes the gradients of a block of an attention.
  ///
  /// ```java
  /// var into = new Step.Gradients(queryGradient.on(me), keySum.on(me), valueSum.on(me));
  /// p.attendGradient(block, outputGradient.on(me), into, true, false);
  /// ```
  ///
  /// @param continuesQuery true to add to the gradient of the query
  /// @param continuesKeys true to add to the gradients of key and value
  public Program attendGradient(
      Attend block,
      Region outputGradient,
      Gradients result,
      boolean continuesQuery,
      boolean continuesKeys) {
    if (block.query().isEmpty() || block.key().isEmpty()) {
      return this;
    }
    var all = new AttendGradient(block, outputGradient, result, continuesQuery, continuesKeys);
    for (var each : AttentionBlocks.of(all)) {
      add(each);
    }
    return this;
  }

  /// Sets a region to zero, such as the largest magnitude of an FP8 output before an iteration.
  ///
  /// ```java
  /// p.zero(math, Step.NO_CHUNK, amax.on(me));
  /// ```
  public Program zero(Lane lane, int chunk, Region target) {
    return target.isEmpty() ? this : add(new Zero(lane, chunk, target));
  }

  /// Prepares a weight for multiplications, since it may have changed after the last iteration.
  /// Comes before the first multiplication by it.
  ///
  /// ```java
  /// p.prepare(math, weight.on(me));
  /// ```
  public Program prepare(Lane lane, Region weight) {
    return add(new Prepare(lane, weight));
  }

  /// Calls a library's collective. All ranks make the same calls in the same order.
  ///
  /// ```java
  /// var all = Collective.ALL_GATHER;
  /// p.call(new Step.LibraryCall(comm, chunk, all, x.on(me), y.on(me), 0, false));
  /// ```
  public Program call(LibraryCall call) {
    return add(call);
  }

  /// Raises a word of rank `to`, after all earlier steps of the lane. For [Schedule.Builder#steps].
  ///
  /// ```java
  /// var landed = plan.flag("landed", chunks);
  /// p.copy(comm, chunk, partial.on(me), inbox.on(peer)).signal(comm, chunk, landed, chunk, peer);
  /// ```
  public Program signal(Lane lane, int chunk, Flag flag, int index, int to) {
    return add(new Signal(lane, chunk, flag, index, to));
  }

  /// Raises this rank's word at rank `to`: the word whose index is this rank.
  ///
  /// ```java
  /// var begun = plan.flag("begun", ranks);
  /// p.signal(comm, begun, peer);
  /// ```
  public Program signal(Lane lane, Flag flag, int to) {
    return signal(lane, Step.NO_CHUNK, flag, rank, to);
  }

  /// Waits for rank `from`'s word: the word whose index is that rank.
  ///
  /// ```java
  /// p.await(comm, begun, peer).copy(comm, peer, input.on(peer), fetched.on(me));
  /// ```
  public Program await(Lane lane, Flag flag, int from) {
    return await(lane, Step.NO_CHUNK, flag, from, from);
  }

  /// Waits for a word that rank `from` raises. A lane that has waited for it does not wait again.
  ///
  /// ```java
  /// p.await(add, chunk, landed, chunk, peer);
  /// p.reduce(add, chunk, List.of(inbox.on(me)), output.on(me), Finish.NONE);
  /// ```
  public Program await(Lane lane, int chunk, Flag flag, int index, int from) {
    return passed.add(new Passed(lane, flag.name(), index))
        ? add(new Wait(lane, chunk, flag, index, from))
        : this;
  }

  /// Marks the current point of the lane; [#after] waits for it.
  ///
  /// ```java
  /// int fetched = p.mark(comm, chunk);
  /// p.after(math, chunk, fetched);
  /// ```
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
  ///
  /// ```java
  /// p.after(math, chunk, p.mark(comm, chunk));
  /// ```
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

  /// Waits for all steps of another lane so far. In [Schedule.Builder#ordered] it states an order
  /// that no access requires.
  ///
  /// ```java
  /// p.after(math, Step.NO_CHUNK, comm); // serial on purpose: multiplies when all has arrived
  /// ```
  public Program after(Lane lane, int chunk, Lane earlier) {
    return after(lane, chunk, mark(earlier, chunk));
  }

  /// Adds a step, also of a kind that has no method of its own.
  ///
  /// ```java
  /// p.add(new Step.Zero(math, Step.NO_CHUNK, amax.on(me)));
  /// ```
  public Program add(Step step) {
    begun.add(step.lane());
    steps.add(step);
    rounds.add(round);
    return this;
  }

  /// Returns the steps, without marks that no step waits for and waits that no step follows.
  ///
  /// ```java
  /// long copies = p.steps().stream().filter(step -> step instanceof Step.Copy).count();
  /// ```
  public List<Step> steps() {
    return numbered(kept().mapToObj(steps::get).toList());
  }

  /// Returns the rounds of the steps.
  ///
  /// ```java
  /// int last = IntStream.of(p.rounds()).max().orElse(0);
  /// ```
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
  ///
  /// ```java
  /// var fewer = Program.numbered(steps.stream().filter(wanted).toList());
  /// ```
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
