package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import java.util.List;
import java.util.stream.IntStream;

/// Plans GEMM→all-reduce in one step: every rank fetches all others' partial sums and sums all rows
/// itself. This moves more bytes than reduce-scatter and all-gather, and waits only once.
///
/// Rank 0 of 4, `gemmAllReduce`, `direct(2)`:
///
/// ```
/// announce           >         >
/// comm               | fetch 0 | fetch 1 >
///                    ^ landed 0 @all     ^ read @all
///                              ^ landed 1 @all
/// reduce                       | sum 0   | sum 1 |
/// gemm-0    | gemm 0 | gemm 1  |
/// ```
final class OneShotPlanner {
  private final Schedule.Builder builder;
  private final Multiplication gemm;
  private final Chunks chunks;
  private final Buffer input;
  private final Buffer partials;
  private final Buffer inbox;
  private final Lane comm;
  private final Lane adder;

  OneShotPlanner(Schedule.Builder builder, GemmSpec spec, Overlap overlap, int ranks) {
    this.builder = builder;
    this.gemm = new Multiplication(builder, spec, overlap, ranks, overlap.symmetricOutput());
    this.chunks = Chunks.of(spec, overlap, ranks);
    this.input = builder.local(Part.INPUT);
    this.partials = builder.symmetric("partial", spec.sumDtype(), spec.m(), spec.n());
    this.inbox = builder.local("inbox", spec.sumDtype(), (long) ranks * spec.m(), spec.n());
    var announcer = gemm.completion("announce");
    this.comm = gemm.communication("comm");
    this.adder = gemm.completion("reduce");
    gemm.openLanes();
    gemm.announcedBy(announcer);
  }

  Schedule plan() {
    gemm.rotates(true);
    return builder.ordered(this::write);
  }

  private void write(Program program) {
    int rank = program.rank();
    var peers = new Neighbors(rank, program.ranks(), gemm.overlap.order()).peers();
    gemm.begin(program);
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      var rows = chunks.rows(0, chunk);
      program.gemm(
          gemm.turn(chunk),
          chunk,
          input.on(rank, rows),
          gemm.weight(rank),
          partials.on(rank, rows),
          Finish.SCALED);
    }
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      var rows = chunks.rows(0, chunk);
      program.copy(
          comm,
          chunk,
          peers.stream()
              .map(peer -> new Move(partials.on(peer, rows), inbox(rank, peer, rows)))
              .toList());
      program.reduce(
          adder, chunk, parts(program, rows), gemm.output.on(rank, rows), gemm.finish(true));
    }
  }

  /// Returns all ranks' partial sums of some rows, in the order of the ranks.
  private List<Region> parts(Program program, Slice rows) {
    int rank = program.rank();
    return IntStream.range(0, program.ranks())
        .mapToObj(source -> source == rank ? partials.on(rank, rows) : inbox(rank, source, rows))
        .toList();
  }

  private Region inbox(int rank, int source, Slice rows) {
    return inbox.on(rank, rows.shifted(source * chunks.total()));
  }
}
