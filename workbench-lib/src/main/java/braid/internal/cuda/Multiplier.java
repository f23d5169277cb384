package braid.internal.cuda;

import braid.DType;
import braid.internal.rank.Closing;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Reduction;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Multiplies on a GPU: by cublasLt, epilogue included, where cublasLt has it; else into fp32
/// beside it, finished by our own kernel. The narrowest types that cublasLt cannot take as they lie
/// are widened to fp16, which holds all their values.
///
/// The algorithm of each problem is chosen by measurement the first time that any process asks for
/// it on this kind of GPU, and kept on disk.
public final class Multiplier implements AutoCloseable {
  private final CudaDevice device;
  private final Lt lt;
  private final Trial trial;
  private final Map<Lt.Problem, Trial.Choice> chosen = new HashMap<>();
  private final Map<Lt.Problem, String> impossible = new HashMap<>();

  /// @param algorithms the folder in which choices are kept
  Multiplier(CudaDevice device, Lt lt, Path algorithms) {
    this.device = device;
    this.lt = lt;
    this.trial = new Trial(device, lt, algorithms);
  }

  /// How one multiplication is done.
  ///
  /// @param apart whether it is finished apart, from fp32
  private record Way(Lt.Problem problem, Left left, boolean apart) {}

  /// What is done to the left side first.
  private enum Left {
    AS_IT_IS,
    /// Stored by rows, as tensor cores want fp8.
    TRANSPOSED,
    WIDENED
  }

  /// Decides how that is multiplied on one stream: chooses an algorithm, measuring where it has not
  /// been, and takes the memory that it needs. What comes of it only enqueues. `reserved`
  /// multiprocessors are left to others.
  public Launch prepare(Gemm gemm, int reserved, Scratch scratch, long workspace) {
    if (gemm.c().rows() == 0) {
      return Launch.NOTHING;
    }
    var way = way(gemm, reserved);
    if (gemm.count() > 1 && way.problem().batch() == 1) {
      var each =
          gemm.each().stream().map(one -> prepare(one, reserved, scratch, workspace)).toList();
      return on -> each.forEach(one -> one.on(on));
    }
    long room = scratch.take(scratchBytes(gemm, way));
    var a = gemm.a();
    var asItIs = way.left() == Left.AS_IT_IS;
    long left = asItIs ? a.segment().address() : room + wideBytes(gemm, way);
    long right = right(gemm.b()).segment().address();
    var plan =
        chosen
            .computeIfAbsent(
                way.problem(), problem -> trial.choose(problem, asItIs ? left : 0, right))
            .plan();
    var epilogue = gemm.epilogue();
    Launch multiply;
    if (way.apart()) {
      var c = gemm.c();
      var memory = CudaDevice.view(room, count(c) * Float.BYTES, Arena.global());
      var wide = Matrix.of(memory, DType.FP32, c.rows(), c.columns());
      var finish = prepare(new Reduction(List.of(wide), c, epilogue.scaled(1)));
      float scale = epilogue.scale();
      multiply =
          on -> {
            plan.run(on, scale, left, right, 0, room, room, 0, 0, workspace);
            finish.on(on);
          };
    } else {
      multiply = direct(plan, gemm, left, right, workspace);
    }
    return asItIs
        ? multiply
        : on -> {
          bring(on, a, way.left(), left);
          multiply.on(on);
        };
  }

  private static Launch direct(Lt.Plan plan, Gemm gemm, long left, long right, long workspace) {
    var epilogue = gemm.epilogue();
    long out = gemm.c().segment().address();
    float alpha = epilogue.scale();
    float beta = epilogue.accumulate() ? 1 : 0;
    long bias = epilogue.bias().map(MemorySegment::address).orElse(0L);
    long aux = epilogue.preActivation().map(kept -> kept.segment().address()).orElse(0L);
    return on -> plan.run(on, alpha, left, right, beta, out, out, bias, aux, workspace);
  }

  /// The same for a sum, which is added in the order of the parts, in fp32, and rounded once.
  public Launch prepare(Reduction reduction) {
    if (reduction.out().rows() == 0) {
      return Launch.NOTHING;
    }
    var kernels = device.kernels();
    var arguments = Arguments.of(reduction);
    return on -> kernels.reduce(on, kernels.fullGrid(), arguments);
  }

  /// Makes the operand's second form, where it has one.
  public void refresh(GpuStream on, Operand operand) {
    operand
        .widened()
        .ifPresent(
            memory -> {
              var source = operand.source();
              if (isTransposedForm(source)) {
                device
                    .kernels()
                    .transpose(
                        on,
                        memory.segment().address(),
                        source.segment().address(),
                        source.stride(),
                        source.rows(),
                        source.columns());
              } else {
                widen(on, source, memory.segment().address());
              }
            });
  }

  /// Bytes of the second form that a right side needs; 0 where it is multiplied as it lies. E4M3 is
  /// multiplied stored by columns, as tensor cores want it; E5M2 has no partner of its own type
  /// there and is widened.
  public static long formBytes(Matrix source) {
    long count = (long) source.rows() * source.columns();
    return switch (source.dtype()) {
      case FP8_E4M3 ->
          source.transposed() && fitsTensorCores(source)
              ? 0
              : isTransposedForm(source) ? count : 2 * count;
      case FP8_E5M2 -> 2 * count;
      case FP32, TF32, BF16, FP16 -> 0;
    };
  }

  private static boolean fitsTensorCores(Matrix weight) {
    return weight.rows() % 16 == 0
        && weight.columns() % 16 == 0
        && weight.stride() % 16 == 0
        && weight.segment().address() % 16 == 0;
  }

  private static boolean isTransposedForm(Matrix source) {
    return source.dtype() == DType.FP8_E4M3 && !source.transposed() && fitsTensorCores(source);
  }

  /// The right side as it is multiplied.
  private static Matrix right(Operand operand) {
    var source = operand.source();
    if (operand.widened().isEmpty()) {
      return source;
    }
    var memory = operand.widened().get().segment();
    if (isTransposedForm(source)) {
      return Matrix.transposed(memory, source.dtype(), source.rows(), source.columns());
    }
    return source.transposed()
        ? Matrix.transposed(memory, DType.FP16, source.rows(), source.columns())
        : Matrix.of(memory, DType.FP16, source.rows(), source.columns());
  }

  private void widen(GpuStream on, Matrix source, long to) {
    int storedRows = source.transposed() ? source.columns() : source.rows();
    int storedColumns = source.transposed() ? source.rows() : source.columns();
    device
        .kernels()
        .widenFp16(
            on,
            to,
            storedColumns,
            source.segment().address(),
            source.stride(),
            Arguments.type(source.dtype()),
            storedRows,
            storedColumns);
  }

  private Way way(Gemm gemm, int reserved) {
    var a = gemm.a();
    var b = right(gemm.b());
    var form = form(a, b);
    var left =
        switch (form) {
          case AS_IT_IS -> layout(type(a.dtype()), a, a.stride());
          case TRANSPOSED ->
              new Lt.Layout(type(a.dtype()), a.rows(), a.columns(), a.columns(), false);
          case WIDENED -> layout(Lt.Type.FP16, a, a.transposed() ? a.rows() : a.columns());
        };
    var right = layout(type(b.dtype()), b, b.stride());
    var c = gemm.c();
    int target = reserved == 0 ? 0 : Math.max(1, device.gpu().multiprocessors() - reserved);
    var epilogue = gemm.epilogue();
    if (epilogue.amax().isEmpty()) {
      var together =
          gemm.count() > 1 && form == Left.AS_IT_IS && epilogue.preActivation().isEmpty();
      var direct =
          new Lt.Problem(
              left,
              right,
              layout(type(c.dtype()), c, c.stride()),
              epilogue.bias().isPresent(),
              epilogue.preActivation().isPresent(),
              epilogue.preActivation().map(Matrix::stride).orElse(0),
              target,
              together ? gemm.count() : 1,
              together ? (long) gemm.rowStep() * a.stride() : 0,
              0,
              together ? (long) gemm.rowStep() * c.stride() : 0);
      if (possible(direct)) {
        return new Way(direct, form, false);
      }
    }
    var wide =
        new Lt.Layout(
            a.dtype() == DType.TF32 ? Lt.Type.TF32 : Lt.Type.FP32,
            c.rows(),
            c.columns(),
            c.columns(),
            false);
    return new Way(
        new Lt.Problem(left, right, wide, false, false, 0, target, 1, 0, 0, 0), form, true);
  }

  private boolean possible(Lt.Problem problem) {
    if (chosen.containsKey(problem)) {
      return true;
    }
    return impossible.computeIfAbsent(problem, one -> lt.cannot(one).orElse("")).isEmpty();
  }

  private static Left form(Matrix a, Matrix right) {
    if (!a.dtype().isFp8()) {
      return Left.AS_IT_IS;
    }
    if (!right.dtype().isFp8()) {
      return Left.WIDENED;
    }
    return a.transposed() ? Left.TRANSPOSED : Left.AS_IT_IS;
  }

  private void bring(GpuStream on, Matrix a, Left form, long to) {
    if (form == Left.WIDENED) {
      widen(on, a, to);
    } else {
      device
          .kernels()
          .transpose(
              on,
              to,
              a.segment().address(),
              a.stride(),
              /* rows= */ a.columns(),
              /* columns= */ a.rows());
    }
  }

  private static long wideBytes(Gemm gemm, Way way) {
    return way.apart()
        ? Scratch.aligned((long) gemm.c().rows() * gemm.c().columns() * Float.BYTES)
        : 0;
  }

  private static long scratchBytes(Gemm gemm, Way way) {
    long left =
        switch (way.left()) {
          case AS_IT_IS -> 0;
          case TRANSPOSED -> count(gemm.a());
          case WIDENED -> count(gemm.a()) * Short.BYTES;
        };
    return wideBytes(gemm, way) + Scratch.aligned(left);
  }

  private static long count(Matrix matrix) {
    return (long) matrix.rows() * matrix.columns();
  }

  /// Rows of what is stored by columns may begin at any number; else the stride tells all.
  private static int alignment(Matrix matrix) {
    return matrix.transposed()
        ? (int) Long.lowestOneBit(matrix.segment().address() | Lt.Layout.MOST_ALIGNMENT_BYTES)
        : Lt.Layout.MOST_ALIGNMENT_BYTES;
  }

  private static Lt.Layout layout(Lt.Type type, Matrix matrix, long stride) {
    return new Lt.Layout(
        type, matrix.rows(), matrix.columns(), stride, matrix.transposed(), alignment(matrix));
  }

  private static Lt.Type type(DType dtype) {
    return switch (dtype) {
      case FP32 -> Lt.Type.FP32;
      case TF32 -> Lt.Type.TF32;
      case BF16 -> Lt.Type.BF16;
      case FP16 -> Lt.Type.FP16;
      case FP8_E4M3 -> Lt.Type.E4M3;
      case FP8_E5M2 -> Lt.Type.E5M2;
    };
  }

  /// How many of the algorithms chosen so far were measured here, or are an earlier process's
  /// choice.
  public long choices(boolean fromDisk) {
    return chosen.values().stream().filter(choice -> choice.fromDisk() == fromDisk).count();
  }

  @Override
  public void close() {
    var parts = new ArrayDeque<AutoCloseable>();
    chosen.values().forEach(choice -> parts.add(choice.plan()));
    chosen.clear();
    parts.add(trial);
    Closing.all(parts::poll);
  }
}
