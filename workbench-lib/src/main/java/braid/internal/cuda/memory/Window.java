package braid.internal.cuda.memory;

import braid.internal.resource.Attachment;
import braid.natives.nccl.NcclCommunicator;
import braid.natives.nccl.NcclWindow;

/// NCCL's registration of memory, which its copy-engine collectives require. A window ends with its
/// communicator; the memory can then be registered with the next one.
public final class Window implements Attachment {
  private NcclWindow window;

  Window(NcclWindow window) {
    this.window = window;
  }

  /// Returns true if the memory is registered with the communicator.
  public synchronized boolean isRegisteredWith(NcclCommunicator communicator) {
    return window.isOf(communicator);
  }

  /// Registers the memory with the communicator unless it is. Collective: all ranks call it
  /// together.
  public synchronized void register(NcclCommunicator communicator) {
    if (!window.isOf(communicator)) {
      window = communicator.register(window.address(), window.bytes());
    }
  }

  /// Closes the window, in the same order on all ranks.
  synchronized void close() {
    window.close();
  }
}
