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
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.GroupAborted;
import braid.natives.cublasmp.CublasMp;
import braid.natives.cublasmp.Product;
import braid.natives.cuda.GpuStream;
import braid.natives.nccl.NcclCommunicator;
import braid.natives.nccl.NcclMemory;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A multiplication with its collective by cuBLASMp, as one call. Not tried on GPUs: tests check
/// the calls with a stub of the library, and the numbers with a stand-in.
///
/// The library cannot abort its calls. Resources of an aborted communicator are left behind, and
/// the ranks set up the product again in the next epoch.
public final class CublasMpProducts implements LibraryCollectives {
  private final Communicators communicators;
  private final Waits waits;
  private final Supplier<Rendezvous> rendezvous;

  /// Resources of the communicator, closed from the last.
  private final Deque<AutoCloseable> parts = new ArrayDeque<>();

  private @Nullable Product prepared;
  private SharedCommunicators.Lease<NcclCommunicator> lease;
  private int epoch;

  /// Collective: all ranks of the group call it together.
  public CublasMpProducts(
      Communicators communicators, Waits waits, Supplier<Rendezvous> rendezvous) {
    this.communicators = communicators;
    this.waits = waits;
    this.rendezvous = rendezvous;
    this.epoch = waits.epoch();
    this.lease = communicators.lease(rendezvous.get(), Communicators.Policy.WINDOWS);
  }

  @Override
  public Precondition precondition(LibraryRequest request) {
    if (epoch != waits.epoch()) {
      close();
      lease = communicators.lease(rendezvous.get(), Communicators.Policy.WINDOWS);
      epoch = waits.epoch();
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

  /// Returns the work of the only product of a plan.
  @Override
  public LibraryCall call(LibraryProduct product) {
    return stream -> {
      // Another user of the communicator may have failed.
      if (lease.communicator().isClosed()) {
        throw new BraidException(
            "the communicator of cuBLASMp was aborted after a failure; close the pipeline and build it again on every rank");
      }
      var ready = prepared;
      if (ready == null) {
        ready = setUp(product, stream);
        prepared = ready;
      }
      ready.enqueue(
          product.weight().segment().address(),
          product.input().segment().address(),
          product.output().segment().address(),
          stream);
    };
  }

  /// Sets up the product in the first iteration of an epoch, before which the ranks have met. They
  /// wait for each other in the registration of the workspace, so all begin it or none.
  private Product setUp(LibraryProduct wanted, GpuStream stream) {
    var communicator = lease.communicator();
    @Nullable Product product = null;
    long workspace = 0;
    var failure = "";
    try {
      var library = CublasMp.open(communicator, stream);
      parts.push(library);
      product = library.product(shape(wanted));
      if (product.workspaceBytes() > 0) {
        var memory = NcclMemory.allocate(communicator.gpu(), product.workspaceBytes());
        parts.push(memory);
        workspace = memory.address();
      }
      parts.push(product);
    } catch (GroupAborted e) {
      throw e;
    } catch (RuntimeException | UnsatisfiedLinkError e) {
      failure = String.valueOf(e.getMessage());
    }
    var members = rendezvous.get();
    var failures = members.exchange("set up a product of cuBLASMp", failure);
    for (int i = 0; i < failures.size(); i++) {
      if (!failures.get(i).isEmpty()) {
        throw new BraidException(
            "rank %d cannot multiply by cuBLASMp: %s"
                .formatted(members.ranks().get(i), failures.get(i)));
      }
    }
    if (product == null) {
      throw new IllegalStateException("no product and no failure");
    }
    product.use(workspace);
    return product;
  }

  private static CublasMp.Shape shape(LibraryProduct product) {
    return new CublasMp.Shape(
        operation(product.collective()),
        product.collective() == Collective.ALL_GATHER
            ? product.output().rows()
            : product.input().rows(),
        product.output().columns(),
        product.input().columns(),
        type(product.input().dtype()),
        product.weight().transposed(),
        CublasMp.Algorithm.DEFAULT,
        product.workers());
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

  /// Aborts the communicator. cuBLASMp's kernels may still use its resources, so they are not
  /// closed.
  @Override
  public void abort() {
    forget();
    communicators.abort(lease.communicator());
  }

  private void forget() {
    parts.clear();
    prepared = null;
  }

  @Override
  public void close() {
    var communicator = lease.communicator();
    var all = communicator.isClosed() ? new ArrayDeque<AutoCloseable>() : new ArrayDeque<>(parts);
    forget();
    all.add(lease);
    communicator.gpu().release(() -> Closing.all(all::poll));
  }
}
