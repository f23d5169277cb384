package braid.internal.cuda.library;

import braid.internal.cuda.device.Communicators;
import braid.internal.cuda.device.SharedCommunicators;
import braid.internal.library.LibraryCall;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryProduct;
import braid.internal.library.LibraryRequest;
import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.work.Matrix;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.natives.cublasmp.CublasMp;
import braid.natives.cublasmp.Product;
import braid.natives.cuda.GpuStream;
import braid.natives.nccl.NcclCommunicator;
import braid.natives.nccl.NcclMemory;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Multiplications with their collectives by cuBLASMp, one call each. Not tried on GPUs: a test
/// checks the calls with a stub of the library.
///
/// The library cannot abort its calls. What belongs to an aborted communicator is left behind, and
/// the ranks set up the library again in the next epoch.
public final class CublasMpProducts implements LibraryCollectives {
  /// True while a pipeline of this rank uses the library, which allows one handle per process and
  /// GPU.
  private static final AtomicBoolean IN_USE = new AtomicBoolean();

  private final Communicators communicators;
  private final Waits waits;
  private final Supplier<Rendezvous> rendezvous;

  /// What was set up with the communicator, closed from the end on.
  private final Deque<AutoCloseable> parts = new ArrayDeque<>();

  private final Map<LibraryProduct, Product> products = new HashMap<>();
  private @Nullable CublasMp library;
  private SharedCommunicators.Lease<NcclCommunicator> lease;
  private int epoch;
  private boolean closed;

  /// Collective: all ranks of the group call it together.
  public CublasMpProducts(
      Communicators communicators, Waits waits, Supplier<Rendezvous> rendezvous) {
    if (!IN_USE.compareAndSet(false, true)) {
      throw new BraidException(
          "cuBLASMp serves one pipeline of a rank at a time and another is open; close that one first");
    }
    this.communicators = communicators;
    this.waits = waits;
    this.rendezvous = rendezvous;
    this.epoch = waits.epoch();
    try {
      this.lease = communicators.lease(rendezvous.get(), Communicators.Policy.WINDOWS);
    } catch (RuntimeException | Error e) {
      IN_USE.set(false);
      throw e;
    }
  }

  @Override
  public Precondition precondition(LibraryRequest request) {
    if (epoch != waits.epoch()) {
      release();
      lease = communicators.lease(rendezvous.get(), Communicators.Policy.WINDOWS);
      epoch = waits.epoch();
    }
    if (lease.communicator().isClosed()) {
      throw new BraidException(
          "the communicator of cuBLASMp was aborted after a failure; build the pipeline again on every rank");
    }
    return Precondition.ARRIVAL_ON_STREAM;
  }

  @Override
  public boolean needsCompletionSignal() {
    return false;
  }

  @Override
  public LibraryCall call(LibraryRequest request) {
    throw new IllegalArgumentException("cuBLASMp runs no collective by itself: " + request);
  }

  @Override
  public LibraryCall call(LibraryProduct product) {
    return stream ->
        products
            .computeIfAbsent(product, one -> setUp(one, stream))
            .enqueue(
                product.weight().segment().address(),
                product.input().segment().address(),
                product.output().segment().address(),
                stream);
  }

  /// Sets up a product in the first iteration of an epoch, before which the ranks have met.
  private Product setUp(LibraryProduct product, GpuStream stream) {
    var communicator = lease.communicator();
    var opened = library;
    if (opened == null) {
      opened = CublasMp.open(communicator, stream);
      parts.push(opened);
      library = opened;
    }
    var prepared = opened.product(shape(product));
    parts.push(prepared);
    if (prepared.workspaceBytes() > 0) {
      var workspace = NcclMemory.allocate(communicator.gpu(), prepared.workspaceBytes());
      // Freed after the product, which deregisters it.
      parts.pop();
      parts.push(workspace);
      parts.push(prepared);
      prepared.use(workspace.address());
    }
    return prepared;
  }

  private static CublasMp.Shape shape(LibraryProduct product) {
    var input = contiguous("input", product.input());
    var weight = contiguous("weight", product.weight());
    var output = contiguous("output", product.output());
    return new CublasMp.Shape(
        operation(product.collective()),
        product.collective() == Collective.ALL_GATHER ? output.rows() : input.rows(),
        output.columns(),
        input.columns(),
        type(input.dtype()),
        weight.transposed(),
        CublasMp.Algorithm.DEFAULT,
        product.workers());
  }

  private static Matrix contiguous(String name, Matrix matrix) {
    if (matrix.stride() != (matrix.transposed() ? matrix.rows() : matrix.columns())) {
      throw new BraidException(
          "over cublasmp the %s must be in one piece but its rows begin %d numbers apart; bind a tensor of its own, or take over(COPY_ENGINE)"
              .formatted(name, matrix.stride()));
    }
    return matrix;
  }

  private static CublasMp.Operation operation(Collective collective) {
    return switch (collective) {
      case ALL_GATHER -> CublasMp.Operation.ALL_GATHER;
      case REDUCE_SCATTER -> CublasMp.Operation.REDUCE_SCATTER;
      case ALL_REDUCE -> CublasMp.Operation.ALL_REDUCE;
      case ALL_TO_ALL, BROADCAST, SEND, RECEIVE, BARRIER ->
          throw new IllegalArgumentException("cuBLASMp multiplies beside no " + collective);
    };
  }

  private static CublasMp.Type type(DType dtype) {
    return switch (dtype) {
      case FP32 -> CublasMp.Type.FP32;
      case BF16 -> CublasMp.Type.BF16;
      case FP16 -> CublasMp.Type.FP16;
      case TF32, FP8_E4M3, FP8_E5M2 ->
          throw new IllegalArgumentException("no products of " + dtype + " by cuBLASMp here");
    };
  }

  /// Aborts the communicator. cuBLASMp's objects may still be in use by its kernels, so they are
  /// not closed.
  @Override
  public void abort() {
    forget();
    communicators.abort(lease.communicator());
  }

  private void forget() {
    parts.clear();
    products.clear();
    library = null;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      IN_USE.set(false);
      release();
    }
  }

  private void release() {
    var all = new ArrayDeque<>(parts);
    if (lease.communicator().isClosed()) {
      all.clear();
    }
    forget();
    all.add(lease);
    Closing.all(all::poll);
  }
}
