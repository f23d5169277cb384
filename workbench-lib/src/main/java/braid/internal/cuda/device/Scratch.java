package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.natives.cuda.Gpu;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/// Device memory beside a stream's work, for the time of one piece of it. It grows before work is
/// recorded; what it grew out of is kept, since recorded work may have its address.
public final class Scratch implements AutoCloseable {
  private static final long ALIGNMENT_BYTES = 256;

  private final Gpu gpu;
  private final List<Long> allocations = new ArrayList<>();
  private long address;
  private long bytes;

  public Scratch(Gpu gpu) {
    this.gpu = gpu;
  }

  static long aligned(long bytes) {
    return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }

  /// Where so many bytes are.
  long take(long requested) {
    if (requested > bytes) {
      address = gpu.allocate(requested);
      bytes = requested;
      allocations.add(address);
    }
    return address;
  }

  /// A piece of its own.
  long allocate(long requested) {
    long allocation = gpu.allocate(requested);
    allocations.add(allocation);
    return allocation;
  }

  @Override
  public void close() {
    var parts = new ArrayDeque<AutoCloseable>();
    allocations.forEach(allocation -> parts.add(() -> gpu.free(allocation)));
    allocations.clear();
    bytes = 0;
    Closing.all(parts::poll);
  }
}
