package braid.internal.resource;

import braid.model.DType;
import braid.natives.kernels.Drawn;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.BiConsumer;

/// Access to several parts of memory as one, for parts at arbitrary addresses. Segments of the
/// whole have offsets as addresses, which only this access understands.
public final class ConcatenatedAccess implements Access {
  /// Address of the whole's first byte, so that none is null.
  private static final long FIRST_ADDRESS = 1L << 40;

  private final Access access;
  private final List<MemorySegment> parts;

  public ConcatenatedAccess(Access access, List<MemorySegment> parts) {
    this.access = access;
    this.parts = List.copyOf(parts);
  }

  /// Segment of all parts.
  @SuppressWarnings("restricted") // No memory is there: only this access reads it.
  public MemorySegment whole() {
    long bytes = parts.stream().mapToLong(MemorySegment::byteSize).sum();
    return MemorySegment.ofAddress(FIRST_ADDRESS).reinterpret(bytes);
  }

  /// Calls `body` with each part of the range and its offset in the range.
  private void forEachPart(MemorySegment range, BiConsumer<MemorySegment, Long> body) {
    long start = range.address() - FIRST_ADDRESS;
    long end = start + range.byteSize();
    long offset = 0;
    for (var part : parts) {
      long from = Math.max(start, offset);
      long to = Math.min(end, offset + part.byteSize());
      if (from < to) {
        body.accept(part.asSlice(from - offset, to - from), from - start);
      }
      offset += part.byteSize();
    }
  }

  @Override
  public void read(MemorySegment from, MemorySegment target) {
    forEachPart(from, (part, index) -> access.read(part, target.asSlice(index, part.byteSize())));
  }

  @Override
  public void write(MemorySegment from, MemorySegment to) {
    forEachPart(to, (part, index) -> access.write(from.asSlice(index, part.byteSize()), part));
  }

  /// Copies by way of the host: the parts of one range need not match those of the other.
  @Override
  public void copy(MemorySegment from, MemorySegment to) {
    try (var arena = Arena.ofConfined()) {
      var all = arena.allocate(from.byteSize(), Long.BYTES);
      read(from, all);
      write(all, to);
    }
  }

  @Override
  public void fill(DType dtype, MemorySegment memory, float value) {
    forEachPart(memory, (part, _) -> access.fill(dtype, part, value));
  }

  /// Fills with one sequence over all parts.
  @Override
  public void draw(DType dtype, MemorySegment memory, Drawn numbers, long seed) {
    try (var arena = Arena.ofConfined()) {
      var all = arena.allocate(memory.byteSize(), Long.BYTES);
      long count = memory.byteSize() / dtype.bytes();
      for (long i = 0; i < count; i++) {
        dtype.store(all, i, numbers.at(seed, i));
      }
      write(all, memory);
    }
  }
}
