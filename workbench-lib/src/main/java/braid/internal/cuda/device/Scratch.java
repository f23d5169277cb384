package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.natives.cuda.Gpu;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/// Scratch memory of a stream, for one operation at a time. Grows before work is recorded; outgrown
/// memory is kept, since recorded work may use its address.
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

  /// Address of scratch memory of at least that size.
  long take(long requested) {
    if (requested > bytes) {
      address = gpu.allocate(requested);
      bytes = requested;
      allocations.add(address);
    }
    return address;
  }

  /// Allocates separate memory, freed with the scratch memory.
  public long allocate(long requested) {
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
