package braid.internal.cuda.library;

import braid.internal.cuda.device.Communicators;
import braid.internal.cuda.device.Communicators.Policy;
import braid.internal.cuda.device.SharedCommunicators;
import braid.internal.cuda.memory.Window;
import braid.internal.library.LibraryCall;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.internal.library.TensorPart;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.Transport;
import braid.natives.cuda.GpuStream;
import braid.natives.nccl.Nccl;
import braid.natives.nccl.NcclCommunicator;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Collectives by NCCL. Those that only move data move bytes; sums are added by NCCL, in its order.
///
/// A failure of any rank ends all communicators with the epoch; in the next epoch the ranks join
/// new ones.
public final class NcclCollectives implements LibraryCollectives {
  /// Collective and magnitude of the size, which determine NCCL's connections: it connects ranks
  /// when it first needs a connection, and which ones depends on the size.
  private record Shape(Collective collective, int digits) {
    static Shape of(LibraryRequest request) {
      return new Shape(
          request.collective(), Long.SIZE - Long.numberOfLeadingZeros(request.x().bytes()));
    }
  }

  private final Communicators communicators;
  private final Waits waits;
  private final Policy policy;
  private final Supplier<Rendezvous> rendezvous;
  private final Set<Shape> connected = new HashSet<>();
  private SharedCommunicators.Lease<NcclCommunicator> lease;
  private int epoch;

  /// Collective: all ranks of the group call it together.
  public NcclCollectives(
      Communicators communicators, Waits waits, Policy policy, Supplier<Rendezvous> rendezvous) {
    this.communicators = communicators;
    this.waits = waits;
    this.policy = policy;
    this.rendezvous = rendezvous;
    this.epoch = waits.epoch();
    this.lease = communicators.lease(rendezvous.get(), policy);
  }

  @Override
  public Precondition precondition(LibraryRequest request) {
    if (epoch != waits.epoch()) {
      var ofEpoch = communicators.lease(rendezvous.get(), policy);
      lease.close();
      lease = ofEpoch;
      epoch = waits.epoch();
      connected.clear();
    }
    var communicator = lease.communicator();
    if (communicator.isClosed()) {
      throw new BraidException(
          "NCCL's communicator was aborted after a failure; call Collectives.on(group) again on every rank");
    }
    int alignment = Transport.SYMMETRIC_ALIGNMENT_BYTES;
    if (policy == Policy.WINDOWS && request.x().address() % alignment != 0) {
      throw new BraidException(
          "over nccl_symmetric a tensor must begin at a multiple of %d bytes, since NCCL 2.28 reads wrong numbers elsewhere, but it begins at %x; take over(NCCL_KERNELS)"
              .formatted(alignment, request.x().address()));
    }
    boolean ready =
        connected.contains(Shape.of(request))
            && (!inWindows()
                || Stream.of(request.x(), request.y())
                    .allMatch(part -> window(part).isRegisteredWith(communicator)));
    if (!ready) {
      return Precondition.ARRIVAL_ON_HOST;
    }
    // Copy engines wait by stream operations, and symmetric kernels without looking for an abort
    // (NCCL 2.28): aborting the communicator ends neither.
    return inWindows() ? Precondition.ARRIVAL_ON_STREAM : Precondition.NONE;
  }

  @Override
  public boolean needsCompletionSignal() {
    return false;
  }

  @Override
  public LibraryCall call(LibraryRequest request) {
    if (inWindows()) {
      window(request.x()).register(lease.communicator());
      window(request.y()).register(lease.communicator());
    }
    connected.add(Shape.of(request));
    return stream -> enqueue(request, stream);
  }

  private boolean inWindows() {
    return policy != Policy.MULTIPROCESSORS;
  }

  private static Window window(TensorPart part) {
    return part.attachment()
        .filter(Window.class::isInstance)
        .map(Window.class::cast)
        .orElseThrow(() -> new IllegalArgumentException("memory without an NCCL window"));
  }

  private void enqueue(LibraryRequest request, GpuStream stream) {
    var x = request.x();
    var y = request.y();
    var bytes = Nccl.Type.INT8;
    var communicator = lease.communicator();
    switch (request.collective()) {
      case ALL_GATHER -> communicator.allGather(x.address(), y.address(), x.bytes(), bytes, stream);
      case ALL_TO_ALL ->
          communicator.allToAll(
              x.address(), y.address(), x.bytes() / communicator.size(), bytes, stream);
      case BROADCAST ->
          communicator.broadcast(
              x.address(), y.address(), x.bytes(), bytes, request.root(), stream);
      case REDUCE_SCATTER ->
          communicator.reduceScatterSum(
              x.address(), y.address(), y.elements(), type(x.dtype()), stream);
      case ALL_REDUCE ->
          communicator.allReduceSum(
              x.address(), y.address(), x.elements(), type(x.dtype()), stream);
      case SEND, RECEIVE, BARRIER ->
          throw new IllegalArgumentException("no call of NCCL for " + request.collective());
    }
  }

  private static Nccl.Type type(DType dtype) {
    return switch (dtype) {
      case FP32, TF32 -> Nccl.Type.FP32;
      case BF16 -> Nccl.Type.BF16;
      case FP16 -> Nccl.Type.FP16;
      case FP8_E4M3, FP8_E5M2 -> throw new IllegalArgumentException("NCCL has no sum of " + dtype);
    };
  }

  /// Ends calls that still run on this GPU, without a result.
  @Override
  public void abort() {
    communicators.abort(lease.communicator());
  }

  @Override
  public void close() {
    lease.close();
  }
}
