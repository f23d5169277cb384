package braid.natives.nccl;

import static org.bytedeco.cuda.global.nccl.ncclMemAlloc;
import static org.bytedeco.cuda.global.nccl.ncclMemFree;

import braid.natives.cuda.Gpu;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/// Memory of a GPU that NCCL can register as a window.
public final class NcclMemory implements AutoCloseable {
  private final Gpu gpu;
  private final Pointer start;
  private boolean closed;

  private NcclMemory(Gpu gpu, Pointer start) {
    this.gpu = gpu;
    this.start = start;
  }

  public static NcclMemory allocate(Gpu gpu, long bytes) {
    Nccl.version();
    gpu.use();
    try (var slot = new PointerPointer<Pointer>(1)) {
      Nccl.check("ncclMemAlloc", ncclMemAlloc(slot, bytes), null, gpu.where());
      return new NcclMemory(gpu, slot.get(0));
    }
  }

  public long address() {
    return start.address();
  }

  /// Frees the memory. Further calls have no effect.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.use();
      Nccl.check("ncclMemFree", ncclMemFree(start), null, gpu.where());
    }
  }
}
