package braid.internal.pipeline;

import braid.DType;
import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.exchange.Rig;
import braid.internal.exchange.Run;
import braid.internal.exchange.Slice;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The GEMM of a plan: the weight, what is done to the sums, and the streams on which its pieces
/// take turns.
final class Multiplication {
  /// Large enough that OpenBLAS takes the path it takes for real work, and sets up for it.
  private static final int WARM_UP_SIZE = 64;

  private final Rig rig;
  private final GemmSpec spec;
  private final List<Stream> streams = new ArrayList<>();
  private final Matrix weight;
  private final Operand operand;
  private final Optional<MemorySegment> bias;
  private final Optional<MemorySegment> amax;
  private float scale = 1;

  Multiplication(Rig rig, GemmSpec spec, Sizes sizes) {
    this.rig = rig;
    this.spec = spec;
    this.weight =
        matrix(
            rig,
            spec.dtype(),
            sizes.inner().length(),
            sizes.columns().length(),
            spec.has(Feature.TRANSPOSED_WEIGHT));
    this.operand = rig.keep(rig.backend.operand(weight));
    this.bias =
        spec.has(Feature.BIAS)
            ? Optional.of(rig.memory((long) sizes.columns().length() * spec.outputDtype().bytes()))
            : Optional.empty();
    this.amax = spec.dtype().isFp8() ? Optional.of(rig.memory(Float.BYTES)) : Optional.empty();
  }

  /// Streams come after those that communicate.
  void openStreams() {
    for (int i = 0; i < rig.how.streams(); i++) {
      streams.add(rig.computation("gemm-" + i));
    }
    streams.forEach(this::warmUp);
  }

  static Matrix matrix(Rig rig, DType dtype, int rows, int columns, boolean transposed) {
    var memory = rig.memory((long) rows * columns * dtype.bytes());
    return transposed
        ? Matrix.transposed(memory, dtype, rows, columns)
        : Matrix.of(memory, dtype, rows, columns);
  }

  /// The first multiplication of a process loads a library, the first of a stream takes buffers:
  /// that is no iteration's time.
  private void warmUp(Stream stream) {
    int size = WARM_UP_SIZE;
    long bytes = (long) size * size * Float.BYTES;
    try (var memory = rig.backend.allocate(3 * bytes)) {
      var a = square(memory.segment());
      var c = square(memory.segment().asSlice(2 * bytes));
      try (var b = rig.backend.operand(square(memory.segment().asSlice(bytes, bytes)))) {
        stream.gemm(rig.work(() -> "the warm-up"), new Gemm(a, b, c, Epilogue.NONE));
        stream.synchronize(() -> "the warm-up on " + stream.name());
      }
    }
  }

  private static Matrix square(MemorySegment memory) {
    return Matrix.of(memory, DType.FP32, WARM_UP_SIZE, WARM_UP_SIZE);
  }

  Matrix weight() {
    return weight;
  }

  Optional<MemorySegment> bias() {
    return bias;
  }

  Optional<MemorySegment> amax() {
    return amax;
  }

  /// What the sum of stored products is multiplied by.
  void scale(float both) {
    scale = both;
  }

  float scale() {
    return scale;
  }

  /// Begins an iteration: the weight may have changed.
  void begin() {
    var first = streams.getFirst();
    amax.ifPresent(memory -> first.zero(rig.work(() -> "clearing the amax"), memory));
    first.prepare(rig.work(() -> "widening the weight"), operand);
    if (streams.size() > 1) {
      var ready = first.mark();
      for (var stream : streams.subList(1, streams.size())) {
        stream.await(rig.work(() -> "the widened weight"), ready);
      }
    }
  }

  /// Pieces take turns on the streams, so that a later one may begin while an earlier one ends.
  Stream turn(int piece) {
    return streams.get(piece % streams.size());
  }

  /// Multiplies those rows of the left side into those of the output, with all that is done to a
  /// result.
  void whole(int chunk, Matrix left, Matrix out, Epilogue epilogue, Stream stream) {
    if (left.rows() > 0) {
      stream.gemm(
          rig.work(chunk, () -> "gemm, chunk %d,".formatted(chunk)),
          new Gemm(left, operand, out, epilogue));
    }
  }

  /// The same for several pieces alike: `left`, `out` and the epilogue are the first one's, in
  /// memory in which the others follow.
  void runs(int chunk, Matrix left, Matrix out, Epilogue epilogue, Run run, Stream stream) {
    stream.gemm(
        rig.work(chunk, () -> "gemm, chunk %d,".formatted(chunk)),
        new Gemm(left, operand, out, epilogue, run.count(), run.step()));
  }

  /// Multiplies into partial sums: only scaled.
  Event partial(int chunk, Matrix left, Matrix out) {
    var stream = turn(chunk);
    whole(chunk, left, out, Epilogue.NONE.scaled(scale), stream);
    return stream.mark();
  }

  /// What is done to the sums of those rows.
  ///
  /// @param scaled whether they are scaled already
  Epilogue epilogue(boolean scaled, Slice rows, Optional<Matrix> preActivation) {
    return new Epilogue(
        scaled ? 1 : scale,
        spec.has(Feature.ACCUMULATE),
        bias,
        preActivation.map(kept -> kept.rows(rows.start(), rows.length())),
        amax);
  }
}
