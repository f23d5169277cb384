package braid.internal.cuda.memory;

import braid.internal.rank.Closing;
import braid.internal.resource.Attachment;
import braid.natives.nccl.NcclCommunicator;
import braid.natives.nccl.NcclWindow;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/// NCCL's registrations of memory, one per communicator, which its copy-engine collectives and its
/// symmetric kernels require. A registration ends with its communicator; the memory can then be
/// registered with the next one.
public final class Window implements Attachment {
  private final long address;
  private final long bytes;

  /// In the order of registration, which is the same on all ranks.
  private final List<NcclWindow> windows = new ArrayList<>();

  Window(NcclWindow window) {
    this.address = window.address();
    this.bytes = window.bytes();
    windows.add(window);
  }

  /// Returns true if the memory is registered with the communicator.
  public synchronized boolean isRegisteredWith(NcclCommunicator communicator) {
    return windows.stream().anyMatch(window -> window.isOf(communicator));
  }

  /// Registers the memory with the communicator unless it is. Collective: all ranks call it
  /// together.
  public synchronized void register(NcclCommunicator communicator) {
    if (!isRegisteredWith(communicator)) {
      windows.removeIf(window -> !window.isOpen());
      windows.add(communicator.register(address, bytes));
    }
  }

  /// Closes the registrations, in the same order on all ranks.
  synchronized void close() {
    var left = new ArrayDeque<AutoCloseable>(windows);
    windows.clear();
    Closing.all(left::poll);
  }
}
