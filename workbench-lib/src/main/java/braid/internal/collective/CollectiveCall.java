package braid.internal.collective;

import braid.internal.library.LibraryRequest;
import braid.internal.library.TensorPart;
import braid.model.AllReduce;
import braid.model.Collective;
import braid.model.DType;
import braid.schedule.plan.CollectiveSpec;
import org.jspecify.annotations.Nullable;

/// A collective and its tensors; a barrier has none.
///
/// @param root of a broadcast; 0 for others
/// @param algorithm of an all-reduce
public record CollectiveCall(
    Collective collective,
    CollectiveRoute route,
    @Nullable ReachableTensor x,
    @Nullable ReachableTensor y,
    int root,
    AllReduce algorithm) {
  public static CollectiveCall barrier(CollectiveRoute route) {
    return new CollectiveCall(Collective.BARRIER, route, null, null, 0, AllReduce.TWO_SHOT);
  }

  CollectiveSpec spec(CollectiveSpec.LibraryNeeds needs, int rank) {
    return x == null || y == null
        ? new CollectiveSpec(
            collective, DType.FP32, 0, 0, true, algorithm, route.way(), route.workers(), needs)
        : new CollectiveSpec(
            collective,
            x.dtype(),
            x.elements(),
            root,
            x.on(rank).equals(y.on(rank)),
            algorithm,
            route.way(),
            route.workers(),
            needs);
  }

  /// The request to a library; null for a barrier.
  @Nullable LibraryRequest request(int rank) {
    return x == null || y == null
        ? null
        : new LibraryRequest(collective, piece(x, rank), piece(y, rank), root);
  }

  private static TensorPart piece(ReachableTensor tensor, int rank) {
    return new TensorPart(tensor.dtype(), tensor.on(rank), tensor.attachment());
  }
}
