package braid.schedule;

import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The multiplication of a planned schedule: the buffers that every pattern has, and the lanes on
/// which its pieces take turns.
final class Multiplication {
  final GemmSpec spec;
  final Overlap how;
  final int ranks;
  final Buffer output;
  private final Schedule.Builder builder;
  private final Buffer weight;
  private final Optional<Buffer> bias;
  private final Optional<Buffer> preActivation;
  private final Optional<Buffer> amax;
  private final List<Lane> lanes = new ArrayList<>();

  /// @param symmetricOutput whether other ranks write into the output
  Multiplication(
      Schedule.Builder builder, GemmSpec spec, Overlap how, int ranks, boolean symmetricOutput) {
    this.builder = builder;
    this.spec = spec;
    this.how = how;
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

  /// Ends the list of lanes with those that multiply; those that communicate come before.
  void openLanes() {
    for (int i = 0; i < how.streams(); i++) {
      lanes.add(
          builder.add(
              new Lane(
                  "gemm-" + i,
                  Lane.Role.COMPUTE,
                  how.priority() == Priority.COMMUNICATION,
                  Transport.COPY_ENGINE,
                  0,
                  how.workers())));
    }
  }

  /// A lane that communicates.
  Lane communication(String name) {
    return builder.add(
        new Lane(
            name,
            Lane.Role.COMMUNICATION,
            how.priority() == Priority.GEMM,
            how.transport(),
            how.workers(),
            0));
  }

  /// A lane that ends what was communicated: it goes first where communication does.
  Lane completion(String name) {
    return builder.add(
        new Lane(
            name,
            Lane.Role.COMPLETION,
            how.priority() == Priority.GEMM,
            Transport.COPY_ENGINE,
            0,
            0));
  }

  /// Begins an iteration: the weight may have changed.
  void begin(Program program) {
    var first = lanes.getFirst();
    amax.ifPresent(buffer -> program.zero(first, Step.NO_CHUNK, buffer.on(program.rank())));
    program.prepare(first, weight.on(program.rank()));
    if (lanes.size() > 1) {
      int ready = program.mark(first, Step.NO_CHUNK);
      for (var lane : lanes.subList(1, lanes.size())) {
        program.after(lane, Step.NO_CHUNK, ready);
      }
    }
  }

  /// The lane whose turn it is: a later piece may begin while an earlier one ends.
  Lane turn(int piece) {
    return lanes.get(piece % lanes.size());
  }

  Region weight(int rank) {
    return weight.on(rank);
  }

  /// Work on a result.
  ///
  /// @param scaled whether the sum is scaled already
  Finish finish(boolean scaled) {
    return new Finish(
        !scaled,
        spec.has(Feature.ACCUMULATE),
        bias,
        preActivation,
        amax,
        spec.outputDtype().isFp8());
  }

  /// Whether ranks do more to a sum than store it.
  static boolean finishes(GemmSpec spec) {
    return spec.has(Feature.ACCUMULATE)
        || spec.has(Feature.BIAS)
        || spec.has(Feature.GELU)
        || spec.outputDtype().isFp8();
  }

  /// Multiplies in pieces beside a collective of other data, or in one piece.
  void besides(Program program, Buffer input) {
    var all = new Slice(0, spec.m());
    for (int piece = 0; piece < how.splits(); piece++) {
      multiply(program, piece, input, all.part(how.splits(), piece), finish(false));
    }
  }

  /// Multiplies those rows of the input into the same rows of the output.
  void multiply(Program program, int piece, Buffer input, Slice rows, Finish finish) {
    int rank = program.rank();
    program.gemm(
        turn(piece), piece, input.on(rank, rows), weight(rank), output.on(rank, rows), finish);
  }
}
