package braid.schedule.plan;

import braid.model.Collective;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
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
import braid.schedule.Step;
import braid.schedule.Step.Move;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/// Plans the patterns with collectives of a library, one call per chunk, in place of copies and
/// sums.
///
/// A call gathers or scatters contiguous rows, and a chunk has some rows of each rank. So the
/// buffers that calls gather into or scatter from hold one chunk after the other, and in it the
/// rows of all ranks, by rank. The multiplication reads or writes them there. An all-reduce divides
/// nothing, so its chunks are consecutive rows of the output.
///
/// A library that multiplies too runs the call and the multiplication as one, when the later of the
/// two begins.
///
/// Sums of the library are in the type of partial sums; the rank finishes them like those of
/// copies. If there is nothing to finish, the library writes the output itself.
final class LibraryPlanner {
  private final Schedule.Builder builder;
  private final GemmSpec spec;
  private final boolean multipliesAfter;
  private final int ranks;
  private final Multiplication gemm;
  private final Chunks chunks;

  /// True if the library's sums are the output.
  private final boolean plain;

  /// True if calls need symmetric memory.
  private final boolean symmetric;

  private final Lane comm;
  private final LibraryLane library;

  /// Completes what the library delivers; absent if that is the result.
  private final Optional<Lane> finisher;

  private final Buffer input;

  /// Buffer that calls read, and the one that they write.
  private final Buffer sent;

  private final Buffer received;

  LibraryPlanner(Schedule.Builder builder, GemmSpec spec, Overlap overlap, int ranks) {
    this.builder = builder;
    this.spec = spec;
    this.multipliesAfter = overlap.method() == Method.UNFUSED || overlap.transport().multiplies();
    this.ranks = ranks;
    this.chunks = Chunks.of(spec, overlap, ranks);
    this.symmetric = LibraryLane.needsSymmetric(overlap.transport());
    var pattern = spec.pattern();
    boolean sums = pattern.reduces();
    // A scaled sum needs a step for its largest magnitude.
    this.plain = !spec.finishesSum() && !spec.isScaled() && spec.outputDtype() == spec.sumDtype();
    this.gemm =
        new Multiplication(
            builder,
            spec,
            overlap,
            ranks,
            overlap.symmetricOutput() || (sums && plain && symmetric));
    switch (pattern) {
      case ALL_GATHER_GEMM -> {
        sent = part(Part.INPUT);
        received =
            !spec.has(Feature.GATHERED_INPUT)
                ? buffer("gathered", spec.dtype(), spec.m(), spec.k())
                : chunks.count() == 1
                    ? part(Part.GATHERED_INPUT)
                    : buffer("arrived", spec.dtype(), spec.m(), spec.k());
        input = sent;
      }
      case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE -> {
        input = builder.local(Part.INPUT);
        boolean all = pattern == Pattern.GEMM_ALL_REDUCE;
        sent = all && plain ? gemm.output : buffer("partial", spec.sumDtype(), spec.m(), spec.n());
        received =
            all
                ? sent
                : plain ? gemm.output : buffer("sum", spec.sumDtype(), spec.m() / ranks, spec.n());
      }
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> {
        input = builder.local(Part.INPUT);
        sent = part(Part.BESIDE_INPUT);
        received = part(Part.BESIDE_OUTPUT);
      }
      default -> throw new IllegalStateException("no such pattern: " + pattern);
    }
    this.comm = gemm.communication("comm");
    this.library = new LibraryLane(builder, comm, ranks, chunks.count());
    this.finisher =
        (sums && !plain) || reorders() ? Optional.of(gemm.completion("finish")) : Optional.empty();
    gemm.openLanes();
  }

  /// Returns whether a library runs the collectives of a tuning.
  static boolean plans(Overlap overlap) {
    return overlap.transport().isLibrary();
  }

  private Buffer part(Part part) {
    return symmetric ? builder.symmetric(part) : builder.local(part);
  }

  private Buffer buffer(String name, DType dtype, long rows, long columns) {
    return symmetric
        ? builder.symmetric(name, dtype, rows, columns)
        : builder.local(name, dtype, rows, columns);
  }

  /// Returns whether the gathered input is a result, in another order than the one in which chunks
  /// arrive.
  private boolean reorders() {
    return spec.has(Feature.GATHERED_INPUT) && chunks.count() > 1;
  }

  Schedule plan() {
    var gathered =
        reorders() ? Optional.of(builder.local(Part.GATHERED_INPUT)) : Optional.<Buffer>empty();
    return builder.ordered(
        program -> {
          gemm.begin(program);
          switch (spec.pattern()) {
            case ALL_GATHER_GEMM -> gather(program, gathered);
            case GEMM_REDUCE_SCATTER -> scatter(program);
            case GEMM_ALL_REDUCE -> reduce(program);
            case GEMM_BESIDE_ALL_GATHER -> beside(program, Collective.ALL_GATHER);
            case GEMM_BESIDE_REDUCE_SCATTER -> beside(program, Collective.REDUCE_SCATTER);
          }
        });
  }

  /// Rank 0 of 4, `allGatherGemm`, `pipelined(2).over(NCCL_KERNELS)`:
  ///
  /// ```
  /// comm    | all-gather | all-gather |
  /// gemm-0  | gemm 0     | gemm 1     | gemm 2 |
  /// ```
  private void gather(Program program, Optional<Buffer> gathered) {
    int rank = program.rank();
    if (!multipliesAfter) {
      program.gemm(
          gemm.turn(0),
          0,
          sent.on(rank),
          gemm.weight(rank),
          gemm.output.on(rank, chunks.part(rank)),
          gemm.finish(false));
    }
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      int current = chunk;
      int piece = multipliesAfter ? 0 : chunk + 1;
      library.call(
          program,
          chunk,
          piece,
          Collective.ALL_GATHER,
          sent.on(rank, own(rank, current)),
          all(rank, current));
      if (!multipliesAfter) {
        var tiles =
            IntStream.range(0, ranks)
                .filter(source -> source != rank)
                .mapToObj(
                    source ->
                        new Tile(
                            received.on(rank, slot(source, current)),
                            gemm.output.on(rank, chunks.rows(source, current))))
                .toList();
        program.gemm(gemm.turn(piece), piece, tiles, gemm.weight(rank), gemm.finish(false));
      }
    }
    if (multipliesAfter) {
      gemm.multiplyAfter(comm, program, received);
    }
    gathered.ifPresent(result -> program.copy(lane(), Step.NO_CHUNK, inOrder(rank, result)));
  }

  /// Returns the moves of all chunks to the order of the ranks.
  private List<Move> inOrder(int rank, Buffer result) {
    var moves = new ArrayList<Move>();
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      for (int source = 0; source < ranks; source++) {
        moves.add(
            new Move(
                received.on(rank, slot(source, chunk)),
                result.on(rank, chunks.rows(source, chunk))));
      }
    }
    return moves;
  }

  /// Rank 0 of 4, `gemmReduceScatter`, `pipelined(2).over(NCCL_KERNELS)`:
  ///
  /// ```
  /// comm             | reduce-scatter | reduce-scatter |
  /// gemm-0  | gemm 0 | gemm 1         |
  /// ```
  private void scatter(Program program) {
    int rank = program.rank();
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      int current = chunk;
      var tiles =
          chunks.count() == 1
              ? List.of(new Tile(input.on(rank), sent.on(rank)))
              : IntStream.range(0, ranks)
                  .mapToObj(
                      owner ->
                          new Tile(
                              input.on(rank, chunks.rows(owner, current)),
                              sent.on(rank, slot(owner, current))))
                  .toList();
      program.gemm(gemm.turn(chunk), chunk, tiles, gemm.weight(rank), Finish.SCALED);
      var rows = own(rank, chunk);
      library.call(
          program,
          chunk,
          chunk,
          Collective.REDUCE_SCATTER,
          sent.on(rank, slots(chunk)),
          received.on(rank, rows));
      finish(program, chunk, rows);
    }
  }

  /// Rank 0 of 4, `gemmAllReduce`, `pipelined(2).over(NCCL_KERNELS)`:
  ///
  /// ```
  /// comm             | all-reduce | all-reduce |
  /// gemm-0  | gemm 0 | gemm 1     |
  /// ```
  private void reduce(Program program) {
    int rank = program.rank();
    for (int chunk = 0; chunk < chunks.count(); chunk++) {
      var rows = chunks.all(chunk);
      var sum = sent.on(rank, rows);
      program.gemm(
          gemm.turn(chunk), chunk, input.on(rank, rows), gemm.weight(rank), sum, Finish.SCALED);
      library.call(program, chunk, chunk, Collective.ALL_REDUCE, sum, sum);
      finish(program, chunk, rows);
    }
  }

  private void finish(Program program, int chunk, Slice rows) {
    if (!plain) {
      int rank = program.rank();
      program.reduce(
          lane(),
          chunk,
          List.of(received.on(rank, rows)),
          gemm.output.on(rank, rows),
          gemm.finish(true));
    }
  }

  private Lane lane() {
    return finisher.orElseThrow();
  }

  /// Rank 0 of 4, `besideAllGather`, `bulk().over(NCCL_KERNELS)`:
  ///
  /// ```
  /// comm    | all-gather |
  /// gemm-0  | gemm 0     |
  /// ```
  private void beside(Program program, Collective collective) {
    int rank = program.rank();
    library.call(program, 0, 0, collective, sent.on(rank), received.on(rank));
    if (multipliesAfter) {
      gemm.multiplyAfter(comm, program, input);
    } else {
      gemm.multiplyBeside(program, input);
    }
  }

  /// Returns the rows of a rank's part in a chunk, from the first row of the part on.
  private Slice own(int rank, int chunk) {
    return chunks.rows(rank, chunk).shifted(-chunks.part(rank).start());
  }

  /// Returns the rows of all ranks in a chunk, where calls read or write them.
  private Slice slots(int chunk) {
    return new Slice(ranks * chunks.offset(0, chunk), ranks * chunks.rows(0, chunk).length());
  }

  private Region all(int rank, int chunk) {
    return received.on(rank, slots(chunk));
  }

  /// Returns the rows of one rank among those of a chunk.
  private Slice slot(int source, int chunk) {
    return slots(chunk).part(ranks, source);
  }
}
