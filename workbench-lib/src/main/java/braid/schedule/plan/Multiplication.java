package braid.schedule.plan;

import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The multiplication of a planned schedule: the buffers that every pattern has, and the lanes
/// between which its pieces alternate.
final class Multiplication {
  final GemmSpec spec;
  final Overlap overlap;
  final int ranks;
  final Buffer output;
  private final Schedule.Builder builder;
  private final Buffer weight;
  private final Optional<Buffer> bias;
  private final Optional<Buffer> preActivation;
  private final Optional<Buffer> amax;
  private final List<Lane> lanes = new ArrayList<>();

  /// @param symmetricOutput true if other ranks write into the output
  Multiplication(
      Schedule.Builder builder,
      GemmSpec spec,
      Overlap overlap,
      int ranks,
      boolean symmetricOutput) {
    this.builder = builder;
    this.spec = spec;
    this.overlap = overlap;
    this.ranks = ranks;
    weight = builder.local(Part.WEIGHT);
    output = symmetricOutput ? builder.symmetric(Part.OUTPUT) : builder.local(Part.OUTPUT);
    bias = part(Feature.BIAS, Part.BIAS);
    preActivation = part(Feature.GELU, Part.PRE_ACTIVATION);
    amax =
        spec.isScaled()
            ? Optional.of(builder.local(Part.AMAX, DType.FP32, 1, 1))
            : Optional.empty();
  }

  private Optional<Buffer> part(Feature feature, Part part) {
    return spec.has(feature) ? Optional.of(builder.local(part)) : Optional.empty();
  }

  /// Adds the multiplying lanes, after those that communicate.
  void openLanes() {
    openLanes(Transport.COPY_ENGINE);
  }

  /// @param transport of the sums on these lanes
  void openLanes(Transport transport) {
    for (int i = 0; i < overlap.streams(); i++) {
      lanes.add(
          builder.add(
              new Lane(
                  "gemm-" + i,
                  Lane.Role.COMPUTE,
                  overlap.priority() == Priority.COMMUNICATION,
                  transport,
                  0,
                  overlap.workers())));
    }
  }

  /// Adds a lane that communicates.
  Lane communication(String name) {
    return builder.add(
        new Lane(
            name,
            Lane.Role.COMMUNICATION,
            overlap.priority() == Priority.GEMM,
            overlap.transport(),
            overlap.workers(),
            0));
  }

  /// Adds a lane that completes communicated data: it has the priority of communication.
  Lane completion(String name) {
    return builder.add(
        new Lane(
            name,
            Lane.Role.COMPLETION,
            overlap.priority() == Priority.GEMM,
            Transport.COPY_ENGINE,
            0,
            0));
  }

  /// Begins an iteration: prepares the weight, which may have changed.
  void begin(Program program) {
    var first = lanes.getFirst();
    amax.ifPresent(buffer -> program.zero(first, Step.NO_CHUNK, buffer.on(program.rank())));
    program.prepare(first, weight.on(program.rank()));
  }

  /// Lets a lane raise the signals after multiplications, so that the next one need not wait.
  void announcedBy(Lane announcer) {
    lanes.forEach(lane -> builder.announces(announcer, lane));
  }

  /// States that all ranks do the same, if they have equal parts of rows and weights.
  ///
  /// @param divided buffers that are divided by rank
  void rotates(boolean equal, Buffer... divided) {
    boolean equalWeights = weight.shapes().stream().distinct().count() == 1;
    if (equal && equalWeights && overlap.order() != ChunkOrder.RANK_ORDER) {
      builder.rotates(divided);
    }
  }

  /// Returns the lane of a piece; lanes alternate, so that a piece may begin while the previous one
  /// ends.
  Lane turn(int piece) {
    return lanes.get(piece % lanes.size());
  }

  Region weight(int rank) {
    return weight.on(rank);
  }

  /// Returns the work on a result.
  ///
  /// @param scaled true if the sum is scaled already
  Finish finish(boolean scaled) {
    return new Finish(
        !scaled,
        spec.has(Feature.ACCUMULATE),
        bias,
        preActivation,
        amax,
        spec.outputDtype().isFp8());
  }

  /// Multiplies all rows, in pieces, beside a collective of other data.
  void multiplyBeside(Program program, Buffer input) {
    var all = new Slice(0, spec.m());
    for (int piece = 0; piece < overlap.splits(); piece++) {
      multiply(program, piece, input, all.part(overlap.splits(), piece), finish(false));
    }
  }

  /// Multiplies all rows after all steps of a lane so far, also if it needs none of their results.
  void multiplyAfter(Lane earlier, Program program, Buffer input) {
    program.after(turn(0), 0, earlier);
    multiply(program, 0, input, new Slice(0, spec.m()), finish(false));
  }

  /// Multiplies rows of the input into the same rows of the output.
  void multiply(Program program, int piece, Buffer input, Slice rows, Finish finish) {
    int rank = program.rank();
    program.gemm(
        turn(piece), piece, input.on(rank, rows), weight(rank), output.on(rank, rows), finish);
  }
}
