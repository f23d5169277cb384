package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Reduction;
import braid.model.DType;
import braid.model.Stage;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Multiplies on a GPU: by cublasLt, epilogue included, where cublasLt has it as exactly as fp32
/// and one rounding allow; else into fp32 beside it, finished by our own kernel. The narrowest
/// types that cublasLt cannot take as they lie are widened to fp16, which holds all their values.
/// Matrices of which cublasLt takes neither sizes nor strides are multiplied in padded copies,
/// which is work of its own.
///
/// The algorithm of each problem is chosen by measurement the first time that any process asks for
/// it on this kind of GPU, and kept on disk.
public final class Multiplier implements AutoCloseable {
  private final CudaDevice device;
  private final Lt lt;
  private final AlgorithmTimer trial;
  private final Map<Lt.Problem, AlgorithmTimer.Choice> chosen = new HashMap<>();
  private final Map<Lt.Problem, String> impossible = new HashMap<>();

  /// @param algorithms the folder in which choices are kept
  Multiplier(CudaDevice device, Lt lt, Path algorithms) {
    this.device = device;
    this.lt = lt;
    this.trial = new AlgorithmTimer(device, lt, algorithms);
  }

  /// One piece of a multiplication, as a profile shows it.
  public record Step(Stage stage, long bytes, long flops, Launch launch) {}

  /// How one multiplication is done.
  private record Way(Lt.Problem problem, Left left, Finish finish) {}

  /// How the result comes of the product.
  private enum Finish {
    /// By cublasLt.
    TOGETHER,
    /// By our own kernel, from fp32.
    APART,
    /// The same, and both sides are copied first to where all sizes, strides and addresses are
    /// multiples of 16 bytes, with zeros around them.
    PADDED
  }

  private static final int ALIGNMENT_BYTES = 16;

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
  public List<Step> prepare(Gemm gemm, int reserved, Scratch scratch, long workspace) {
    return prepare(gemm, reserved, scratch, workspace, false);
  }

  /// The same; `padded` where it is to be done in padded copies whether cublasLt needs them or not.
  List<Step> prepare(Gemm gemm, int reserved, Scratch scratch, long workspace, boolean padded) {
    if (gemm.c().rows() == 0) {
      return List.of();
    }
    var way = way(gemm, reserved, padded);
    if (gemm.count() > 1 && way.problem().batch() == 1) {
      return joined(
          gemm,
          gemm.each().stream()
              .flatMap(one -> prepare(one, reserved, scratch, workspace, padded).stream())
              .toList());
    }
    return switch (way.finish()) {
      case TOGETHER, APART ->
          List.of(new Step(Stage.GEMM, 0, gemm.flops(), asItLies(gemm, way, scratch, workspace)));
      case PADDED -> padded(gemm, way, scratch, workspace);
    };
  }

  /// Pieces that are multiplications alone are one to whoever looks.
  private static List<Step> joined(Gemm gemm, List<Step> steps) {
    return steps.size() > gemm.count()
        ? steps
        : List.of(
            new Step(
                Stage.GEMM, 0, gemm.flops(), on -> steps.forEach(step -> step.launch().on(on))));
  }

  private Launch asItLies(Gemm gemm, Way way, Scratch scratch, long workspace) {
    boolean apart = way.finish() == Finish.APART;
    long wideBytes = apart ? wideBytes(gemm.c()) : 0;
    long room = scratch.take(wideBytes + leftBytes(way));
    var a = gemm.a();
    var asItIs = way.left() == Left.AS_IT_IS;
    long left = asItIs ? a.segment().address() : room + wideBytes;
    long right = Forms.right(gemm.b()).segment().address();
    var plan =
        chosen
            .computeIfAbsent(
                way.problem(), problem -> trial.choose(problem, asItIs ? left : 0, right))
            .plan();
    Launch multiply;
    if (apart) {
      var finish = finish(gemm, room);
      float scale = gemm.epilogue().scale();
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
          bring(on, a, way, left);
          multiply.on(on);
        };
  }

  /// ```
  /// scratch | product without gaps | product | left | right |
  /// ```
  private List<Step> padded(Gemm gemm, Way way, Scratch scratch, long workspace) {
    var problem = way.problem();
    var a = gemm.a();
    var b = Forms.right(gemm.b());
    var c = gemm.c();
    long wideBytes = wideBytes(c);
    long productBytes = Scratch.aligned(AlgorithmTimer.bytes(problem.d()));
    long leftBytes = leftBytes(way);
    long copiesBytes = leftBytes + AlgorithmTimer.bytes(problem.b());
    long room = scratch.take(wideBytes + productBytes + copiesBytes);
    long product = room + wideBytes;
    long left = product + productBytes;
    long right = left + leftBytes;
    var plan = chosen.computeIfAbsent(problem, one -> trial.choose(one, 0, 0)).plan();
    float scale = gemm.epilogue().scale();
    var steps = new ArrayList<Step>();
    steps.add(
        new Step(
            Stage.LOCAL,
            count(a) * a.dtype().bytes() + count(b) * b.dtype().bytes(),
            0,
            on -> {
              on.fill(left, (byte) 0, copiesBytes);
              bring(on, a, way, left);
              copy(on, b, problem.b(), right);
            }));
    steps.add(
        new Step(
            Stage.GEMM,
            0,
            gemm.flops(),
            on -> plan.run(on, scale, left, right, 0, product, product, 0, 0, workspace)));
    boolean gaps = problem.d().stride() > c.columns();
    if (gaps) {
      steps.add(
          new Step(
              Stage.LOCAL,
              count(c) * Float.BYTES,
              0,
              on ->
                  device
                      .kernels()
                      .pack(
                          on,
                          device.kernels().fullGrid(),
                          room,
                          product,
                          problem.d().stride() * Float.BYTES,
                          (long) c.columns() * Float.BYTES,
                          c.rows())));
    }
    steps.add(new Step(Stage.GEMM, 0, 0, finish(gemm, gaps ? room : product)));
    return List.copyOf(steps);
  }

  /// Makes the result of the product in fp32 that lies there without gaps.
  private Launch finish(Gemm gemm, long product) {
    var c = gemm.c();
    var memory = CudaDevice.view(product, count(c) * Float.BYTES, Arena.global());
    var wide = Matrix.of(memory, DType.FP32, c.rows(), c.columns());
    return prepare(new Reduction(List.of(wide), c, gemm.epilogue().scaled(1)));
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
              if (Forms.isTransposedForm(operand)) {
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
                widen(on, source, memory.segment().address(), Forms.wideStride(source));
              }
            });
  }

  private void widen(GpuStream on, Matrix source, long to, long toStride) {
    device
        .kernels()
        .widenFp16(
            on,
            to,
            toStride,
            source.segment().address(),
            source.stride(),
            Arguments.type(source.dtype()),
            Forms.storedRows(source),
            Forms.storedColumns(source));
  }

  /// Copies rows as they are to where the layout has them.
  private void copy(GpuStream on, Matrix source, Lt.Layout layout, long to) {
    int bytes = source.dtype().bytes();
    device
        .kernels()
        .copyRows(
            on,
            device.kernels().fullGrid(),
            to,
            layout.stride() * bytes,
            source.segment().address(),
            (long) source.stride() * bytes,
            Forms.storedColumns(source) * bytes,
            Forms.storedRows(source));
  }

  private Way way(Gemm gemm, int reserved, boolean padded) {
    var a = gemm.a();
    var b = Forms.right(gemm.b());
    var form = form(a, b);
    var left =
        switch (form) {
          case AS_IT_IS -> layout(type(a.dtype(), b.dtype()), a, a.stride());
          case TRANSPOSED ->
              new Lt.Layout(type(a.dtype()), a.rows(), a.columns(), a.columns(), false);
          case WIDENED ->
              new Lt.Layout(
                  Lt.Type.FP16, a.rows(), a.columns(), Forms.wideStride(a), a.transposed());
        };
    var right = layout(type(b.dtype(), a.dtype()), b, b.stride());
    var c = gemm.c();
    int target = reserved == 0 ? 0 : Math.max(1, device.gpu().multiprocessors() - reserved);
    var epilogue = gemm.epilogue();
    // Some of cublasLt's algorithms round a product before they add to it what was there, those for
    // sizes that are no multiples of 16 bytes also before they add the bias, and its GELU is off by
    // up to 2e-6 whatever the type.
    boolean unaligned = !(aligned(a) && aligned(b) && aligned(c));
    boolean roundsTwice = epilogue.accumulate() || (epilogue.bias().isPresent() && unaligned);
    boolean inexact =
        epilogue.preActivation().isPresent()
            // Into fp8 only our own kernel stores by a scale.
            || c.dtype().isFp8()
            || (roundsTwice && !c.dtype().isStoredAsFp32());
    if (epilogue.amax().isEmpty() && !padded && !inexact) {
      var together =
          gemm.count() > 1 && form == Left.AS_IT_IS && epilogue.preActivation().isEmpty();
      var direct =
          new Lt.Problem(
              left,
              right,
              layout(result(c.dtype(), left.type()), c, c.stride()),
              epilogue.bias().isPresent(),
              epilogue.preActivation().isPresent(),
              epilogue.preActivation().map(Matrix::stride).orElse(0),
              target,
              together ? gemm.count() : 1,
              together ? (long) gemm.rowStep() * a.stride() : 0,
              0,
              together ? (long) gemm.rowStep() * c.stride() : 0);
      if (possible(direct)) {
        return new Way(direct, form, Finish.TOGETHER);
      }
    }
    var wide =
        new Lt.Layout(
            left.type() == Lt.Type.TF32 ? Lt.Type.TF32 : Lt.Type.FP32,
            c.rows(),
            c.columns(),
            c.columns(),
            false);
    var apart = plain(left, right, wide, target);
    return !padded && possible(apart)
        ? new Way(apart, form, Finish.APART)
        : new Way(plain(padded(left), padded(right), padded(wide), target), form, Finish.PADDED);
  }

  /// Whether rows begin at multiples of 16 bytes, as kernels for tensor cores want them.
  private static boolean aligned(Matrix of) {
    return of.segment().address() % ALIGNMENT_BYTES == 0
        && (long) of.stride() * of.dtype().bytes() % ALIGNMENT_BYTES == 0;
  }

  private static Lt.Problem plain(Lt.Layout a, Lt.Layout b, Lt.Layout d, int target) {
    return new Lt.Problem(a, b, d, false, false, 0, target, 1, 0, 0, 0);
  }

  /// Also the sizes: tensor cores want them in multiples of 16 bytes too.
  private static Lt.Layout padded(Lt.Layout layout) {
    int rows = Math.toIntExact(Forms.up(layout.rows()));
    int columns = Math.toIntExact(Forms.up(layout.columns()));
    return new Lt.Layout(
        layout.type(), rows, columns, layout.transposed() ? rows : columns, layout.transposed());
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

  /// Puts the left side where it is multiplied, as it is multiplied.
  private void bring(GpuStream on, Matrix a, Way way, long to) {
    var layout = way.problem().a();
    switch (way.left()) {
      case AS_IT_IS -> copy(on, a, layout, to);
      case WIDENED -> widen(on, a, to, layout.stride());
      // Rows of fp8 are multiples of 16 bytes already: there are no gaps.
      case TRANSPOSED ->
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

  private static long wideBytes(Matrix c) {
    return Scratch.aligned(count(c) * Float.BYTES);
  }

  /// What the left side needs beside it.
  private static long leftBytes(Way way) {
    return way.left() == Left.AS_IT_IS && way.finish() != Finish.PADDED
        ? 0
        : Scratch.aligned(AlgorithmTimer.bytes(way.problem().a()));
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

  /// How a side is multiplied beside the other: fp32 loses nothing beside tf32.
  private static Lt.Type type(DType dtype, DType other) {
    return dtype == DType.TF32 && other == DType.FP32 ? Lt.Type.FP32 : type(dtype);
  }

  private static Lt.Type result(DType dtype, Lt.Type left) {
    return dtype == DType.TF32 && left == Lt.Type.FP32 ? left : type(dtype);
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
