package braid.internal.cuda.memory;

import braid.internal.cuda.device.Communicators;
import braid.internal.rank.Closing;
import braid.internal.rank.Once;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.natives.nccl.NcclWindow;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// NCCL windows: memory of the native kind, registered as symmetric with the group's communicator,
/// as NCCL's copy-engine collectives require.
final class NcclKind implements CudaMemoryKind {
  /// Granularity of a window's size.
  private static final long PAGE_BYTES = 4096;

  private final NativeKind memory;
  private final Communicators communicators;

  NcclKind(NativeKind memory, Communicators communicators) {
    this.memory = memory;
    this.communicators = communicators;
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var lease = communicators.lease(rendezvous, Communicators.Policy.COPY_ENGINES);
    var opened = new ArrayDeque<AutoCloseable>(List.of(lease));
    try {
      var parts = memory.allocate(label, bytesPerRank, rendezvous);
      opened.push(parts);
      var windows = new ArrayList<NcclWindow>();
      Agreement.on(
          rendezvous,
          label,
          () -> {
            windows.add(
                lease
                    .communicator()
                    .register(
                        parts.on(rendezvous.place().rank()).address(), wholePages(bytesPerRank)));
            opened.push(windows.getFirst());
            return "";
          });
      var window = new Window(windows.getFirst());
      var free = new Once(() -> Closing.each(window::close, parts, lease));
      return new SymmetricMemory(
          parts.parts(), parts.whole(), parts.inPieces(), Optional.of(window), free, free);
    } catch (RuntimeException | Error e) {
      opened.forEach(each -> Closing.after(e, each));
      throw e;
    }
  }

  /// Rounds up to pages, which memory of the native kind always has.
  private static long wholePages(long bytes) {
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  }

  @Override
  public void close() {}
}
