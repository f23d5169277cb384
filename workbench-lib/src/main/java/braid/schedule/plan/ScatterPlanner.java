package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Plans GEMM→reduce-scatter, GEMM→all-reduce in two shots, and a GEMM beside a reduce-scatter of
/// other data. Every rank has partial sums of all rows; each row's owner gets its sum. Each rank
/// pushes: it copies its partial sums into the owner's inbox, which has a slot per rank, and the
/// owner adds them. All methods add in ascending order of ranks, except the ring, which adds at
/// each hop, and two levels, in which a group first adds what crosses to another one. Partial sums
/// of an FP8 output are BF16: the owner rounds the finished sum.
///
/// In an all-reduce, owners then send their sums to all ranks. They send only sums: bias,
/// activation and accumulation are each rank's own work, on the same rounded sum as in one shot.
final class ScatterPlanner {
  private final Schedule.Builder builder;
  private final Pattern pattern;
  private final Method method;
  private final Multiplication gemm;
  private final Chunks chunks;
  private final Buffer input;
  private final Buffer partial;
  private final Buffer running;
  private final Buffer inbox;

  /// Rows of an inbox slot.
  private final long room;

  private final Lane comm;

  /// Lane of what crosses between groups.
  private final Lane across;

  private final Lane adder;
  private final Buffer sums;

  /// True if sums are computed in the output and sent from there.
  private final boolean inOutput;

  private final Optional<Spread> spread;

  /// Lanes of the second half of an all-reduce.
  private record Spread(Lane comm, Lane finisher) {}

  ScatterPlanner(Schedule.Builder builder, GemmSpec spec, Overlap overlap, int ranks) {
    this.builder = builder;
    this.pattern = spec.pattern();
    this.method = overlap.method();
    boolean beside = pattern.beside();
    boolean all = pattern == Pattern.GEMM_ALL_REDUCE;
    // The best unfused all-reduce computes its result in the output, without a copy afterwards.
    this.gemm =
        new Multiplication(
            builder,
            spec,
            overlap,
            ranks,
            overlap.symmetricOutput() || (all && method == Method.UNFUSED && !spec.finishesSum()));
    this.chunks = Chunks.of(spec, overlap, ranks);
    var dtype = spec.sumDtype();
    long columns = beside ? 1 : spec.n();
    this.input = builder.local(Part.INPUT);
    this.partial =
        beside
            ? builder.local(Part.BESIDE_INPUT)
            : builder.local("partial", dtype, chunks.total(), columns);
    // The caller's own data stay unchanged.
    this.running =
        beside && method.passesOn()
            ? builder.local("running", dtype, chunks.total(), columns)
            : partial;
    this.room = chunks.longest();
    this.inbox = builder.symmetric("inbox", dtype, ranks * room, columns);
    if (beside) {
      sums = builder.local(Part.BESIDE_OUTPUT);
    } else if (all) {
      // Owners still send a sum while they finish it, so it is kept apart from the output.
      sums =
          gemm.output.symmetric() && !spec.finishesSum()
              ? gemm.output
              : builder.symmetric("sums", dtype, spec.m(), columns);
    } else {
      sums = gemm.output;
    }
    this.inOutput = sums.equals(gemm.output);
    this.across =
        method == Method.TWO_LEVEL ? gemm.communication("across") : gemm.communication("comm");
    this.comm = method == Method.TWO_LEVEL ? gemm.communication("within") : across;
    this.adder = gemm.completion("reduce");
    this.spread =
        all
            ? Optional.of(new Spread(gemm.communication("comm-spread"), gemm.completion("finish")))
            : Optional.empty();
    gemm.openLanes();
  }

  Schedule plan() {
    switch (method) {
      case RING -> gemm.rotates(chunks.areEqual(), sums);
      case TWO_LEVEL -> gemm.rotates(false);
      default -> gemm.rotates(chunks.areEqual(), sums, inbox);
    }
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final int ranks;
    private final Neighbors neighbors;
    private final List<Integer> peers;
    private final Groups groups;

    /// Rows of the last multiplication.
    private List<Slice> lastRows = List.of();

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.ranks = program.ranks();
      this.neighbors = new Neighbors(rank, ranks, gemm.overlap.order());
      this.peers = neighbors.peers();
      this.groups = Groups.of(gemm.overlap, rank, ranks);
    }

    void write() {
      gemm.begin(program);
      switch (method) {
        case PIPELINED, BULK -> pipelined();
        case DIRECT -> direct();
        case RING -> ring();
        case TWO_LEVEL -> twoLevel();
        case DOUBLING -> throw new IllegalStateException("doubling adds nothing");
        case UNFUSED -> unfused();
      }
      spread.ifPresent(this::receive);
      if (pattern.beside() && method != Method.UNFUSED) {
        gemm.multiplyBeside(program, input);
      }
    }

    /// Chunk by chunk, the peers' rows of each first.
    ///
    /// Rank 0 of 3, `gemmReduceScatter`, `pipelined(2)`:
    ///
    /// ```
    /// comm    >           | send 0 @1 > send 0 @2  >           | send 1 @1 > send 1 @2  >
    ///                     ^ begun @1  ^ begun @2
    /// reduce                                       | sum 0     |                        | sum 1 |
    ///                                              ^ landed 0 @all        landed 1 @all ^
    /// gemm-0  | gemm 0 @1 | gemm 0 @2 | gemm 0 own | gemm 1 @1 | gemm 1 @2 | gemm 1 own |
    /// ```
    private void pipelined() {
      for (int chunk = 0; chunk < chunks.count(); chunk++) {
        for (int peer : peers) {
          send(chunk, chunk, peer);
        }
        collect(chunk, chunk);
      }
    }

    /// Owner by owner, this rank last, because its peers wait for the others.
    ///
    /// Rank 0 of 4, `gemmReduceScatter`, `direct()`:
    ///
    /// ```
    /// comm    >           | send 0 @1 > send 0 @2 > send 0 @3 >
    ///                     ^ begun @1  ^ begun @2  ^ begun @3
    /// reduce                                                  | sum 0 |
    ///                                                         ^ landed 0 @all
    /// gemm-0  | gemm 0 @1 | gemm 1 @2 | gemm 2 @3 | gemm own  |
    /// ```
    private void direct() {
      int piece = 0;
      for (int peer : peers) {
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          send(piece++, chunk, peer);
        }
      }
      for (int chunk = 0; chunk < chunks.count(); chunk++) {
        collect(piece++, chunk);
      }
    }

    /// First the whole multiplication, then all communication.
    ///
    /// Rank 0 of 4, `gemmReduceScatter`, `unfused()`:
    ///
    /// ```
    /// comm    >        | send 0 @1 > send 0 @2 > send 0 @3 >
    ///                  ^ begun @1  ^ begun @2  ^ begun @3
    /// reduce                                               | sum 0 |
    ///                                                      ^ landed 0 @all
    /// gemm-0  | gemm 0 |
    /// ```
    private void unfused() {
      for (int peer : peers) {
        send(0, 0, peer);
      }
      collect(0, 0);
    }

    /// Around the ring: the sum of an owner's rows starts at its successor, each rank adds its part
    /// and passes it on, and the owner adds last. Only links between neighbors are used, and every
    /// hop rounds the sum to the type sent.
    ///
    /// Rank 0 of 4, `gemmReduceScatter`, `ring()`:
    ///
    /// ```
    /// comm    >           | send 0 @1 >           | send 0 @1 >       | send 0 @1 >
    ///                     ^ begun @1
    /// reduce                          | sum 0     |           | sum 0 |           | sum 0 |
    ///                                 ^ landed 0 @3           ^ landed 0 @3       ^ landed 0 @3
    /// gemm-0  | gemm 0 @1 | gemm 1 @1 | gemm 2 @1 | gemm own  |
    /// ```
    private void ring() {
      int piece = 0;
      for (int step = 0; step < ranks; step++) {
        int owner = neighbors.back(step + 1);
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          var rows = chunks.rows(owner, chunk);
          if (!rows.isEmpty()) {
            hop(piece++, step, owner, chunk, rows);
          }
        }
      }
    }

    private void hop(int piece, int step, int owner, int chunk, Slice rows) {
      multiply(piece, chunk, List.of(rows));
      var parts = new ArrayList<Region>();
      parts.add(partial.on(rank, rows));
      if (step > 0) {
        parts.add(inbox(rank, step - 1, owner, chunk));
      }
      if (step == ranks - 1) {
        finish(chunk, rows, parts);
        return;
      }
      var sent = partial;
      if (step > 0) {
        sent = running;
        program.reduce(adder, chunk, parts, running.on(rank, rows), Finish.NONE);
      }
      program.copy(comm, chunk, sent.on(rank, rows), inbox(neighbors.next(), step, owner, chunk));
    }

    /// In two levels, the rank's own group last: each group adds its parts of a group's rows. For
    /// each owner the member at its place does so, and sends it the sum, which crosses once. The
    /// owner adds the sums of all groups.
    ///
    /// Rank 0 of 4, `gemmReduceScatter`, `twoLevel(2)`:
    ///
    /// ```
    /// across  >                                | send 0 @2 >
    ///                                          ^ begun @2
    /// within           | send 0 @1 > send 0 @1 >
    ///                  ^ begun @1
    /// reduce                       | sum 0     | sum 0     | sum 0 |
    ///                              ^ landed 0 @1           ^ landed 0 @2
    ///                                          ^ landed 0 @1
    /// gemm-0  | gemm 0 | gemm 1 @1 |
    /// ```
    private void twoLevel() {
      int piece = 0;
      for (int group : Stream.concat(groups.others().stream(), Stream.of(groups.own())).toList()) {
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          multiply(piece++, chunk, chunks.rows(groups.members(group), chunk));
          for (int place : groups.otherPlaces()) {
            int owner = groups.member(group, place);
            program.copy(
                comm,
                chunk,
                partial.on(rank, chunks.rows(owner, chunk)),
                inbox(groups.member(groups.own(), place), groups.counterpart(group), owner, chunk));
          }
          add(group, chunk);
        }
      }
    }

    /// Adds the parts that this rank's group has of the rows of its counterpart in a group.
    private void add(int group, int chunk) {
      int owner = groups.counterpart(group);
      var rows = chunks.rows(owner, chunk);
      var parts =
          groups.members(group).stream()
              .map(
                  slot -> slot == owner ? partial.on(rank, rows) : inbox(rank, slot, owner, chunk));
      if (groups.count() == 1) {
        finish(chunk, rows, parts.toList());
        return;
      }
      var sum = running.on(rank, rows);
      program.reduce(adder, chunk, parts.toList(), sum, Finish.NONE);
      if (owner == rank) {
        finish(
            chunk,
            rows,
            groups.counterparts().stream()
                .map(each -> each == rank ? sum : inbox(rank, each, rank, chunk))
                .toList());
      } else {
        program.copy(across, chunk, sum, inbox(owner, rank, owner, chunk));
      }
    }

    /// Sends a chunk's rows to their owner after they are multiplied.
    private void send(int piece, int chunk, int owner) {
      var rows = chunks.rows(owner, chunk);
      if (!rows.isEmpty()) {
        multiply(piece, chunk, List.of(rows));
        program.copy(comm, chunk, partial.on(rank, rows), inbox(owner, rank, owner, chunk));
      }
    }

    /// Sums this rank's rows of a chunk after all partial sums have arrived.
    private void collect(int piece, int chunk) {
      var rows = chunks.rows(rank, chunk);
      if (!rows.isEmpty()) {
        multiply(piece, chunk, List.of(rows));
        finish(
            chunk,
            rows,
            IntStream.range(0, ranks)
                .mapToObj(
                    source ->
                        source == rank ? partial.on(rank, rows) : inbox(rank, source, rank, chunk))
                .toList());
      }
    }

    /// Multiplies the partial sums of a chunk's rows, unless the last multiplication included them.
    private void multiply(int piece, int chunk, List<Slice> rows) {
      if (pattern.beside()) {
        return;
      }
      // Unfused multiplies all rows at once; a chunk of an all-reduce has rows of all owners.
      var needed =
          method == Method.UNFUSED
              ? List.of(new Slice(0, gemm.spec.m()))
              : pattern == Pattern.GEMM_ALL_REDUCE && method == Method.PIPELINED
                  ? List.of(chunks.all(chunk))
                  : rows;
      if (!needed.equals(lastRows)) {
        program.gemm(
            gemm.turn(piece),
            piece,
            needed.stream()
                .map(some -> new Tile(input.on(rank, some), partial.on(rank, some)))
                .toList(),
            gemm.weight(rank),
            Finish.SCALED);
        lastRows = needed;
      }
    }

    private void finish(int chunk, Slice rows, List<Region> parts) {
      var finish =
          pattern.beside() || (spread.isPresent() && gemm.spec.finishesSum())
              ? Finish.NONE
              : gemm.finish(true);
      long before = spread.isPresent() ? 0 : chunks.part(rank).start();
      program.reduce(adder, chunk, parts, sums.on(rank, rows.shifted(-before)), finish);
      spread.ifPresent(lanes -> spread(lanes, chunk, rows));
      if (pattern.beside() && method == Method.UNFUSED) {
        gemm.multiplyAfter(adder, program, input);
      }
    }

    /// Sends this rank's sums of a chunk to all ranks, or to the successor in the ring.
    ///
    /// Rank 0 of 3, `gemmAllReduce`, `pipelined(2)`:
    ///
    /// ```
    /// comm         >      |send 0@1>send 0@2>send 1@1> ...
    ///                     ^ begun @1
    ///                              ^ begun @2
    /// reduce                                |sum 0   | ...
    ///                                       ^ landed 0 @all
    /// comm-spread                                      ... >send 1@2>
    /// finish                                           ... |copy 0  |copy 0|copy 1|copy 1|
    ///                                                      ^ landed 0 @1   ^ landed 1 @1
    ///                                                               ^ landed 0 @2
    ///                                                                             ^ landed 1 @2
    /// gemm-0       |gemm 0|gemm 1  |
    /// ... leaves out 3 of 11 units of time
    /// ```
    ///
    /// Rank 0 of 4, `gemmAllReduce`, `twoLevel(2)`:
    ///
    /// ```
    /// across       >                        |send 0@2>     |send 0@2>
    ///                                       ^ begun @2
    /// within              |send 0@1>send 0@1>
    ///                     ^ begun @1
    /// reduce                       |sum 0   |sum 0   |sum 0|
    ///                              ^ landed 0 @1     ^ landed 0 @2
    ///                                       ^ landed 0 @1
    /// comm-spread                                          |send 0@1|send 0@1>
    ///                                                               ^ landed 0 @2
    /// finish                                               |copy 0  |copy 0  |copy 0|copy 0|
    ///                                                               ^ landed 0 @1   ^ landed 0 @1
    ///                                                                        ^ landed 0 @2
    /// gemm-0       |gemm 0|gemm 1@1|
    /// ```
    ///
    /// Rank 0 of 3, `gemmAllReduce`, `ring()`:
    ///
    /// ```
    /// comm         >        |send 0@1>        |send 0@1>
    ///                       ^ begun @1
    /// reduce                         |sum 0   |        |sum 0|
    ///                                ^ landed 0 @2     ^ landed 0 @2
    /// comm-spread                                            |send 0@1>send 0@1>
    ///                                                                 ^ landed 0 @2
    /// finish                                                 |copy 0  |copy 0  |copy 0|
    ///                                                                 ^ landed 0 @2
    ///                                                                          ^ landed 0 @2
    /// gemm-0       |gemm 0@1|gemm 1@1|gemm own|
    /// ```
    private void spread(Spread lanes, int chunk, Slice rows) {
      switch (method) {
        case RING -> pass(lanes.comm(), chunk, rows, neighbors.next());
        case TWO_LEVEL -> {
          groups.others().forEach(group -> pass(across, chunk, rows, groups.counterpart(group)));
          passWithin(lanes, chunk, rows);
        }
        default -> peers.forEach(peer -> pass(lanes.comm(), chunk, rows, peer));
      }
      output(lanes, chunk, rows);
    }

    private void pass(Lane lane, int chunk, Slice rows, int to) {
      program.copy(lane, chunk, sums.on(rank, rows), sums.on(to, rows));
    }

    private void passWithin(Spread lanes, int chunk, Slice rows) {
      for (int place : groups.otherPlaces()) {
        pass(lanes.comm(), chunk, rows, groups.member(groups.own(), place));
      }
    }

    /// Receives the sums of the other owners, as they arrive.
    private void receive(Spread lanes) {
      if (method == Method.RING) {
        passOn(lanes);
        return;
      }
      for (int chunk = 0; chunk < chunks.count(); chunk++) {
        for (int owner : peers) {
          var rows = chunks.rows(owner, chunk);
          output(lanes, chunk, rows);
          if (method == Method.TWO_LEVEL && owner % groups.size() == groups.place()) {
            passWithin(lanes, chunk, rows);
          }
        }
      }
    }

    private void passOn(Spread lanes) {
      for (int step = 1; step < ranks; step++) {
        int owner = neighbors.back(step);
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          var rows = chunks.rows(owner, chunk);
          output(lanes, chunk, rows);
          if (step < ranks - 1) {
            pass(lanes.comm(), chunk, rows, neighbors.next());
          }
        }
      }
    }

    /// Computes the output from sums, unless they are computed in it.
    private void output(Spread lanes, int chunk, Slice rows) {
      if (inOutput) {
        return;
      }
      var sum = sums.on(rank, rows);
      var out = gemm.output.on(rank, rows);
      if (gemm.spec.finishesSum()) {
        program.reduce(lanes.finisher(), chunk, List.of(sum), out, gemm.finish(true));
      } else {
        program.copy(lanes.finisher(), chunk, sum, out);
      }
    }

    /// Returns the rows of a chunk in a slot of a rank's inbox.
    private Region inbox(int of, int slot, int owner, int chunk) {
      return inbox.on(
          of,
          new Slice(slot * room + chunks.offset(owner, chunk), chunks.rows(owner, chunk).length()));
    }
  }
}
