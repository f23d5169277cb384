package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Overlap;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import java.util.Optional;
import java.util.stream.IntStream;

/// Plans the schedule of a problem and its tuning.
final class GemmPlanner {
  private GemmPlanner() {}

  static Schedule plan(GemmSpec spec, Overlap overlap, int ranks) {
    return plan(
        Schedule.on(new Goal.Solution(spec, Optional.of(overlap)), ranks), spec, overlap, ranks);
  }

  static Schedule plan(Schedule.Builder builder, GemmSpec spec, Overlap overlap, int ranks) {
    if (LibraryPlanner.plans(overlap)) {
      return new LibraryPlanner(builder, spec, overlap, ranks).plan();
    }
    if (PeerSumPlanner.plans(spec, overlap)) {
      return new PeerSumPlanner(builder, spec, overlap, ranks).plan();
    }
    return switch (spec.pattern()) {
      case ALL_GATHER_GEMM, GEMM_BESIDE_ALL_GATHER ->
          new GatherPlanner(builder, spec, overlap, ranks).plan();
      case GEMM_REDUCE_SCATTER, GEMM_BESIDE_REDUCE_SCATTER ->
          new ScatterPlanner(builder, spec, overlap, ranks).plan();
      case GEMM_ALL_REDUCE ->
          Chunks.ofOneShot(overlap, ranks)
              ? new OneShotPlanner(builder, spec, overlap, ranks).plan()
              : new ScatterPlanner(builder, spec, overlap, ranks).plan();
    };
  }

  /// Names the piece that produced a row of a part, for messages.
  static String origin(GemmSpec spec, Overlap overlap, int ranks, Part part, int rank, long row) {
    if (spec.pattern().beside() && part != Part.BESIDE_OUTPUT) {
      var all = new Slice(0, spec.m());
      return IntStream.range(0, overlap.splits())
          .filter(piece -> all.part(overlap.splits(), piece).contains(row))
          .mapToObj(piece -> "piece " + piece)
          .findFirst()
          .orElseThrow(() -> new IllegalArgumentException("no piece has row " + row));
    }
    var chunks = Chunks.of(spec, overlap, ranks);
    boolean scattered =
        spec.pattern() == Pattern.GEMM_REDUCE_SCATTER
            || spec.pattern() == Pattern.GEMM_BESIDE_REDUCE_SCATTER;
    long at = scattered ? row + chunks.part(rank).start() : row;
    for (int owner = 0; owner < chunks.parts(); owner++) {
      for (int chunk = 0; chunk < chunks.count(); chunk++) {
        if (chunks.rows(owner, chunk).contains(at)) {
          return switch (spec.pattern()) {
            case ALL_GATHER_GEMM -> "chunk %d from rank %d".formatted(chunk, owner);
            case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
                "chunk %d of rank %d's".formatted(chunk, owner);
            case GEMM_REDUCE_SCATTER -> "chunk %d of rank %d's rows".formatted(chunk, owner);
            case GEMM_ALL_REDUCE ->
                chunks.parts() == 1
                    ? "chunk " + chunk
                    : "chunk %d of rank %d's rows".formatted(chunk, owner);
          };
        }
      }
    }
    throw new IllegalArgumentException("no chunk has row " + row);
  }
}
