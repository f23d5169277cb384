package braid.natives.blaslt;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.cublas.cublasLtMatmulAlgo_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulHeuristicResult_t;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;

/// cublasLt on one GPU, for row-major matrices: `d = alpha · a · b + beta · c`. Thread-safe.
public final class Lt implements AutoCloseable {
  /// Largest workspace that Hopper's algorithms use.
  public static final long WORKSPACE_BYTES = 32L << 20;

  private static final int ALGORITHM_WORDS = 8;
  private static final int HEX_DIGITS_OF_WORD = 2 * Long.BYTES;

  /// Length of an algorithm's serialized form.
  static final int ALGORITHM_HEX_DIGITS = ALGORITHM_WORDS * HEX_DIGITS_OF_WORD;

  private final Gpu gpu;
  private final cublasLtContext context;
  private final String build;
  private boolean closed;

  private Lt(Gpu gpu, cublasLtContext context, String build) {
    this.gpu = gpu;
    this.context = context;
    this.build = build;
  }

  /// Loads the library and creates a context on this GPU.
  public static Lt open(Gpu gpu) {
    var library = Libraries.require(Library.CUBLAS_LT);
    gpu.use();
    var context = new cublasLtContext();
    check(gpu, "cublasLtCreate", cublas.cublasLtCreate(context));
    return new Lt(gpu, context, library.version());
  }

  /// Storage type of numbers, and for fp32 also the precision of multiplication: TF32 is stored as
  /// fp32.
  public enum Type {
    FP32(cudart.CUDA_R_32F, Float.BYTES),
    TF32(cudart.CUDA_R_32F, Float.BYTES),
    BF16(cudart.CUDA_R_16BF, Short.BYTES),
    FP16(cudart.CUDA_R_16F, Short.BYTES),
    E4M3(cudart.CUDA_R_8F_E4M3, Byte.BYTES),
    E5M2(cudart.CUDA_R_8F_E5M2, Byte.BYTES);

    private final int code;
    private final int bytes;

    Type(int code, int bytes) {
      this.code = code;
      this.bytes = bytes;
    }

    int code() {
      return code;
    }

    int bytes() {
      return bytes;
    }

    boolean isFp8() {
      return bytes == Byte.BYTES;
    }
  }

  /// A matrix stored by rows that begin `stride` numbers apart. A `transposed` matrix is stored by
  /// columns: as `columns` rows of `rows` numbers.
  ///
  /// @param alignmentBytes power of two that divides the first address; later rows may be aligned
  ///   less
  public record Layout(
      Type type, int rows, int columns, long stride, boolean transposed, int alignmentBytes) {
    /// Largest alignment that matters to cublasLt.
    public static final int MOST_ALIGNMENT_BYTES = 256;

    /// Layout of memory that begins at an allocation's start.
    public Layout(Type type, int rows, int columns, long stride, boolean transposed) {
      this(type, rows, columns, stride, transposed, MOST_ALIGNMENT_BYTES);
    }

    int storedRows() {
      return transposed ? columns : rows;
    }

    int storedColumns() {
      return transposed ? rows : columns;
    }

    /// Alignment of every row: a part may begin at any row, and a batch continues after its stride.
    int alignmentBytes(long batchStride) {
      long all = alignmentBytes | (stride * type.bytes) | (batchStride * type.bytes);
      return (int) Long.lowestOneBit(all);
    }

    @Override
    public String toString() {
      return "%s %s%s %d apart".formatted(type, size(), transposed ? " by columns" : "", stride);
    }

    String size() {
      return "%d x %d".formatted(rows, columns);
    }
  }

  /// A multiplication. `bias` adds a number to each column, in d's type (BF16 if d is fp8).
  /// `smTarget` is the number of multiprocessors to plan for, 0 for all. Batch strides count
  /// numbers.
  public record Problem(
      Layout a,
      Layout b,
      Layout d,
      boolean bias,
      int smTarget,
      int batch,
      long batchStrideA,
      long batchStrideB,
      long batchStrideD) {
    @Override
    public String toString() {
      return "%s times %s to %s%s%s%s"
          .formatted(
              a,
              b,
              d,
              bias ? ", bias" : "",
              batch > 1 ? ", batch of " + batch : "",
              smTarget > 0 ? ", on %d multiprocessors".formatted(smTarget) : "");
    }
  }

  /// Returns why cublasLt cannot solve the problem, by its rules or on this GPU.
  private Optional<String> refusal(Problem problem) {
    return Rules.cannot(problem)
        .or(() -> Rules.cannot(problem, Feature.capability(gpu.architecture())));
  }

  /// Returns why cublasLt cannot solve the problem, in one line; empty if it can. Requests an
  /// algorithm after the rules are checked.
  public Optional<String> cannot(Problem problem) {
    var rule = refusal(problem);
    if (rule.isPresent()) {
      return rule;
    }
    try (var prepared = new Descriptors(this, problem);
        var found = new cublasLtMatmulHeuristicResult_t(1)) {
      return prepared.heuristic(found, 1, WORKSPACE_BYTES) > 0
          ? Optional.empty()
          : Optional.of("cublasLt %d has no algorithm for %s".formatted(version(), problem));
    }
  }

  /// Returns up to `most` plans that fit the workspace, best first by cublasLt's heuristic; at
  /// least one, else it throws. The caller closes each.
  public List<Plan> candidates(Problem problem, int most, long workspaceBytes) {
    refusal(problem)
        .ifPresent(
            reason -> {
              throw new IllegalArgumentException(reason);
            });
    var plans = new ArrayList<Plan>();
    try (var descriptors = new Descriptors(this, problem);
        var found = new cublasLtMatmulHeuristicResult_t(most)) {
      int count = descriptors.heuristic(found, most, workspaceBytes);
      for (int i = 0; i < count; i++) {
        var one = found.getPointer(i);
        if (one.state() == cublas.CUBLAS_STATUS_SUCCESS) {
          plans.add(new Plan(problem, one.algo(), one));
        }
      }
    }
    if (plans.isEmpty()) {
      throw error(
          gpu,
          "cublasLtMatmulAlgoGetHeuristic for " + problem,
          cublas.CUBLAS_STATUS_NOT_SUPPORTED,
          "give it more workspace, or sizes and strides in multiples of 16 bytes");
    }
    return plans;
  }

  /// Returns the plan of an algorithm that this same version of cublasLt serialized before; other
  /// versions cannot read it. Empty if it does not solve the problem within the workspace. The
  /// caller closes it.
  public Optional<Plan> restored(Problem problem, String algorithm, long workspaceBytes) {
    if (Rules.cannot(problem).isPresent()) {
      return Optional.empty();
    }
    try (var descriptors = new Descriptors(this, problem);
        var restored = parsed(algorithm);
        var needs = new cublasLtMatmulHeuristicResult_t(1)) {
      return descriptors.supports(restored, needs) && needs.workspaceSize() <= workspaceBytes
          ? Optional.of(new Plan(problem, restored, needs))
          : Optional.empty();
    }
  }

  private static cublasLtMatmulAlgo_t parsed(String algorithm) {
    if (algorithm.length() != ALGORITHM_HEX_DIGITS) {
      throw new IllegalArgumentException(
          "an algorithm has %d hexadecimal digits but this has %d: %s"
              .formatted(ALGORITHM_HEX_DIGITS, algorithm.length(), algorithm));
    }
    var restored = new cublasLtMatmulAlgo_t();
    for (int i = 0; i < ALGORITHM_WORDS; i++) {
      int index = i * HEX_DIGITS_OF_WORD;
      restored.data(i, HexFormat.fromHexDigitsToLong(algorithm, index, index + HEX_DIGITS_OF_WORD));
    }
    return restored;
  }

  /// Version of the library as its number and as its file name has it.
  public String build() {
    return version() + " " + build;
  }

  /// Version number of the library: 130100 is 13.1.0.
  public int version() {
    return (int) cublas.cublasLtGetVersion();
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.use();
      check("cublasLtDestroy", cublas.cublasLtDestroy(context));
    }
  }

  Gpu gpu() {
    return gpu;
  }

  cublasLtContext context() {
    return context;
  }

  void check(String call, int status) {
    check(gpu, call, status);
  }

  private static void check(Gpu gpu, String call, int status) {
    if (status != cublas.CUBLAS_STATUS_SUCCESS) {
      throw error(gpu, call, status, remedy(status));
    }
  }

  private static GpuError error(Gpu gpu, String call, int status, String remedy) {
    return new GpuError(
        call,
        status,
        cublas.cublasLtGetStatusName(status).getString(),
        cublas.cublasLtGetStatusString(status).getString(),
        gpu.where(),
        remedy);
  }

  private static String remedy(int status) {
    return switch (status) {
      case cublas.CUBLAS_STATUS_NOT_INITIALIZED, cublas.CUBLAS_STATUS_ALLOC_FAILED ->
          "free memory on the device";
      case cublas.CUBLAS_STATUS_INVALID_VALUE, cublas.CUBLAS_STATUS_NOT_SUPPORTED ->
          "align every address as its strides require";
      case cublas.CUBLAS_STATUS_EXECUTION_FAILED ->
          "earlier work on this device may have failed; restart the ranks";
      default -> "";
    };
  }

  /// A problem with an algorithm. Its descriptors are created once and reused.
  public final class Plan implements AutoCloseable {
    private final Descriptors descriptors;
    private final cublasLtMatmulAlgo_t algorithm = new cublasLtMatmulAlgo_t();
    private final long workspaceBytes;
    private boolean closed;

    private Plan(
        Problem problem, cublasLtMatmulAlgo_t algorithm, cublasLtMatmulHeuristicResult_t needs) {
      this.descriptors = new Descriptors(Lt.this, problem);
      Pointer.memcpy(this.algorithm, algorithm, algorithm.sizeof());
      this.workspaceBytes = needs.workspaceSize();
    }

    /// Enqueues the multiplication. Addresses are in the order of the formula. `c` must be d if
    /// beta is not 0. Absent operands are 0. `workspace` has at least the bytes that the plan may
    /// use.
    public void run(
        GpuStream stream,
        float alpha,
        long a,
        long b,
        float beta,
        long c,
        long d,
        long bias,
        long workspace) {
      gpu.use();
      descriptors.run(stream, algorithm, workspaceBytes, alpha, a, b, beta, c, d, bias, workspace);
    }

    /// Serialized form of the algorithm, for [Lt#restored].
    public String algorithm() {
      var digits = new StringBuilder();
      for (int i = 0; i < ALGORITHM_WORDS; i++) {
        digits.append(HexFormat.of().toHexDigits(algorithm.data(i)));
      }
      return digits.toString();
    }

    /// Workspace that this algorithm needs.
    long workspaceBytes() {
      return workspaceBytes;
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        descriptors.close();
        algorithm.close();
      }
    }
  }
}
