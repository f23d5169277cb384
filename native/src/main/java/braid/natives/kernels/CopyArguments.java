package braid.natives.kernels;

import braid.natives.cuda.GpuCopy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// Independent copies that one kernel makes at once. Created once and launched any number of times.
public final class CopyArguments {
  /// Most copies of one launch.
  public static final int MOST_COPIES = 16;

  // Offsets in the kernel's struct Copies.
  private static final long FROM = 128;
  private static final long LENGTHS = 256;
  private static final long COUNT = 384;
  private static final long BYTES = 392;

  private final MemorySegment bytes = Arena.ofAuto().allocate(BYTES, Long.BYTES);
  private final List<GpuCopy> copies;

  public CopyArguments(List<GpuCopy> copies) {
    if (copies.isEmpty() || copies.size() > MOST_COPIES) {
      throw new IllegalArgumentException(
          "a kernel must make 1..%d copies but has %d".formatted(MOST_COPIES, copies.size()));
    }
    for (int i = 0; i < copies.size(); i++) {
      var copy = copies.get(i);
      long offset = (long) i * Long.BYTES;
      bytes.set(ValueLayout.JAVA_LONG, offset, copy.to());
      bytes.set(ValueLayout.JAVA_LONG, FROM + offset, copy.from());
      bytes.set(ValueLayout.JAVA_LONG, LENGTHS + offset, copy.bytes());
    }
    bytes.set(ValueLayout.JAVA_INT, COUNT, copies.size());
    this.copies = List.copyOf(copies);
  }

  public List<GpuCopy> copies() {
    return copies;
  }

  MemorySegment bytes() {
    return bytes;
  }

  int count() {
    return copies.size();
  }

  long longest() {
    return copies.stream().mapToLong(GpuCopy::bytes).max().orElseThrow();
  }
}
