package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Plans attention over a divided sequence. Every rank fetches the keys and values that its queries
/// see, from their owners or from its neighbor in a ring, and computes with them as they arrive.
/// Its own keys and values are used in place. Tokens that no query of a rank sees are not fetched,
/// unless a neighbor needs them.
///
/// The result is accumulated block by block, in fp32. The last block writes the output in its type.
/// Several computing lanes have a partial result each, which are merged into that of the first at
/// the end. Queries that see keys of one block only have their result from it.
final class AttentionPlanner {
  /// Groups of runs up to which those of one block are computed apart: each group takes a step per
  /// block of keys.
  static final int MOST_GROUPS = 4;

  private final AttentionSpec spec;
  private final ContextParallel how;
  private final int ranks;
  private final Schedule.Builder builder;
  private final FetchedKeys fetched;
  private final Panel query;
  private final Buffer output;
  private final Buffer lse;

  /// Partial results of the lanes.
  private final List<Buffer> outputs = new ArrayList<>();

  private final List<Buffer> statistics = new ArrayList<>();
  private final List<Lane> lanes;

  AttentionPlanner(AttentionSpec spec, ContextParallel how, int ranks) {
    this.spec = spec;
    this.how = how;
    this.ranks = ranks;
    this.builder = Schedule.on(new Goal.Solution(spec, Optional.of(how)), ranks);
    var given = Projections.given(spec, builder, false);
    query = given.query();
    fetched = new FetchedKeys(spec, how, builder, given.keys(), ranks, false);
    output = builder.local(Part.OUTPUT);
    lse = builder.local(Part.LSE);
    for (int lane = 0; lane < how.streams(); lane++) {
      boolean direct = lane == 0 && spec.dtype() == DType.FP32;
      outputs.add(direct ? output : partial("output " + lane, output));
      statistics.add(lane == 0 ? lse : partial("lse " + lane, lse));
    }
    lanes = AttentionLanes.compute(builder, how);
  }

  Schedule plan() {
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// Ranks whose queries all see keys of one block only need no partial results.
  private Buffer partial(String name, Buffer like) {
    var shapes =
        Buffer.shapes(
            ranks,
            rank -> {
              boolean all =
                  Tokens.seeingNoOther(spec, ranks, rank).equals(Tokens.of(spec, ranks, rank));
              return new Shape(all ? 0 : like.rows(rank), like.columns(rank));
            });
    return builder.add(new Buffer(name, DType.FP32, shapes, false, false));
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final Tokens tokens;
    private final FetchedKeys.OfRank others;
    private final List<FetchedUnit> units;

    /// Runs of queries that only the block of their own keys attends to.
    private final Set<Tokens.Run> ofOneBlock;

    /// Runs that are attended to together: in consecutive rows, all or none of them of one block.
    private final List<Tokens> groups;

    /// The last keys of each group whose block finishes the output.
    private final Map<Tokens, Tokens> last = new HashMap<>();

    /// Groups of which each lane has begun a partial result.
    private final List<Set<Tokens>> begun = new ArrayList<>();

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.tokens = Tokens.of(spec, program.ranks(), rank);
      this.others = fetched.of(program);
      this.units = others.units();
      var seeingNoOther = Set.copyOf(Tokens.seeingNoOther(spec, ranks, rank).runs());
      var alike = Tokens.groups(tokens.runs(), seeingNoOther::contains);
      boolean few = alike.size() <= MOST_GROUPS;
      this.ofOneBlock = few ? seeingNoOther : Set.of();
      this.groups = few ? alike : List.of(tokens);
      lanes.forEach(_ -> begun.add(new HashSet<>()));
      if (lanes.size() == 1 && spec.dtype() != DType.FP32) {
        for (int unit = 0; unit < units.size(); unit++) {
          for (var keys : attended(unit)) {
            for (var group : groups) {
              if (group.see(spec, keys)) {
                last.put(group, keys);
              }
            }
          }
        }
      }
    }

    /// A ring: while a chunk is attended to, the next is fetched into the other of two buffers.
    ///
    /// Rank 3 of 4, `causalAttention`, `ring()`:
    ///
    /// ```
    /// comm      | fetch 1 @2 | fetch 2 @1 > fetch 3 @0 >
    ///           ^ begun @2   ^ begun @1   ^ begun @0
    /// attend-0  | attend own | attend 1   | attend 2   | attend 3 |
    /// ```
    ///
    /// From neighbor to neighbor: a rank holds what it has fetched until its successor has fetched
    /// it. Ranks 2 and 3 see no late tokens of rank 1, and forward them to rank 0.
    ///
    /// Rank 2 of 4, `zigzagAttention`, `ring().neighborToNeighbor()`:
    ///
    /// ```
    /// comm      > fetch 1 @1 > fetch 2 @1 > fetch 3 @1 >
    ///           ^ begun @1   ^ landed 2 @1             ^ read @3
    ///                                     ^ landed 3 @1, free 3 @3
    /// attend-0  | attend own | attend 1   | attend 2   | attend 3 |
    /// ```
    ///
    /// An all-gather in chunks, each from all ranks.
    ///
    /// Rank 3 of 4, `causalAttention`, `allGatherKv(2)`:
    ///
    /// ```
    /// comm      | fetch 1    | fetch 2  >
    ///           ^ begun @all
    /// attend-0  | attend own | attend 1 | attend 2 |
    /// ```
    ///
    /// First all communication, then all computation.
    ///
    /// Rank 3 of 4, `causalAttention`, `unfused()`:
    ///
    /// ```
    /// comm      | fetch 1 >
    ///           ^ begun @all
    /// attend-0            | attend own | attend 1 |
    /// ```
    void write() {
      others.round(lanes.getFirst());
      if (how.method() == Method.UNFUSED) {
        for (int unit = 0; unit < units.size(); unit++) {
          others.fetch(unit);
        }
        program.after(lanes.getFirst(), Step.NO_CHUNK, fetched.comm());
        attendOwn();
        for (int unit = 0; unit < units.size(); unit++) {
          attend(unit);
        }
      } else {
        attendOwn();
        for (int unit = 0; unit < units.size(); unit++) {
          others.fetch(unit);
          attend(unit);
        }
      }
      merge();
    }

    private Lane lane(int unit) {
      return lanes.get((unit + 1) % lanes.size());
    }

    private void attendOwn() {
      attend(lanes.getFirst(), 0, Tokens.ofKeys(spec, ranks, rank), fetched.own(), true);
    }

    private void attend(int unit) {
      var attended = attended(unit);
      if (!attended.isEmpty()) {
        others.restore(lane(unit), unit);
      }
      for (var keys : attended) {
        attend(lane(unit), unit + 1, keys, others.keys(unit), false);
      }
    }

    /// Returns the keys of a unit, unless no query sees any.
    private List<Tokens> attended(int unit) {
      var fetched = units.get(unit);
      return fetched.seen().isEmpty() ? List.of() : fetched.together();
    }

    /// Computes the attention of all queries that see any of the keys. Those of the rank begin all
    /// results.
    private void attend(Lane lane, int chunk, Tokens keys, KeyValue of, boolean own) {
      int number = lanes.indexOf(lane);
      for (var group : groups) {
        if (!own && !group.see(spec, keys)) {
          continue;
        }
        // Queries of one block have nothing to do with the other keys of this rank.
        var seen = own && isOfOneBlock(group) ? group : keys;
        var rows = Slice.rows(group);
        var block =
            new Attend(
                lane,
                chunk,
                spec,
                query.on(rank, rows),
                group.fromFirstRow(),
                of.key().on(rank, Slice.rows(seen)),
                of.value().on(rank, Slice.rows(seen)),
                seen.fromFirstRow(),
                partial(number, group),
                !begun.get(number).add(group));
        boolean finishes = !own && keys.equals(last.get(group));
        program.attend(finishes ? block.finishing(output.on(rank, rows)) : block);
      }
    }

    private boolean isOfOneBlock(Tokens group) {
      return ofOneBlock.contains(group.runs().getFirst());
    }

    private Partial partial(int lane, Tokens group) {
      var rows = Slice.rows(group);
      return new Partial(
          (isOfOneBlock(group) ? output : outputs.get(lane)).on(rank, rows),
          statistics.get(lane).on(rank, rows));
    }

    /// Merges the partial results of all lanes; rounds an output that no block has finished.
    private void merge() {
      var first = lanes.getFirst();
      for (var group : groups) {
        if (last.containsKey(group)) {
          continue;
        }
        var parts = new ArrayList<Partial>();
        for (int lane = 0; lane < lanes.size(); lane++) {
          if (begun.get(lane).contains(group)) {
            parts.add(partial(lane, group));
          }
        }
        var rows = Slice.rows(group);
        var result = new Partial(output.on(rank, rows), lse.on(rank, rows));
        if (!parts.equals(List.of(result))) {
          program.merge(first, Step.NO_CHUNK, parts, result);
        }
      }
    }
  }
}
