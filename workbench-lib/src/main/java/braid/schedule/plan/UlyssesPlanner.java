package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.Tokens;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Partial;
import braid.schedule.plan.HeadExchange.Divided;
import braid.schedule.plan.HeadExchange.Unit;
import java.util.List;
import java.util.Optional;

/// Plans attention whose heads are divided among the ranks of a group. Every rank fetches the query
/// of its heads from its group, and their keys and values from all ranks, group by group. It
/// computes the attention of these heads for all tokens of its group, and writes the output of each
/// token to the rank that holds it.
final class UlyssesPlanner {
  private final int splits;
  private final Schedule.Builder builder;
  private final HeadExchange heads;
  private final Divided query;
  private final Divided output;
  private final Divided lse;

  /// Outputs of some of the keys.
  private final Divided sums;

  UlyssesPlanner(AttentionSpec spec, ContextParallel how, int ranks) {
    this.splits = how.splits();
    builder = Schedule.on(new Goal.Solution(spec, Optional.of(how)), ranks);
    var given = Projections.given(spec, builder, true);
    heads = new HeadExchange(spec, how, builder, given.keys(), ranks);
    query = heads.gathered(given.query());
    output = heads.returned(Part.OUTPUT);
    lse = heads.returned(Part.LSE);
    sums = heads.groups() > 1 ? heads.sums(output) : output;
  }

  Schedule plan() {
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final HeadExchange.OfRank own;
    private final Tokens tokens;
    private final List<Unit> units;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.own = heads.of(program);
      this.tokens = own.tokens();
      this.units = own.units();
    }

    /// An all-to-all of heads in two splits: while the first is attended to, the second is read.
    ///
    /// Rank 3 of 4, `causalAttention`, `ulysses(2)`:
    ///
    /// ```
    /// comm      > fetch 1 | fetch 2  | copy 2 | send 1   | copy 1 | send 2 >
    ///           ^ begun @all                                               ^ landed @all
    /// attend-0  | copy 1  | attend 1 |        | attend 2 | copy 2 |
    /// ```
    ///
    /// In two levels: ranks 2 and 3 exchange heads, and read the keys of ranks 0 and 1.
    ///
    /// Rank 3 of 4, `causalAttention`, `twoLevel(2)`:
    ///
    /// ```
    /// comm      > fetch 1 @2 | fetch 2  >          | send 2 @2 >
    ///           ^ begun @2   ^ begun @0,1                      ^ landed @2
    /// attend-0  | copy 1     | attend 1 | attend 2 | copy 2    |
    /// ```
    void write() {
      own.round();
      for (int unit = 0; unit < units.size(); unit++) {
        own.fetch(unit);
        attend(unit);
        if (unit >= heads.slots()) {
          deliver(unit - heads.slots());
        }
      }
      for (int unit = Math.max(0, units.size() - heads.slots()); unit < units.size(); unit++) {
        deliver(unit);
      }
    }

    /// Computes the attention of all queries that see any key of a unit. The last unit of a split
    /// finishes the output.
    private void attend(int number) {
      own.restore(number);
      var unit = units.get(number);
      int split = unit.split();
      var keys = own.keys(number);
      var block =
          new Attend(
              own.lane(number),
              number + 1,
              heads.part(),
              query.of(split).on(rank),
              tokens,
              keys.key().on(rank, Slice.rows(unit.tokens())),
              keys.value().on(rank, Slice.rows(unit.tokens())),
              unit.tokens(),
              partial(sums, split),
              !own.isOwn(unit));
      boolean finishes = own.isLast(number) && !sums.equals(output);
      program.attend(finishes ? block.finishing(output.of(split).on(rank)) : block);
    }

    private Partial partial(Divided of, int split) {
      return new Partial(of.of(split).on(rank), lse.of(split).on(rank));
    }

    /// Writes the results of a split to the ranks that hold the tokens, after its last unit.
    private void deliver(int unit) {
      if (own.isLast(unit)) {
        own.send(own.comm(), unit);
        // Nothing else is on the lane after the last unit.
        own.keep(units.get(unit).split() == splits - 1 ? own.lane(unit) : own.comm(), unit);
      }
    }
  }
}
