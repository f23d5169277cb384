package braid.schedule.plan;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Finish;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.plan.FetchedKeys.Turns;
import braid.schedule.plan.GradientBlocks.Queries;
import braid.schedule.plan.ReturnedGradients.Message;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/// Plans the backward pass of attention over a divided sequence. Every rank fetches the keys and
/// values that its queries see, as in the forward pass, and computes the gradients of its queries.
/// It also computes the gradients of the fetched keys and values by its queries, and sends them
/// back to their owner, chunk by chunk: a message. The owner adds all messages to the gradients by
/// its own queries. If ranks exchange with neighbors only, a rank adds its gradients of a chunk to
/// those that arrive, and sends the sum to its successor; the last sum arrives at the owner.
///
/// All sums are in fp32 and in an order that the schedule fixes, so that every run has the same
/// result to the last bit. Gradients of one block only are written at once.
final class AttentionGradientPlanner {
  private final AttentionSpec spec;
  private final ContextParallel how;
  private final int ranks;
  private final Schedule.Builder builder;
  private final FetchedKeys fetched;

  private final Panel query;
  private final Buffer output;
  private final Buffer lse;
  private final Buffer outputGradient;
  private final Panel queryGradient;
  private final KeyValue gradients;

  /// Sums of the gradients of this rank's keys and values.
  private final KeyValue sums;

  /// Gradients of the query by the keys of each lane.
  private final List<Panel> queryGradients = new ArrayList<>();

  /// Gradients of fetched keys and values by this rank's queries, by slot.
  private final List<KeyValue> parts = new ArrayList<>();

  private final ReturnedGradients returnedGradients;

  private final Lane back;
  private final Lane adder;
  private final List<Lane> lanes;

  /// Some tokens of a rank.
  private interface Division {
    Tokens of(AttentionSpec spec, int ranks, int rank);
  }

  AttentionGradientPlanner(AttentionGradientSpec gradient, ContextParallel how, int ranks) {
    this.spec = gradient.forward();
    this.how = how;
    this.ranks = ranks;
    this.builder = Schedule.on(new Goal.Solution(gradient, Optional.of(how)), ranks);
    var given = Projections.given(spec, builder, false);
    query = given.query();
    fetched = new FetchedKeys(spec, how, builder, given.keys(), ranks, true);
    output = builder.local(Part.OUTPUT);
    lse = builder.local(Part.LSE);
    outputGradient = builder.local(Part.OUTPUT_GRADIENT);
    var results = Projections.gradients(spec, builder, false);
    queryGradient = results.query();
    gradients = results.keys();
    boolean direct = spec.dtype() == DType.FP32;
    var own = fetched.own().key();
    var ofKeys = summed(own, Tokens::ofKeys, Tokens::seenByNoOther);
    sums = direct ? gradients : wide("sum of ", "", gradients, ofKeys);
    var ofQueries = summed(query, Tokens::of, Tokens::seeingNoOther);
    for (int lane = 0; lane < how.streams(); lane++) {
      queryGradients.add(
          lane == 0 && direct ? queryGradient : wide("query gradient " + lane, ofQueries));
    }
    for (int slot = 0; slot < fetched.slots(); slot++) {
      parts.add(wide("part of ", " " + slot, gradients, fetched.shapes()));
    }
    var arrivals =
        how.neighborsOnly()
            ? IntStream.range(0, ranks).mapToObj(this::fromPredecessor).toList()
            : ReturnedGradients.toOwners(how, ranks, fetched::pieces);
    returnedGradients = new ReturnedGradients(builder, how, arrivals, _ -> own.columns());
    back = AttentionLanes.communication(builder, "return", how);
    adder = builder.lane("add", Lane.Role.COMPLETION);
    lanes = AttentionLanes.compute(builder, how);
  }

  /// Returns the messages that a rank's predecessor in the ring sends.
  private List<Message> fromPredecessor(int rank) {
    int from = new Neighbors(rank, ranks, ChunkOrder.NEXT_FIRST).previous();
    return fetched.units(rank).stream()
        .filter(unit -> !unit.sums().isEmpty())
        .map(unit -> new Message(from, unit.owner(), unit.chunk(), unit.sums()))
        .toList();
  }

  Schedule plan() {
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// Returns the shapes of sums; ranks without a run of several blocks need none.
  private List<Shape> summed(Panel like, Division all, Division ofOneBlock) {
    return Buffer.shapes(
        ranks,
        rank -> {
          boolean one = ofOneBlock.of(spec, ranks, rank).equals(all.of(spec, ranks, rank));
          return new Shape(one ? 0 : like.rows(rank), like.columns());
        });
  }

  private KeyValue wide(String prefix, String suffix, KeyValue like, List<Shape> shapes) {
    return new KeyValue(
        wide(prefix + like.key() + suffix, shapes), wide(prefix + like.value() + suffix, shapes));
  }

  private Panel wide(String name, List<Shape> shapes) {
    return Panel.of(builder.add(new Buffer(name, DType.FP32, shapes, false, false)));
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final Tokens keys;
    private final FetchedKeys.OfRank others;
    private final ReturnedGradients.OfRank returned;
    private final List<FetchedUnit> units;

    /// Units with gradients, in slots of [#parts].
    private final Turns turns;

    /// Runs whose gradient of the query, and of key and value, is that of one block.
    private final Set<Tokens.Run> seeingNoOther;

    private final Set<Tokens.Run> seenByNoOther;

    /// Runs whose gradients are computed together: in consecutive rows, and alike in that.
    private final List<Tokens> groups;

    /// Gradients of the query by the keys of each lane.
    private final List<GradientBlocks> blocks;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.keys = Tokens.ofKeys(spec, ranks, rank);
      var queries = Tokens.of(spec, ranks, rank);
      this.others = fetched.of(program);
      this.returned = returnedGradients.of(program);
      this.units = others.units();
      this.turns = Turns.of(fetched.slots(), units, this::hasParts);
      var seeing = Set.copyOf(Tokens.seeingNoOther(spec, ranks, rank).runs());
      var seen = Set.copyOf(Tokens.seenByNoOther(spec, ranks, rank).runs());
      var alike =
          Tokens.groups(queries.runs(), run -> List.of(seeing.contains(run), seen.contains(run)));
      boolean few = alike.size() <= AttentionPlanner.MOST_GROUPS;
      this.seeingNoOther = few ? seeing : Set.of();
      this.seenByNoOther = few ? seen : Set.of();
      this.groups = few ? alike : List.of(queries);
      this.blocks = queryGradients.stream().map(this::blocks).toList();
    }

    private GradientBlocks blocks(Panel gradient) {
      return new GradientBlocks(
          program,
          spec,
          groups,
          new Queries(query, output, lse, outputGradient),
          group -> seeingNoOther.contains(group.runs().getFirst()) ? queryGradient : gradient);
    }

    /// A ring: while a chunk is attended to, the next is fetched, and the gradients of the one
    /// before travel back.
    ///
    /// Rank 3 of 4, `causalAttentionBackward`, `ring()`:
    ///
    /// ```
    /// comm      | fetch 1 @2   | fetch 2 @1 | fetch 3 @0 |
    ///           ^ begun @2     ^ begun @1   ^ begun @0
    /// return                                | send 1 @2  > send 2 @1  > | send 3 @0 >
    ///                                                                   ^ free 3 @0
    /// attend-0  | backward own | backward 1 | backward 2 | backward 3 |
    /// ```
    ///
    /// The owner adds what arrives.
    ///
    /// Rank 0 of 4, `causalAttentionBackward`, `ring()`:
    ///
    /// ```
    /// comm      >
    /// add                          | sum 1 | sum 1 > sum 2 | sum 2 | sum 3 | sum 3 |
    ///                              ^ landed 1 @1   ^ landed 2 @2   ^ landed 3 @3
    /// attend-0  | backward own |
    /// ```
    ///
    /// From neighbor to neighbor, gradients follow the keys: a rank adds what arrives to its own
    /// and sends the sum on. Rank 1 computes with the keys of rank 0, and adds the gradients of its
    /// own keys in the end.
    ///
    /// Rank 1 of 3, `causalAttentionBackward`, `ring().neighborToNeighbor()`:
    ///
    /// ```
    /// comm      > fetch 1 @0   >
    ///           ^ begun @0                  ^ read @2
    /// return                                | send 1 @2 >
    ///                                       ^ begun @2
    /// add                                                   | sum 1 | sum 1 |
    ///                                                       ^ landed 1 @0
    /// attend-0  | backward own | backward 1 |
    /// ```
    ///
    /// An all-gather.
    ///
    /// Rank 2 of 3, `causalAttentionBackward`, `allGatherKv()`:
    ///
    /// ```
    /// comm      | fetch 1      |
    ///           ^ begun @all
    /// return                                | send 1 @1 > send 1 @0 >
    /// attend-0  | backward own | backward 1 |
    /// ```
    ///
    /// First all fetches, then all computation, then all that travels back.
    ///
    /// Rank 2 of 3, `causalAttentionBackward`, `unfused()`:
    ///
    /// ```
    /// comm      | fetch 1 |
    ///           ^ begun @all
    /// return                                          | send 1 @1 > send 1 @0 >
    /// attend-0            | backward own | backward 1 |
    /// ```
    void write() {
      others.round(lanes.getFirst());
      if (how.method() == Method.UNFUSED) {
        var first = lanes.getFirst();
        for (int unit = 0; unit < units.size(); unit++) {
          others.fetch(unit);
        }
        program.after(first, Step.NO_CHUNK, fetched.comm());
        attendOwn();
        for (int unit = 0; unit < units.size(); unit++) {
          attend(unit);
        }
        program.after(back, Step.NO_CHUNK, first);
        for (int unit = 0; unit < units.size(); unit++) {
          send(unit);
        }
      } else {
        attendOwn();
        for (int unit = 0; unit < units.size(); unit++) {
          write(unit);
        }
      }
      finish();
      merge();
    }

    /// Fetches and attends to a unit, and sends the gradients, with those that have arrived.
    private void write(int unit) {
      others.fetch(unit);
      var each = units.get(unit);
      if (each.owner() == rank) {
        // The last sum is that of this rank's own keys.
        returned.add(adder, isOf(each), sums);
        return;
      }
      if (!each.seen().isEmpty()) {
        attend(unit);
      }
      if (!each.sums().isEmpty()) {
        returned.add(
            adder,
            isOf(each),
            part(unit),
            Piece::fetchedRows,
            new HashSet<>(each.seen())::contains);
      }
      if (hasParts(each)) {
        send(unit);
      }
    }

    private static Predicate<Message> isOf(FetchedUnit unit) {
      return message -> message.owner() == unit.owner() && message.chunk() == unit.chunk();
    }

    /// Returns whether a unit has gradients that this rank sends.
    private boolean hasParts(FetchedUnit unit) {
      return unit.owner() != rank && !(unit.seen().isEmpty() && unit.sums().isEmpty());
    }

    private Lane lane(int unit) {
      return lanes.get((unit + 1) % lanes.size());
    }

    private KeyValue part(int unit) {
      return parts.get(turns.slot(unit));
    }

    private void attendOwn() {
      // One group of queries writes the gradients of keys that no other queries see.
      var own =
          Tokens.groups(
              keys.runs(),
              run -> seenByNoOther.contains(run) ? seeingNoOther.contains(run) ? 2 : 1 : 0);
      for (var some : own) {
        boolean alone = seenByNoOther.contains(some.runs().getFirst());
        blocks
            .getFirst()
            .attend(
                lanes.getFirst(),
                0,
                some,
                fetched.own(),
                alone ? gradients : sums,
                group -> own.size() == 1 || some.haveRunsOf(group));
      }
    }

    private void attend(int unit) {
      var lane = lane(unit);
      others.restore(lane, unit);
      for (var block : units.get(unit).together()) {
        blocks
            .get(lanes.indexOf(lane))
            .attend(lane, unit + 1, block, others.keys(unit), part(unit), _ -> false);
      }
    }

    /// Sends the gradients of a unit to the owners, or to the successor in the ring.
    private void send(int unit) {
      var each = units.get(unit);
      int next = new Neighbors(rank, ranks, ChunkOrder.NEXT_FIRST).next();
      for (int owner : each.owners()) {
        returned.send(
            back,
            unit + 1,
            how.neighborsOnly() ? next : owner,
            message -> message.owner() == owner && message.chunk() == each.chunk(),
            part(unit));
      }
    }

    /// Rounds the sums of this rank's keys and values to their type, after adding what the other
    /// ranks have sent directly.
    private void finish() {
      if (!how.neighborsOnly()) {
        returned.add(adder, _ -> true, sums);
      }
      if (!sums.equals(gradients)) {
        var summed = keys.runs().stream().filter(run -> !seenByNoOther.contains(run)).toList();
        for (var some : Slice.joined(summed.stream().map(Slice::rows).toList())) {
          round(sums.key(), gradients.key(), some);
          round(sums.value(), gradients.value(), some);
        }
      }
    }

    private void round(Panel from, Panel to, Slice rows) {
      program.reduce(
          adder, Step.NO_CHUNK, List.of(from.on(rank, rows)), to.on(rank, rows), Finish.NONE);
    }

    /// Adds the gradients of the query by the keys of all lanes; rounds them to their type.
    private void merge() {
      var first = lanes.getFirst();
      for (var group : groups) {
        var rows = Slice.rows(group);
        var all = new ArrayList<Region>();
        for (int lane = 0; lane < lanes.size(); lane++) {
          if (blocks.get(lane).hasBegun(group)) {
            var sum =
                seeingNoOther.contains(group.runs().getFirst())
                    ? queryGradient
                    : queryGradients.get(lane);
            all.add(sum.on(rank, rows));
          }
        }
        var result = queryGradient.on(rank, rows);
        if (!all.equals(List.of(result))) {
          program.reduce(first, Step.NO_CHUNK, all, result, Finish.NONE);
        }
      }
    }
  }
}
