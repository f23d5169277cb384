package braid.natives.nccl;

import org.bytedeco.cuda.nccl.ncclWindow_vidmem;

/// Memory that NCCL knows on all ranks at once, which is what its copy-engine collectives need. All
/// ranks close it, in the same order; a closing communicator does so for those that are left.
public final class NcclWindow implements AutoCloseable {
  private final NcclCommunicator communicator;
  private final ncclWindow_vidmem window;
  private final long address;
  private final long bytes;

  NcclWindow(NcclCommunicator communicator, ncclWindow_vidmem window, long address, long bytes) {
    this.communicator = communicator;
    this.window = window;
    this.address = address;
    this.bytes = bytes;
  }

  public long address() {
    return address;
  }

  public long bytes() {
    return bytes;
  }

  /// Whether it is one of that communicator, which still lives.
  public boolean isOf(NcclCommunicator which) {
    return communicator.equals(which) && !which.isClosed();
  }

  ncclWindow_vidmem pointer() {
    return window;
  }

  @Override
  public void close() {
    communicator.deregister(this);
  }
}
