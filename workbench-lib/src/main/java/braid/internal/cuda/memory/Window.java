package braid.internal.cuda.memory;

import braid.internal.resource.Attachment;
import braid.natives.nccl.NcclCommunicator;
import braid.natives.nccl.NcclWindow;

/// What NCCL knows of such memory: its copy-engine collectives take none without it. A window ends
/// with its communicator, the memory does not; so it can be registered with the next one.
public final class Window implements Attachment {
  private NcclWindow window;

  Window(NcclWindow window) {
    this.window = window;
  }

  /// Whether that communicator knows the memory.
  public synchronized boolean isRegisteredWith(NcclCommunicator communicator) {
    return window.isOf(communicator);
  }

  /// Makes sure that the communicator knows the memory. All ranks call it together.
  public synchronized void register(NcclCommunicator communicator) {
    if (!window.isOf(communicator)) {
      window = communicator.register(window.address(), window.bytes());
    }
  }

  /// On all ranks in the same order.
  synchronized void close() {
    window.close();
  }
}
