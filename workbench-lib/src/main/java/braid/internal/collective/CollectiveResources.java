package braid.internal.collective;

import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.internal.run.Executor;
import braid.internal.work.Operand;
import braid.internal.work.Work;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Region;
import braid.schedule.Step;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// One call of a collective: the tensors and streams that its schedule's names stand for.
///
/// @param inbox memory of this rank for parts of a sum, made when it is first needed
/// @param library that makes it; null where copies do
/// @param request of the library; null where copies make it
record CollectiveResources(
    int ranks,
    @Nullable ReachableTensor x,
    @Nullable ReachableTensor y,
    Map<Lane, Stream> lanes,
    Signals signals,
    Supplier<MemorySegment> inbox,
    @Nullable LibraryCollectives library,
    @Nullable LibraryRequest request)
    implements Executor.Resources {
  @Override
  public MemorySegment memory(Buffer buffer, int rank) {
    return switch (buffer.name()) {
      case "x" -> part(x, rank);
      case "y" -> part(y, rank);
      default -> inbox.get();
    };
  }

  private static MemorySegment part(@Nullable ReachableTensor of, int rank) {
    if (of == null) {
      throw new IllegalStateException("a barrier has no tensors");
    }
    return of.on(rank);
  }

  @Override
  public Operand operand(Region weight) {
    throw new IllegalStateException("a collective multiplies nothing: " + weight);
  }

  @Override
  public void call(Step.LibraryCall call, Stream on, Work work) {
    if (library == null || request == null) {
      throw new IllegalStateException("no library makes " + work);
    }
    if (call.hostWaits()) {
      on.synchronize(() -> "all ranks to come to " + work);
    }
    on.library(work, request.linkBytes(ranks), library.call(request));
  }
}
