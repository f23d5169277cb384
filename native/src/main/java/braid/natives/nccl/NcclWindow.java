package braid.natives.nccl;

import org.bytedeco.cuda.nccl.ncclWindow_vidmem;

/// Memory registered with NCCL on all ranks, as its copy engines and symmetric kernels need. Every
/// rank closes it, in the same order; closing the communicator closes the remaining ones.
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

  /// Returns true if the window belongs to this communicator, which is still open.
  public boolean isOf(NcclCommunicator expected) {
    return communicator.equals(expected) && !expected.isClosed();
  }

  /// Returns false after its communicator was closed or aborted.
  public boolean isOpen() {
    return !communicator.isClosed();
  }

  ncclWindow_vidmem pointer() {
    return window;
  }

  @Override
  public void close() {
    communicator.deregister(this);
  }
}
