package braid.internal.cuda.memory;

import braid.internal.cuda.Communicators;
import braid.internal.host.Once;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.natives.nccl.NcclWindow;
import java.util.ArrayList;
import java.util.Optional;

/// NCCL windows: memory of the native kind, which NCCL knows as symmetric on all ranks, so that its
/// copy-engine collectives take it. It is registered with the group's communicator for those.
final class NcclKind implements Kind {
  private final NativeKind memory;
  private final Communicators communicators;

  NcclKind(NativeKind memory, Communicators communicators) {
    this.memory = memory;
    this.communicators = communicators;
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var communicator = communicators.of(rendezvous, Communicators.Policy.COPY_ENGINES);
    var pieces = memory.allocate(label, bytesPerRank, rendezvous);
    var windows = new ArrayList<NcclWindow>();
    try {
      Agreement.on(
          rendezvous,
          label,
          () -> {
            windows.add(
                communicator.register(
                    pieces.on(rendezvous.place().rank()).address(), bytesPerRank));
            return "";
          });
    } catch (RuntimeException | Error e) {
      windows.forEach(NcclWindow::close);
      pieces.close();
      throw e;
    }
    var window = windows.getFirst();
    var free =
        new Once(
            () -> {
              window.close();
              pieces.close();
            });
    return new SymmetricMemory(
        pieces.parts(),
        pieces.whole(),
        pieces.inPieces(),
        Optional.of(new Window(window)),
        free,
        free);
  }

  @Override
  public void close() {}
}
