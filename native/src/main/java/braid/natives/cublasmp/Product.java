package braid.natives.cublasmp;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.cublasmp.CublasMp.Operation;
import braid.natives.cublasmp.CublasMp.Shape;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// A GEMM with its collective, ready to be enqueued any number of times. Every rank makes the same
/// calls in the same order. Needs `use` first, unless the workspace has 0 bytes. For one thread.
public final class Product implements AutoCloseable {
  private static final int TRANSPOSE_WEIGHT = 0;
  private static final int TRANSPOSE_INPUT = 1;
  private static final int ALGORITHM = 3;
  private static final int WORKERS = 4;
  private static final int EPILOGUE = 5;
  private static final int SUM_TYPE = 27;

  private static final int PLAIN = 0;
  private static final int TRANSPOSED = 1;
  private static final int ALL_REDUCE_EPILOGUE = 1;
  private static final int COMPUTE_IN_FP32 = 68;

  /// Indices are counted from 1: every product is of whole matrices.
  private static final long FIRST = 1;

  private static final long NONE = 0;
  private static final long HOST_ALIGNMENT_BYTES = 256;

  private final CublasMp library;
  private final CublasMpCalls calls;
  private final ProductLayout layout;
  private final ReleaseStack releases = new ReleaseStack();
  private final MemorySegment alpha;
  private final MemorySegment beta;
  private final long weight;
  private final long input;
  private final long output;
  private final long matmul;
  private final long workspaceBytes;
  private final MemorySegment hostWorkspace;
  private long workspace = NONE;
  private boolean closed;

  Product(CublasMp library, Shape shape, ProductLayout layout) {
    this.library = library;
    this.layout = layout;
    calls = library.calls();
    var arena = Arena.ofShared();
    releases.push(arena::close);
    try {
      alpha = arena.allocateFrom(JAVA_FLOAT, 1);
      beta = arena.allocateFrom(JAVA_FLOAT, 0);
      int type = shape.type().number();
      weight = matrix(layout.weight(), type);
      input = matrix(layout.input(), type);
      output = matrix(layout.output(), type);
      long created =
          library.create(
              "cublasMpMatmulDescriptorCreate",
              slot -> (int) calls.createMatmul.invokeExact(slot, COMPUTE_IN_FP32));
      matmul = created;
      releases.push(
          () ->
              library.call(
                  "cublasMpMatmulDescriptorDestroy",
                  () -> (int) calls.destroyMatmul.invokeExact(created)));
      attributes(created, shape);
      var sizes = arena.allocate(JAVA_LONG, 2);
      workspaceSizes(sizes, sizes.asSlice(JAVA_LONG.byteSize()));
      workspaceBytes = sizes.getAtIndex(JAVA_LONG, 0);
      long hostBytes = sizes.getAtIndex(JAVA_LONG, 1);
      hostWorkspace =
          hostBytes == 0 ? MemorySegment.NULL : arena.allocate(hostBytes, HOST_ALIGNMENT_BYTES);
    } catch (RuntimeException | Error e) {
      releases.closeAfter(e);
      throw e;
    }
  }

  private long matrix(ProductLayout.Matrix matrix, int type) {
    long grid = library.grid(matrix.grid());
    long firstRank = 0;
    long created =
        library.create(
            "cublasMpMatrixDescriptorCreate",
            slot ->
                (int)
                    calls.createMatrix.invokeExact(
                        matrix.rows(),
                        matrix.columns(),
                        matrix.blockRows(),
                        matrix.blockColumns(),
                        firstRank,
                        firstRank,
                        matrix.lead(),
                        type,
                        grid,
                        slot));
    releases.push(
        () ->
            library.call(
                "cublasMpMatrixDescriptorDestroy",
                () -> (int) calls.destroyMatrix.invokeExact(created)));
    return created;
  }

  private void attributes(long descriptor, Shape shape) {
    set(descriptor, TRANSPOSE_WEIGHT, shape.weightTransposed() ? TRANSPOSED : PLAIN);
    set(descriptor, TRANSPOSE_INPUT, PLAIN);
    set(descriptor, ALGORITHM, shape.algorithm().number());
    if (shape.workers() > 0) {
      set(descriptor, WORKERS, shape.workers());
    }
    if (shape.operation() == Operation.REDUCE_SCATTER) {
      set(descriptor, SUM_TYPE, shape.type().number());
    }
    if (shape.operation() == Operation.ALL_REDUCE) {
      set(descriptor, EPILOGUE, ALL_REDUCE_EPILOGUE);
    }
  }

  private void set(long descriptor, int attribute, int value) {
    try (var arena = Arena.ofConfined()) {
      var slot = arena.allocateFrom(JAVA_INT, value);
      library.call(
          "cublasMpMatmulDescriptorSetAttribute",
          () -> (int) calls.setAttribute.invokeExact(descriptor, attribute, slot, slot.byteSize()));
    }
  }

  /// Stores both sizes in bytes. They do not depend on the operands' addresses.
  private void workspaceSizes(MemorySegment device, MemorySegment host) {
    library.call(
        "cublasMpMatmul_bufferSize",
        () ->
            (int)
                calls.workspaceSizes.invokeExact(
                    library.handle(),
                    matmul,
                    layout.features(),
                    layout.tokens(),
                    layout.depth(),
                    alpha,
                    NONE,
                    FIRST,
                    FIRST,
                    weight,
                    NONE,
                    FIRST,
                    FIRST,
                    input,
                    beta,
                    NONE,
                    FIRST,
                    FIRST,
                    NONE,
                    NONE,
                    FIRST,
                    FIRST,
                    output,
                    device,
                    host));
  }

  /// Device memory that the product needs, in bytes.
  public long workspaceBytes() {
    return workspaceBytes;
  }

  /// Registers device memory of `workspaceBytes` for all enqueues, once. It must not be freed
  /// before close. Every rank does this. Has no effect if no memory is needed.
  ///
  /// @throws GpuError if the memory cannot be registered
  public void use(long workspace) {
    requireOpen();
    if (this.workspace != NONE) {
      throw new IllegalStateException(
          "the product on " + library.place() + " has a workspace; prepare another product");
    }
    if (workspaceBytes == 0) {
      return;
    }
    long grid = library.grid(layout.output().grid());
    CublasMpCalls.call(
        "cublasMpBufferRegister",
        library.place(),
        "without a registered workspace cuBLASMp would silently not overlap; take"
            + " over(COPY_ENGINE)",
        () -> (int) calls.register.invokeExact(grid, workspace, workspaceBytes));
    releases.push(
        () ->
            library.call(
                "cublasMpBufferDeregister",
                () -> (int) calls.deregister.invokeExact(grid, workspace)));
    this.workspace = workspace;
  }

  /// Enqueues the product of operands in device memory.
  public void enqueue(long weight, long input, long output, GpuStream stream) {
    enqueue(weight, input, output, stream.address());
  }

  void enqueue(long weightAddress, long inputAddress, long outputAddress, long stream) {
    requireOpen();
    if (workspace == NONE && workspaceBytes > 0) {
      throw new IllegalStateException(
          "the product on %s has no workspace; call use with %d bytes of device memory"
              .formatted(library.place(), workspaceBytes));
    }
    library.direct(stream);
    library.call(
        "cublasMpMatmul",
        () ->
            (int)
                calls.matmul.invokeExact(
                    library.handle(),
                    matmul,
                    layout.features(),
                    layout.tokens(),
                    layout.depth(),
                    alpha,
                    weightAddress,
                    FIRST,
                    FIRST,
                    weight,
                    inputAddress,
                    FIRST,
                    FIRST,
                    input,
                    beta,
                    NONE,
                    FIRST,
                    FIRST,
                    NONE,
                    outputAddress,
                    FIRST,
                    FIRST,
                    output,
                    workspace,
                    workspaceBytes,
                    hostWorkspace,
                    hostWorkspace.byteSize()));
  }

  private void requireOpen() {
    library.requireOpen();
    if (closed) {
      throw new IllegalStateException("the product on " + library.place() + " is closed");
    }
  }

  /// Deregisters the workspace and destroys the descriptors. Enqueued work must be complete.
  /// Further calls have no effect.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      library.forget(this);
      releases.close();
    }
  }
}
