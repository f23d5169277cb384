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
  private final List<Long> made = new ArrayList<>();
  private long address;
  private long bytes;

  public Scratch(Gpu gpu) {
    this.gpu = gpu;
  }

  static long aligned(long bytes) {
    return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }

  /// Where so many bytes are.
  long take(long wanted) {
    if (wanted > bytes) {
      address = gpu.allocate(wanted);
      bytes = wanted;
      made.add(address);
    }
    return address;
  }

  /// A piece of its own.
  long another(long wanted) {
    long piece = gpu.allocate(wanted);
    made.add(piece);
    return piece;
  }

  @Override
  public void close() {
    var pieces = new ArrayDeque<AutoCloseable>();
    made.forEach(piece -> pieces.add(() -> gpu.free(piece)));
    made.clear();
    bytes = 0;
    Closing.all(pieces::poll);
  }
}
