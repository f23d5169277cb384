package braid.internal.collective;

import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.internal.run.Executor;
import braid.internal.work.Operand;
import braid.internal.work.Work;
import braid.model.Stage;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Region;
import braid.schedule.Step;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Memory and streams of one collective call, for the executor of its schedule.
///
/// @param inbox memory of this rank for parts of a sum, allocated on first use
/// @param library runs the call; null if copies do
/// @param request to the library; null if copies run the call
record CollectiveResources(
    int ranks,
    @Nullable ReachableTensor x,
    @Nullable ReachableTensor y,
    Map<Lane, Stream> lanes,
    Signals signals,
    Supplier<MemorySegment> inbox,
    @Nullable LibraryCollectives library,
    @Nullable LibraryRequest request,
    Optional<Executor.Crossed> crossed)
    implements Executor.Resources {
  @Override
  public MemorySegment memory(Buffer buffer, int rank) {
    return switch (buffer.name()) {
      case "x" -> part(x, rank);
      case "y" -> part(y, rank);
      default -> inbox.get();
    };
  }

  private static MemorySegment part(@Nullable ReachableTensor tensor, int rank) {
    if (tensor == null) {
      throw new IllegalStateException("a barrier has no tensors");
    }
    return tensor.on(rank);
  }

  @Override
  public Operand operand(Region weight) {
    throw new IllegalStateException("a collective multiplies nothing: " + weight);
  }

  @Override
  public void call(Step.LibraryCall call, Stream stream, Work work) {
    if (library == null || request == null) {
      throw new IllegalStateException("no library runs " + work);
    }
    if (call.hostWaits()) {
      stream.synchronize(() -> "all ranks to reach " + work);
    }
    stream.library(work, Stage.COPY, request.linkBytes(ranks), 0, library.call(request));
  }
}
