package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.internal.work.Epilogue;
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
import java.util.Optional;

/// Multiplies on a GPU: by cublasLt with a fused epilogue if that is exact enough; otherwise into
/// fp32 scratch memory, with the epilogue in our own kernel. A GELU is our own kernel's, of the
/// pre-activation that cublasLt stores. Fp8 matrices that cublasLt does not take as stored are
/// widened to fp16, which is exact. Matrices whose sizes or strides cublasLt does not take are
/// multiplied in padded copies.
///
/// The algorithm of each problem is measured once per kind of GPU, and kept on disk.
public final class Multiplier implements AutoCloseable {
  private final CudaDevice device;
  private final Lt lt;
  private final AlgorithmTimer timer;
  private final Map<Lt.Problem, AlgorithmTimer.Choice> chosen = new HashMap<>();
  private final Map<Lt.Problem, String> refusals = new HashMap<>();

  /// @param algorithms folder of the choices on disk
  Multiplier(CudaDevice device, Lt lt, Path algorithms) {
    this.device = device;
    this.lt = lt;
    this.timer = new AlgorithmTimer(device, lt, algorithms);
  }

  /// One operation of a multiplication, as profiles show it.
  public record Step(Stage stage, long bytes, long flops, Launch launch) {}

  /// The way to run one multiplication: cublasLt's problem, the form of the left side, and the
  /// epilogue.
  private record Strategy(Lt.Problem problem, LeftForm leftForm, Finish finish) {}

  /// The way to apply the epilogue.
  private enum Finish {
    /// By cublasLt, fused.
    FUSED,
    /// The GELU by our own kernel, from the pre-activation.
    ACTIVATED,
    /// By our own kernel, from an fp32 product.
    SEPARATE,
    /// By our own kernel, from the product of zero-padded copies whose sizes, strides and addresses
    /// are multiples of 16 bytes.
    PADDED
  }

  private static final int ALIGNMENT_BYTES = 16;

  /// Form in which the left side is multiplied.
  private enum LeftForm {
    AS_STORED,
    /// Stored by rows, as tensor cores require for fp8.
    TRANSPOSED,
    WIDENED
  }

  /// Prepares a multiplication on one stream: chooses an algorithm, by measurement if it is new,
  /// and allocates scratch memory. The returned steps only enqueue. `reserved` multiprocessors are
  /// left to other work.
  public List<Step> prepare(Gemm gemm, int reserved, Scratch scratch, long workspace) {
    return prepare(gemm, reserved, scratch, workspace, false);
  }

  /// Prepares as above; `padded` forces padded copies.
  List<Step> prepare(Gemm gemm, int reserved, Scratch scratch, long workspace, boolean padded) {
    if (gemm.c().rows() == 0) {
      return List.of();
    }
    var strategy = strategy(gemm, reserved, padded);
    if (gemm.count() > 1 && strategy.problem().batch() == 1) {
      return joined(
          gemm,
          gemm.each().stream()
              .flatMap(one -> prepare(one, reserved, scratch, workspace, padded).stream())
              .toList());
    }
    return switch (strategy.finish()) {
      case FUSED, ACTIVATED, SEPARATE ->
          List.of(
              new Step(Stage.GEMM, 0, gemm.flops(), unpadded(gemm, strategy, scratch, workspace)));
      case PADDED -> padded(gemm, strategy, scratch, workspace);
    };
  }

  /// Joins the steps of a batch into one for profiles, if all of them are multiplications.
  private static List<Step> joined(Gemm gemm, List<Step> steps) {
    return steps.size() > gemm.count()
        ? steps
        : List.of(
            new Step(
                Stage.GEMM,
                0,
                gemm.flops(),
                stream -> steps.forEach(step -> step.launch().on(stream))));
  }

  private Launch unpadded(Gemm gemm, Strategy strategy, Scratch scratch, long workspace) {
    boolean separate = strategy.finish() == Finish.SEPARATE;
    long wideBytes = separate ? wideBytes(gemm.c()) : 0;
    long base = scratch.take(wideBytes + leftBytes(strategy));
    var a = gemm.a();
    var asStored = strategy.leftForm() == LeftForm.AS_STORED;
    long left = asStored ? a.segment().address() : base + wideBytes;
    long right = OperandForms.right(gemm.b()).segment().address();
    var plan =
        chosen
            .computeIfAbsent(
                strategy.problem(), problem -> timer.choose(problem, asStored ? left : 0, right))
            .plan();
    var epilogue = gemm.epilogue();
    float scale = epilogue.scale();
    long bias = epilogue.bias().map(MemorySegment::address).orElse(0L);
    Launch multiply =
        switch (strategy.finish()) {
          case ACTIVATED -> {
            var kept = epilogue.preActivation().orElseThrow();
            long product = kept.segment().address();
            var activate = prepare(new Reduction(List.of(kept), gemm.c(), activation(epilogue)));
            yield stream -> {
              plan.run(stream, scale, left, right, 0, product, product, bias, workspace);
              activate.on(stream);
            };
          }
          case SEPARATE -> {
            var finish = finish(gemm, base);
            yield stream -> {
              plan.run(stream, scale, left, right, 0, base, base, 0, workspace);
              finish.on(stream);
            };
          }
          case FUSED -> {
            float beta = epilogue.accumulate() ? 1 : 0;
            long out = gemm.c().segment().address();
            yield stream -> plan.run(stream, scale, left, right, beta, out, out, bias, workspace);
          }
          case PADDED -> throw new IllegalArgumentException("padded copies take several steps");
        };
    return asStored
        ? multiply
        : lane -> {
          placeLeft(lane, a, strategy, left);
          multiply.on(lane);
        };
  }

  /// Prepares a multiplication of padded copies.
  ///
  /// ```
  /// scratch | product without gaps | product | left | right |
  /// ```
  private List<Step> padded(Gemm gemm, Strategy strategy, Scratch scratch, long workspace) {
    var problem = strategy.problem();
    var a = gemm.a();
    var b = OperandForms.right(gemm.b());
    var c = gemm.c();
    long wideBytes = wideBytes(c);
    long productBytes = Scratch.aligned(AlgorithmTimer.bytes(problem.d()));
    long leftBytes = leftBytes(strategy);
    long copiesBytes = leftBytes + AlgorithmTimer.bytes(problem.b());
    long base = scratch.take(wideBytes + productBytes + copiesBytes);
    long product = base + wideBytes;
    long left = product + productBytes;
    long right = left + leftBytes;
    var plan = chosen.computeIfAbsent(problem, one -> timer.choose(one, 0, 0)).plan();
    float scale = gemm.epilogue().scale();
    var steps = new ArrayList<Step>();
    steps.add(
        new Step(
            Stage.LOCAL,
            count(a) * a.dtype().bytes() + count(b) * b.dtype().bytes(),
            0,
            stream -> {
              stream.fill(left, (byte) 0, copiesBytes);
              placeLeft(stream, a, strategy, left);
              copy(stream, b, problem.b(), right);
            }));
    steps.add(
        new Step(
            Stage.GEMM,
            0,
            gemm.flops(),
            lane -> plan.run(lane, scale, left, right, 0, product, product, 0, workspace)));
    boolean hasGaps = problem.d().stride() > c.columns();
    if (hasGaps) {
      steps.add(
          new Step(
              Stage.LOCAL,
              count(c) * Float.BYTES,
              0,
              queue ->
                  device
                      .kernels()
                      .pack(
                          queue,
                          device.kernels().fullGrid(),
                          base,
                          product,
                          problem.d().stride() * Float.BYTES,
                          (long) c.columns() * Float.BYTES,
                          c.rows())));
    }
    steps.add(new Step(Stage.GEMM, 0, 0, finish(gemm, hasGaps ? base : product)));
    return List.copyOf(steps);
  }

  /// Returns the launch that computes the result from the fp32 product, stored without gaps.
  private Launch finish(Gemm gemm, long product) {
    var c = gemm.c();
    var memory = CudaDevice.view(product, count(c) * Float.BYTES, Arena.global());
    var wide = Matrix.of(memory, DType.FP32, c.rows(), c.columns());
    return prepare(new Reduction(List.of(wide), c, gemm.epilogue().scaled(1)));
  }

  /// Returns what is left to do with a pre-activation.
  private static Epilogue activation(Epilogue epilogue) {
    return new Epilogue(
        1, false, Optional.empty(), epilogue.preActivation(), epilogue.amax(), epilogue.outScale());
  }

  /// Prepares a sum, added in fp32 in the order of the parts, and rounded once.
  public Launch prepare(Reduction reduction) {
    if (reduction.out().rows() == 0) {
      return Launch.NOTHING;
    }
    var kernels = device.kernels();
    var arguments = Arguments.of(reduction);
    return stream -> kernels.reduce(stream, kernels.fullGrid(), arguments);
  }

  /// Updates the operand's second form, if it has one.
  public void refresh(GpuStream stream, Operand operand) {
    operand
        .widened()
        .ifPresent(
            memory -> {
              var source = operand.source();
              if (OperandForms.isTransposedForm(operand)) {
                device
                    .kernels()
                    .transpose(
                        stream,
                        memory.segment().address(),
                        source.segment().address(),
                        source.stride(),
                        source.rows(),
                        source.columns());
              } else {
                widen(stream, source, memory.segment().address(), OperandForms.wideStride(source));
              }
            });
  }

  private void widen(GpuStream stream, Matrix source, long to, long toStride) {
    device
        .kernels()
        .widenFp16(
            stream,
            to,
            toStride,
            source.segment().address(),
            source.stride(),
            Arguments.type(source.dtype()),
            OperandForms.storedRows(source),
            OperandForms.storedColumns(source));
  }

  /// Copies stored rows to the strides of the layout.
  private void copy(GpuStream stream, Matrix source, Lt.Layout layout, long to) {
    int bytes = source.dtype().bytes();
    device
        .kernels()
        .copyRows(
            stream,
            device.kernels().fullGrid(),
            to,
            layout.stride() * bytes,
            source.segment().address(),
            (long) source.stride() * bytes,
            OperandForms.storedColumns(source) * bytes,
            OperandForms.storedRows(source));
  }

  private Strategy strategy(Gemm gemm, int reserved, boolean padded) {
    var a = gemm.a();
    var b = OperandForms.right(gemm.b());
    var leftForm = leftForm(a, b);
    var left =
        switch (leftForm) {
          case AS_STORED -> layout(type(a.dtype(), b.dtype()), a, a.stride());
          case TRANSPOSED ->
              new Lt.Layout(type(a.dtype()), a.rows(), a.columns(), a.columns(), false);
          case WIDENED ->
              new Lt.Layout(
                  Lt.Type.FP16, a.rows(), a.columns(), OperandForms.wideStride(a), a.transposed());
        };
    var right = layout(type(b.dtype(), a.dtype()), b, b.stride());
    var c = gemm.c();
    int target = reserved == 0 ? 0 : Math.max(1, device.gpu().multiprocessors() - reserved);
    var epilogue = gemm.epilogue();
    boolean activates = epilogue.preActivation().isPresent();
    var product = epilogue.preActivation().orElse(c);
    // Only our own kernel scales when it stores fp8, and takes the amax.
    boolean ours = product.dtype().isFp8() || (epilogue.amax().isPresent() && !activates);
    if (!padded && !ours && !(activates && epilogue.accumulate()) && !roundsBias(gemm, product)) {
      var batched = gemm.count() > 1 && leftForm == LeftForm.AS_STORED && !activates;
      var fused =
          new Lt.Problem(
              left,
              right,
              layout(result(product.dtype(), left.type()), product, product.stride()),
              epilogue.bias().isPresent(),
              target,
              batched ? gemm.count() : 1,
              batched ? (long) gemm.aStep() * a.stride() : 0,
              0,
              batched ? (long) gemm.cStep() * product.stride() : 0);
      if (isSupported(fused)) {
        return new Strategy(fused, leftForm, activates ? Finish.ACTIVATED : Finish.FUSED);
      }
    }
    var wide =
        new Lt.Layout(
            left.type() == Lt.Type.TF32 ? Lt.Type.TF32 : Lt.Type.FP32,
            c.rows(),
            c.columns(),
            c.columns(),
            false);
    var separate = plain(left, right, wide, target);
    return !padded && isSupported(separate)
        ? new Strategy(separate, leftForm, Finish.SEPARATE)
        : new Strategy(
            plain(padded(left), padded(right), padded(wide), target), leftForm, Finish.PADDED);
  }

  /// Returns true if cublasLt may round a product before it adds the bias: its algorithms do so in
  /// 16 bits if they also accumulate, or if sizes are no multiples of 16 bytes. Those that only
  /// accumulate may round before that too: docs/verification.md
  private static boolean roundsBias(Gemm gemm, Matrix product) {
    var epilogue = gemm.epilogue();
    boolean unaligned =
        !(aligned(gemm.a()) && aligned(OperandForms.right(gemm.b())) && aligned(product));
    return epilogue.bias().isPresent()
        && !product.dtype().isStoredAsFp32()
        && (epilogue.accumulate() || unaligned);
  }

  /// Returns true if rows begin at multiples of 16 bytes, as tensor core kernels require.
  private static boolean aligned(Matrix matrix) {
    return matrix.segment().address() % ALIGNMENT_BYTES == 0
        && (long) matrix.stride() * matrix.dtype().bytes() % ALIGNMENT_BYTES == 0;
  }

  private static Lt.Problem plain(Lt.Layout a, Lt.Layout b, Lt.Layout d, int target) {
    return new Lt.Problem(a, b, d, false, target, 1, 0, 0, 0);
  }

  /// Returns the layout with sizes and stride rounded up to multiples of 16 bytes.
  private static Lt.Layout padded(Lt.Layout layout) {
    int rows = Math.toIntExact(OperandForms.up(layout.rows()));
    int columns = Math.toIntExact(OperandForms.up(layout.columns()));
    return new Lt.Layout(
        layout.type(), rows, columns, layout.transposed() ? rows : columns, layout.transposed());
  }

  private boolean isSupported(Lt.Problem problem) {
    if (chosen.containsKey(problem)) {
      return true;
    }
    return refusals.computeIfAbsent(problem, one -> lt.cannot(one).orElse("")).isEmpty();
  }

  private static LeftForm leftForm(Matrix a, Matrix right) {
    if (!a.dtype().isFp8()) {
      return LeftForm.AS_STORED;
    }
    if (!right.dtype().isFp8()) {
      return LeftForm.WIDENED;
    }
    return a.transposed() ? LeftForm.TRANSPOSED : LeftForm.AS_STORED;
  }

  /// Copies the left side to `to`, in the form in which it is multiplied.
  private void placeLeft(GpuStream stream, Matrix a, Strategy strategy, long to) {
    var layout = strategy.problem().a();
    switch (strategy.leftForm()) {
      case AS_STORED -> copy(stream, a, layout, to);
      case WIDENED -> widen(stream, a, to, layout.stride());
      // Rows of fp8 are multiples of 16 bytes here, so there are no gaps.
      case TRANSPOSED ->
          device
              .kernels()
              .transpose(
                  stream,
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

  /// Size of the left side's copy, if it needs one.
  private static long leftBytes(Strategy strategy) {
    return strategy.leftForm() == LeftForm.AS_STORED && strategy.finish() != Finish.PADDED
        ? 0
        : Scratch.aligned(AlgorithmTimer.bytes(strategy.problem().a()));
  }

  private static long count(Matrix matrix) {
    return (long) matrix.rows() * matrix.columns();
  }

  /// Alignment of a matrix. If stored by columns, its rows may begin at any number; otherwise the
  /// stride determines it.
  private static int alignment(Matrix matrix) {
    return matrix.transposed()
        ? (int) Long.lowestOneBit(matrix.segment().address() | Lt.Layout.MOST_ALIGNMENT_BYTES)
        : Lt.Layout.MOST_ALIGNMENT_BYTES;
  }

  private static Lt.Layout layout(Lt.Type type, Matrix matrix, long stride) {
    return new Lt.Layout(
        type, matrix.rows(), matrix.columns(), stride, matrix.transposed(), alignment(matrix));
  }

  /// Type in which a side is multiplied with the other: tf32 with fp32 is multiplied in fp32.
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

  /// Number of algorithms chosen so far that were read from disk, or that this process measured.
  public long choices(boolean fromDisk) {
    return chosen.values().stream().filter(choice -> choice.fromDisk() == fromDisk).count();
  }

  @Override
  public void close() {
    var parts = new ArrayDeque<AutoCloseable>();
    chosen.values().forEach(choice -> parts.add(choice.plan()));
    chosen.clear();
    parts.add(timer);
    Closing.all(parts::poll);
  }
}
