package braid.schedule.plan;

import braid.model.AttentionGradientSpec;
import braid.model.ContextParallel;
import braid.schedule.Finish;
import braid.schedule.Goal;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.plan.GradientBlocks.Queries;
import braid.schedule.plan.HeadExchange.Divided;
import braid.schedule.plan.HeadExchange.Unit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/// Plans the backward pass of attention whose heads are divided among the ranks of a group, as
/// [UlyssesPlanner] plans the forward pass. Every rank computes the gradients of its heads by the
/// queries of its group, and writes them to the ranks that hold the tokens.
///
/// If there are several groups, the gradients of the keys of another group first travel, as
/// [ReturnedGradients], to the rank of that group that computes the same heads. It adds them to
/// those by the queries of its own group, in fp32 and in an order that the schedule fixes.
final class UlyssesGradientPlanner {
  private final Schedule.Builder builder;
  private final HeadExchange heads;
  private final Divided query;
  private final Divided output;
  private final Divided lse;
  private final Divided outputGradient;
  private final List<Divided> gradients;

  /// Sums of the gradients, of query, key and value: in fp32 if those of several groups are added.
  private final List<Divided> sums;

  /// Gradients of keys and values of other groups, by slot.
  private final List<KeyValue> parts = new ArrayList<>();

  private final ReturnedGradients returnedGradients;
  private final Lane back;
  private final Lane adder;

  UlyssesGradientPlanner(AttentionGradientSpec gradient, ContextParallel how, int ranks) {
    builder = Schedule.on(new Goal.Solution(gradient, Optional.of(how)), ranks);
    var given = Projections.given(gradient.forward(), builder, true);
    heads = new HeadExchange(gradient.forward(), how, builder, given.keys(), ranks);
    query = heads.gathered(given.query());
    output = heads.gathered(Part.OUTPUT);
    lse = heads.gathered(Part.LSE);
    outputGradient = heads.gathered(Part.OUTPUT_GRADIENT);
    var results = Projections.gradients(gradient.forward(), builder, true);
    gradients =
        List.of(
            heads.returned(results.query()),
            heads.returnedKeys(results.keys().key()),
            heads.returnedKeys(results.keys().value()));
    sums = heads.groups() > 1 ? gradients.stream().map(heads::sums).toList() : gradients;
    for (int slot = 0; slot < heads.slots() && heads.groups() > 1; slot++) {
      parts.add(heads.gradients(slot));
    }
    returnedGradients =
        new ReturnedGradients(
            builder,
            how,
            ReturnedGradients.toOwners(
                how, ranks, (sender, owner, _) -> heads.piecesOf(sender, owner)),
            sums.getLast().of(0)::columns);
    back = AttentionLanes.communication(builder, "return", how);
    adder = builder.lane("add", Lane.Role.COMPLETION);
  }

  Schedule plan() {
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final HeadExchange.OfRank own;
    private final ReturnedGradients.OfRank returned;
    private final List<Unit> units;

    /// Gradients by split.
    private final List<GradientBlocks> blocks;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.own = heads.of(program);
      this.returned = returnedGradients.of(program);
      this.units = own.units();
      this.blocks = IntStream.range(0, query.splits().size()).mapToObj(this::blocks).toList();
    }

    private GradientBlocks blocks(int split) {
      return new GradientBlocks(
          program,
          heads.part(),
          List.of(own.tokens()),
          new Queries(
              Panel.of(query.of(split)), output.of(split), lse.of(split), outputGradient.of(split)),
          _ -> Panel.of(sums.getFirst().of(split)));
    }

    /// An all-to-all of heads in two splits: while the gradients of the first are computed, the
    /// second is fetched; those of the first are returned while those of the second are computed.
    ///
    /// Rank 3 of 4, `causalAttentionBackward`, `ulysses(2)`:
    ///
    /// ```
    /// comm      > fetch 1 | fetch 2    | copy 2 |
    ///           ^ begun @all                                          ^ landed @all
    /// attend-0  | copy 1  | backward 1 |        | backward 2 |
    /// return                           | send 1 |            | send 2 >
    /// add                              | copy 1 |            | copy 2 |
    /// ```
    ///
    /// In two levels: rank 2 computes gradients of the keys of ranks 0 and 1, and sends them to
    /// rank 0.
    ///
    /// Rank 2 of 4, `causalAttentionBackward`, `twoLevel(2)`:
    ///
    /// ```
    /// comm      > fetch 1 @3 | fetch 2    |
    ///           ^ begun @3   ^ begun @0,1                                      ^ landed @3
    /// attend-0  | copy 1     | backward 1 | backward 2 |
    /// return                                           | send 2 @0 > send 2 @3 >
    /// add                                              | copy 2    |
    /// ```
    ///
    /// Rank 0 of 4, `causalAttentionBackward`, `twoLevel(2)`:
    ///
    /// ```
    /// comm      > fetch 1 @1 |
    ///           ^ begun @1                                                ^ landed @1
    /// attend-0  | copy 1     | backward 1 |
    /// return                                                  | send 1 @1 >
    /// add                                     | sum 1 | sum 1 | copy 1    |
    ///                                         ^ landed 1 @2
    /// ```
    void write() {
      own.round();
      for (int unit = 0; unit < units.size(); unit++) {
        own.fetch(unit);
        attend(unit);
        if (!own.isOwn(units.get(unit))) {
          send(unit);
        }
        if (own.isLast(unit)) {
          deliver(unit);
        }
      }
    }

    private void attend(int number) {
      own.restore(number);
      var unit = units.get(number);
      var gradients = own.isOwn(unit) ? sums(unit.split()) : parts.get(own.slot(number));
      blocks
          .get(unit.split())
          .attend(
              own.lane(number),
              number + 1,
              unit.tokens(),
              own.keys(number),
              gradients,
              _ -> own.isOwn(unit));
    }

    /// Returns the sums of a split's gradients of key and value.
    private KeyValue sums(int split) {
      return KeyValue.of(sums.get(1).of(split), sums.get(2).of(split));
    }

    /// Sends the gradients of another group's keys and values to the rank that adds them.
    private void send(int number) {
      var unit = units.get(number);
      returned.send(
          back,
          number + 1,
          own.counterpart(unit.group()),
          message -> message.chunk() == unit.split(),
          parts.get(own.slot(number)));
    }

    /// Adds the gradients of a split by the queries of other groups, rounds all sums to their type,
    /// and writes them to the ranks that hold the tokens.
    private void deliver(int unit) {
      int split = units.get(unit).split();
      returned.add(adder, message -> message.chunk() == split, sums(split));
      for (int i = 0; i < gradients.size(); i++) {
        var sum = sums.get(i).of(split).on(rank);
        var gradient = gradients.get(i).of(split).on(rank);
        if (!sum.equals(gradient)) {
          program.reduce(adder, unit + 1, List.of(sum), gradient, Finish.NONE);
        }
      }
      own.send(back, unit);
      own.keep(adder, unit);
    }
  }
}
