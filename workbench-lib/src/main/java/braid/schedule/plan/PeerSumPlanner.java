package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import braid.schedule.Step.Tile;
import java.util.List;
import java.util.stream.IntStream;

/// Plans GEMM→all-reduce and GEMM→reduce-scatter without an inbox: every rank adds rows where they
/// are, in its own and its peers' memory. A sum is on the lane of its multiplication, so that over
/// [Transport#ONE_KERNEL] an iteration is a multiplication and one more kernel, which raises,
/// waits, adds, raises and waits.
///
/// Directly, every rank adds the rows that it needs:
///
/// Rank 0 of 4, `gemmAllReduce`, `direct().over(ONE_KERNEL)`:
///
/// ```
/// gemm-0  | gemm 0 > sum 0 >
///                  ^ landed 0 @all
///                          ^ read @all
/// ```
///
/// Unfused, every rank adds its share of the rows and passes the sum on. This moves half of the
/// bytes on 4 ranks, as many on 2, and waits once more:
///
/// Rank 0 of 4, `gemmAllReduce`, `unfused().over(ONE_KERNEL)`:
///
/// ```
/// gemm-0  | gemm 0 > sum 0 | send 0 >
///                  ^ landed 0 @all  ^ landed @all
/// ```
final class PeerSumPlanner {
  private final Schedule.Builder builder;
  private final Multiplication gemm;
  private final Chunks chunks;
  private final Buffer input;
  private final Buffer partials;

  /// True if a rank adds rows for its peers too.
  private final boolean passesOn;

  PeerSumPlanner(Schedule.Builder builder, GemmSpec spec, Overlap overlap, int ranks) {
    this.builder = builder;
    this.passesOn = overlap.method() == Method.UNFUSED;
    this.gemm =
        new Multiplication(builder, spec, overlap, ranks, passesOn || overlap.symmetricOutput());
    this.chunks = Chunks.of(spec, overlap, ranks);
    this.input = builder.local(Part.INPUT);
    this.partials = builder.symmetric("partial", spec.sumDtype(), spec.m(), spec.n());
    gemm.openLanes(Transport.ONE_KERNEL);
  }

  /// Returns whether a problem is planned so.
  static boolean plans(GemmSpec spec, Overlap overlap) {
    return overlap.transport() == Transport.ONE_KERNEL
        && switch (overlap.method()) {
          case DIRECT -> spec.pattern().reduces();
          case UNFUSED -> spec.pattern() == Pattern.GEMM_ALL_REDUCE && !spec.finishesSum();
          case PIPELINED, RING, BULK, TWO_LEVEL, DOUBLING -> false;
        };
  }

  Schedule plan() {
    gemm.rotates(chunks.parts() == 1 || chunks.areEqual(), divided());
    return builder.ordered(this::write);
  }

  /// Returns the buffers whose rows are divided by rank.
  private Buffer[] divided() {
    if (chunks.parts() == 1) {
      return new Buffer[0];
    }
    return passesOn ? new Buffer[] {partials, gemm.output} : new Buffer[] {partials};
  }

  private void write(Program program) {
    int rank = program.rank();
    gemm.begin(program);
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      var lane = gemm.turn(chunk);
      program.gemm(lane, chunk, tiles(rank, chunk), gemm.weight(rank), Finish.SCALED);
      int mine = chunks.parts() == 1 ? 0 : rank;
      var rows = chunks.rows(mine, chunk);
      var target = passesOn ? rows : rows.shifted(-chunks.part(mine).start());
      var sum = gemm.output.on(rank, target);
      program.reduce(lane, chunk, parts(program.ranks(), rows), sum, gemm.finish(true));
      if (passesOn) {
        program.copy(
            lane,
            chunk,
            new Neighbors(rank, program.ranks(), gemm.overlap.order())
                .peers().stream()
                    .map(peer -> new Move(sum, gemm.output.on(peer, target)))
                    .toList());
      }
    }
  }

  /// Returns the rows of all ranks' parts in a chunk.
  private List<Tile> tiles(int rank, int chunk) {
    return chunks.count() == 1
        ? List.of(tile(rank, new Slice(0, chunks.total())))
        : IntStream.range(0, chunks.parts())
            .mapToObj(part -> tile(rank, chunks.rows(part, chunk)))
            .toList();
  }

  private Tile tile(int rank, Slice rows) {
    return new Tile(input.on(rank, rows), partials.on(rank, rows));
  }

  /// Returns all ranks' partial sums of some rows, in the order of the ranks.
  private List<Region> parts(int ranks, Slice rows) {
    return IntStream.range(0, ranks).mapToObj(source -> partials.on(source, rows)).toList();
  }
}
