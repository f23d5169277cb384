package braid.internal.cuda.device;

import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.Matrix;
import braid.model.DType;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.cudnn.AttentionPlan;
import braid.natives.cudnn.AttentionProblem;
import braid.natives.cudnn.Cudnn;
import braid.natives.kernels.AttentionKernels;
import braid.natives.kernels.ElementType;
import java.util.Optional;
import java.util.stream.LongStream;

/// Attention of sequences by cuDNN, and its gradients.
///
/// cuDNN writes the output in its 16-bit type. Our kernel then takes it, with its statistics, into
/// the result, which is accumulated in fp32:
///
/// ```
/// cuDNN   query, key, value -> scratch: output in 16 bits, statistics
/// fold    scratch           -> result: output, LSE; merged if the block is continued
/// ```
///
/// Gradients take the same way. What nothing is added to may be in the 16-bit type: cuDNN writes it
/// directly.
final class CudnnAttention implements AutoCloseable {
  private final Gpu gpu;
  private final Cudnn cudnn;
  private final AttentionKernels kernels;

  CudnnAttention(Gpu gpu, Cudnn cudnn, AttentionKernels kernels) {
    this.gpu = gpu;
    this.cudnn = cudnn;
    this.kernels = kernels;
  }

  /// Returns why cuDNN cannot compute an attention; empty if it can.
  Optional<String> cannot(AttentionProblem problem) {
    return cudnn.cannot(problem);
  }

  /// Returns why cuDNN cannot compute the gradients of an attention; empty if it can.
  Optional<String> cannotBackward(AttentionProblem problem, boolean deterministic) {
    return cudnn.cannotBackward(problem, deterministic);
  }

  /// Prepares the attention of some sequences of a block. If not `continued`, several sequences
  /// begin all rows of the block; a result in 16 bits has their output only.
  ///
  /// @param whole block that has the sequences; if it is finished, no others
  Launch forward(Sequences sequences, AttentionBlock whole, boolean continued, Scratch scratch) {
    var block = sequences.block();
    var problem = sequences.problem().orElseThrow();
    var plan = cudnn.forward(problem);
    var seeing = sequences.rows();
    var tables = sequences.tables(gpu, scratch);
    var result = block.result();
    int heads = problem.heads();
    int headSize = problem.headSize();
    // A result in cuDNN's type needs no scratch memory for the output.
    boolean direct = isNarrow(result.output());
    if (direct && block.continued()) {
      throw new IllegalArgumentException(
          "a partial result must be in fp32 but is in " + result.output().dtype());
    }
    long outputBytes =
        direct ? 0 : Scratch.aligned((long) seeing.count() * heads * headSize * Short.BYTES);
    long statsBytes = Scratch.aligned((long) seeing.count() * heads * Float.BYTES);
    long base = scratch.take(outputBytes + statsBytes + plan.workspaceBytes());
    long output = direct ? row(result.output(), seeing.first()) : base;
    long stats = base + outputBytes;
    long workspace = stats + statsBytes;
    var operands =
        operands(
            tables,
            row(block.query(), seeing.first()),
            row(block.key(), 0),
            row(block.value(), 0),
            output,
            stats);
    plan.load(workspace, operands);
    // A continued result keeps the rows that see no key; one that begins needs them all.
    boolean finishes = whole.finished().isPresent();
    var target = finishes ? whole : block;
    int first = target.rowOf(block) + seeing.first();
    int kept = continued && !finishes ? first : 0;
    int rows = continued && !finishes ? seeing.count() : target.query().rows();
    var folded =
        new AttentionKernels.Result(
            continued ? row(target.result().output(), kept) : 0,
            row(target.output(), kept),
            isNarrow(target.output()),
            row(target.result().lse(), kept));
    var computed =
        new AttentionKernels.Computed(
            Arguments.type(block.spec().dtype()),
            output,
            stats,
            seeing.count(),
            sequences.length(),
            tables.rows());
    return stream -> {
      plan.run(stream, workspace, operands);
      if (direct) {
        kernels.foldStatistics(stream, computed, first - kept, rows, heads, folded.lse());
      } else {
        kernels.fold(stream, computed, first - kept, rows, heads, headSize, folded);
      }
    };
  }

  /// Prepares the gradients of some sequences of a block. Sums that begin with packed sequences
  /// begin in all rows.
  Launch backward(
      Sequences sequences,
      AttentionGradientBlock gradient,
      boolean addsQuery,
      boolean addsKeys,
      Scratch scratch) {
    var block = gradient.block();
    var seeing = sequences.rows();
    var plan = cudnn.backward(sequences.problem().orElseThrow(), gradient.deterministic());
    var tables = sequences.tables(gpu, scratch);
    boolean packed = sequences.arePacked();
    int heads = block.spec().heads();
    var ofRows = gradient.queryGradient().rows(seeing.first(), seeing.count());
    long lse = row(block.result().lse(), seeing.first());
    // Those of packed sequences are read row by row, as they are, if cuDNN can read them there.
    boolean inPlace = packed && lse % AttentionPlan.OPERAND_ALIGNMENT_BYTES == 0;
    long lseBytes = (long) seeing.count() * heads * Float.BYTES;
    long statsBytes = inPlace ? 0 : Scratch.aligned(lseBytes);
    long rowBytes = narrowBytes(ofRows);
    long keyBytes = narrowBytes(gradient.keyGradient());
    long base = scratch.take(statsBytes + rowBytes + 2 * keyBytes + plan.workspaceBytes());
    long stats = inPlace ? lse : base;
    long narrow = base + statsBytes;
    var query = new Gradient(ofRows, narrow, tables.rows(), addsQuery);
    var key = new Gradient(gradient.keyGradient(), narrow + rowBytes, tables.keys(), addsKeys);
    var value =
        new Gradient(
            gradient.valueGradient(), narrow + rowBytes + keyBytes, tables.keys(), addsKeys);
    long workspace = narrow + rowBytes + 2 * keyBytes;
    var operands =
        operands(
            tables,
            row(block.query(), seeing.first()),
            row(block.key(), 0),
            row(block.value(), 0),
            row(block.result().output(), seeing.first()),
            row(gradient.outputGradient(), seeing.first()),
            stats,
            query.computed(),
            key.computed(),
            value.computed());
    plan.load(workspace, operands);
    var type = Arguments.type(block.spec().dtype());
    return stream -> {
      if (!packed) {
        kernels.statistics(stream, lse, stats, seeing.count(), heads, sequences.length());
      } else if (!inPlace) {
        stream.copy(stats, lse, lseBytes);
      }
      plan.run(stream, workspace, operands);
      query.add(stream, kernels, type);
      key.add(stream, kernels, type);
      value.add(stream, kernels, type);
    };
  }

  /// A gradient that cuDNN computes in 16 bits.
  ///
  /// @param narrow scratch memory for it, if it is added to a sum in fp32
  /// @param rows table of the rows that are computed; 0 if all are
  private record Gradient(Matrix result, long narrow, long rows, boolean adds) {
    Gradient {
      if (adds && isNarrow(result)) {
        throw new IllegalArgumentException(
            "a gradient must be in fp32 to be added to but is in " + result.dtype());
      }
    }

    /// Returns the address at which cuDNN writes it.
    long computed() {
      return isNarrow(result) ? row(result, 0) : narrow;
    }

    void add(GpuStream stream, AttentionKernels kernels, ElementType type) {
      if (!isNarrow(result)) {
        var part = new AttentionKernels.Part(type, narrow, result.rows(), result.columns(), rows);
        kernels.add(stream, part, row(result, 0), result.stride(), adds);
      }
    }
  }

  /// Returns whether a result is in the attention's type of 16 bits, in which cuDNN writes it
  /// directly.
  static boolean isNarrow(Matrix result) {
    return result.dtype() != DType.FP32;
  }

  private static long narrowBytes(Matrix gradient) {
    return isNarrow(gradient)
        ? 0
        : Scratch.aligned((long) gradient.rows() * gradient.columns() * Short.BYTES);
  }

  private static long[] operands(Sequences.Tables tables, long... others) {
    return LongStream.concat(LongStream.of(others), LongStream.of(tables.operands())).toArray();
  }

  static void clear(GpuStream stream, Matrix matrix) {
    if (matrix.size() == 0) {
      return;
    }
    if (matrix.isContiguous()) {
      stream.fill(row(matrix, 0), (byte) 0, matrix.size());
    } else {
      int bytes = matrix.dtype().bytes();
      long pitch = (long) matrix.stride() * bytes;
      stream.fill(row(matrix, 0), pitch, (byte) 0, (long) matrix.columns() * bytes, matrix.rows());
    }
  }

  private static long row(Matrix matrix, int row) {
    return matrix.segment().address() + (long) row * matrix.stride() * matrix.dtype().bytes();
  }

  @Override
  public void close() {
    cudnn.close();
  }
}
