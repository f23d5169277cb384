package braid.natives.blaslt;

import braid.natives.blaslt.Lt.Layout;
import braid.natives.blaslt.Lt.Problem;
import braid.natives.cuda.Address;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.bytedeco.cuda.cublas.cublasLtMatmulAlgo_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulDescOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulHeuristicResult_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulPreferenceOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatrixLayoutOpaque_t;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/// A problem in cublasLt's descriptors. cublasLt is column-major: our rows are its columns. So it
/// computes dᵀ = bᵀ · aᵀ with our b as its first factor, and row-major operands need no
/// transposition.
final class Descriptors implements AutoCloseable {
  /// Placeholder address of the bias when an algorithm is requested: cublasLt only looks at its
  /// alignment, 16 bytes.
  private static final long PLACEHOLDER = 0x10010;

  private static final long PLACEHOLDER_ALIGNMENT_BYTES = 16;

  private static final long ALPHA = 0;
  private static final long BETA = 8;
  private static final long ATTRIBUTE = 16;
  private static final long SCRATCH_BYTES = 32;

  private final Lt lt;
  private final Problem problem;
  private final cublasLtMatmulDescOpaque_t multiplication;
  private final cublasLtMatrixLayoutOpaque_t a;
  private final cublasLtMatrixLayoutOpaque_t b;
  private final cublasLtMatrixLayoutOpaque_t c;
  private final cublasLtMatrixLayoutOpaque_t d;

  private final MemorySegment scratch = Arena.ofAuto().allocate(SCRATCH_BYTES, Long.BYTES);
  private final Address alphaAt = new Address(scratch.address() + ALPHA);
  private final Address betaAt = new Address(scratch.address() + BETA);
  private final Address attributeAt = new Address(scratch.address() + ATTRIBUTE);
  private final Address aAt = new Address();
  private final Address bAt = new Address();
  private final Address cAt = new Address();
  private final Address dAt = new Address();
  private final Address workspaceAt = new Address();
  private long biasSet;

  Descriptors(Lt lt, Problem problem) {
    this.lt = lt;
    this.problem = problem;
    this.multiplication = multiplication();
    this.a = layout(problem.a(), problem.a().type(), problem.batchStrideA());
    this.b = layout(problem.b(), problem.b().type(), problem.batchStrideB());
    this.c = layout(problem.d(), addend(), problem.batchStrideD());
    this.d = layout(problem.d(), problem.d().type(), problem.batchStrideD());
  }

  /// Requests up to `most` algorithms and returns their number. Algorithms that split the depth add
  /// the parts in fp32: in the output's type each part would be rounded.
  int heuristic(cublasLtMatmulHeuristicResult_t found, int most, long workspaceBytes) {
    lt.gpu().use();
    var created = new PointerPointer<Pointer>(1);
    try (created) {
      lt.check("cublasLtMatmulPreferenceCreate", cublas.cublasLtMatmulPreferenceCreate(created));
      var preference = new cublasLtMatmulPreferenceOpaque_t(created.get(Pointer.class, 0));
      try {
        prefer(preference, cublas.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes, 8);
        prefer(
            preference,
            cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            problem.b().alignmentBytes(problem.batchStrideB()),
            4);
        prefer(
            preference,
            cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            problem.a().alignmentBytes(problem.batchStrideA()),
            4);
        var ofD = problem.d().alignmentBytes(problem.batchStrideD());
        prefer(preference, cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, ofD, 4);
        prefer(preference, cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, ofD, 4);
        prefer(
            preference,
            cublas.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
            cublas.CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
            4);
        var count = new int[1];
        int status =
            cublas.cublasLtMatmulAlgoGetHeuristic(
                lt.context(), multiplication, b, a, c, d, preference, most, found, count);
        if (status == cublas.CUBLAS_STATUS_NOT_SUPPORTED) {
          return 0;
        }
        lt.check("cublasLtMatmulAlgoGetHeuristic", status);
        return count[0];
      } finally {
        lt.check(
            "cublasLtMatmulPreferenceDestroy", cublas.cublasLtMatmulPreferenceDestroy(preference));
      }
    }
  }

  /// Returns true if this cublasLt can solve the problem by that algorithm; `needs` then holds its
  /// workspace.
  boolean supports(cublasLtMatmulAlgo_t algorithm, cublasLtMatmulHeuristicResult_t needs) {
    lt.gpu().use();
    return cublas.cublasLtMatmulAlgoCheck(
            lt.context(), multiplication, b, a, c, d, algorithm, needs)
        == cublas.CUBLAS_STATUS_SUCCESS;
  }

  private void prefer(
      cublasLtMatmulPreferenceOpaque_t preference, int attribute, long value, int bytes) {
    scratch.set(ValueLayout.JAVA_LONG, ATTRIBUTE, value); // its low bytes come first
    lt.check(
        "cublasLtMatmulPreferenceSetAttribute",
        cublas.cublasLtMatmulPreferenceSetAttribute(preference, attribute, attributeAt, bytes));
  }

  /// Runs the multiplication. Synchronized, because the bias is set in the descriptor, which is
  /// only read during the call.
  synchronized void run(
      GpuStream stream,
      cublasLtMatmulAlgo_t algorithm,
      long workspaceBytes,
      float alpha,
      long a,
      long b,
      float beta,
      long c,
      long d,
      long bias,
      long workspace) {
    if (problem.bias() && bias != biasSet) {
      setBias(bias);
    }
    if (beta != 0 && addend() != problem.d().type()) {
      throw new IllegalArgumentException(
          "beta must be 0 for a result in %s, which cannot be accumulated into, but is %s"
              .formatted(problem.d().type(), beta));
    }
    scratch.set(ValueLayout.JAVA_FLOAT, ALPHA, alpha);
    scratch.set(ValueLayout.JAVA_FLOAT, BETA, beta);
    lt.check(
        "cublasLtMatmul",
        cublas.cublasLtMatmul(
            lt.context(),
            multiplication,
            alphaAt,
            bAt.to(b),
            this.b,
            aAt.to(a),
            this.a,
            betaAt,
            cAt.to(beta != 0 ? c : addend() == problem.d().type() ? d : 0),
            this.c,
            dAt.to(d),
            this.d,
            algorithm,
            workspaceAt.to(workspace),
            workspaceBytes,
            stream.pointer()));
  }

  private void setBias(long address) {
    if (address == 0 || address % PLACEHOLDER_ALIGNMENT_BYTES != 0) {
      throw new IllegalArgumentException(
          "the bias is at 0x%x and must be at a multiple of %d bytes"
              .formatted(address, PLACEHOLDER_ALIGNMENT_BYTES));
    }
    set(multiplication, cublas.CUBLASLT_MATMUL_DESC_BIAS_POINTER, address, Long.BYTES);
    biasSet = address;
  }

  private cublasLtMatmulDescOpaque_t multiplication() {
    try (var created = new PointerPointer<Pointer>(1)) {
      lt.check(
          "cublasLtMatmulDescCreate",
          cublas.cublasLtMatmulDescCreate(created, compute(), cudart.CUDA_R_32F));
      var made = new cublasLtMatmulDescOpaque_t(created.get(Pointer.class, 0));
      set(made, cublas.CUBLASLT_MATMUL_DESC_TRANSA, operation(problem.b()), Integer.BYTES);
      set(made, cublas.CUBLASLT_MATMUL_DESC_TRANSB, operation(problem.a()), Integer.BYTES);
      if (problem.bias()) {
        set(
            made,
            cublas.CUBLASLT_MATMUL_DESC_EPILOGUE,
            cublas.CUBLASLT_EPILOGUE_BIAS,
            Integer.BYTES);
        set(made, cublas.CUBLASLT_MATMUL_DESC_BIAS_POINTER, PLACEHOLDER, Long.BYTES);
        set(made, cublas.CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, addend().code(), Integer.BYTES);
      }
      if (problem.smTarget() != 0) {
        set(made, cublas.CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, problem.smTarget(), Integer.BYTES);
      }
      return made;
    }
  }

  private void set(cublasLtMatmulDescOpaque_t descriptor, int attribute, long value, int bytes) {
    scratch.set(ValueLayout.JAVA_LONG, ATTRIBUTE, value); // its low bytes come first
    lt.check(
        "cublasLtMatmulDescSetAttribute",
        cublas.cublasLtMatmulDescSetAttribute(descriptor, attribute, attributeAt, bytes));
  }

  private cublasLtMatrixLayoutOpaque_t layout(Layout layout, Lt.Type type, long batchStride) {
    try (var created = new PointerPointer<Pointer>(1)) {
      lt.check(
          "cublasLtMatrixLayoutCreate",
          cublas.cublasLtMatrixLayoutCreate(
              created, type.code(), layout.storedColumns(), layout.storedRows(), layout.stride()));
      var made = new cublasLtMatrixLayoutOpaque_t(created.get(Pointer.class, 0));
      if (problem.batch() > 1) {
        set(made, cublas.CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, problem.batch(), Integer.BYTES);
        set(made, cublas.CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batchStride, Long.BYTES);
      }
      return made;
    }
  }

  private void set(cublasLtMatrixLayoutOpaque_t descriptor, int attribute, long value, int bytes) {
    scratch.set(ValueLayout.JAVA_LONG, ATTRIBUTE, value); // its low bytes come first
    lt.check(
        "cublasLtMatrixLayoutSetAttribute",
        cublas.cublasLtMatrixLayoutSetAttribute(descriptor, attribute, attributeAt, bytes));
  }

  private static int operation(Layout layout) {
    return layout.transposed() ? cublas.CUBLAS_OP_T : cublas.CUBLAS_OP_N;
  }

  private int compute() {
    return problem.a().type() == Lt.Type.TF32
        ? cublas.CUBLAS_COMPUTE_32F_FAST_TF32
        : cublas.CUBLAS_COMPUTE_32F;
  }

  /// Type of c and of the bias: the type of d, or BF16 if d is fp8.
  private Lt.Type addend() {
    return problem.d().type().isFp8() ? Lt.Type.BF16 : problem.d().type();
  }

  @Override
  public void close() {
    lt.check("cublasLtMatmulDescDestroy", cublas.cublasLtMatmulDescDestroy(multiplication));
    for (var layout : new cublasLtMatrixLayoutOpaque_t[] {a, b, c, d}) {
      lt.check("cublasLtMatrixLayoutDestroy", cublas.cublasLtMatrixLayoutDestroy(layout));
    }
  }
}
