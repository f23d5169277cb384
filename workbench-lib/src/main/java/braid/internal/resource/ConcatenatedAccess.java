package braid.internal.resource;

import braid.model.DType;
import braid.natives.kernels.Integers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.BiConsumer;

/// Several parts of memory seen as one, for parts that lie anywhere. Its addresses are places in
/// that whole and none in memory: only this access understands them.
public final class ConcatenatedAccess implements Access {
  /// Above what any address of a whole could be taken for null.
  private static final long FIRST_ADDRESS = 1L << 40;

  private final Access access;
  private final List<MemorySegment> parts;

  public ConcatenatedAccess(Access access, List<MemorySegment> parts) {
    this.access = access;
    this.parts = List.copyOf(parts);
  }

  /// All of it.
  @SuppressWarnings("restricted") // Nothing is there: it is never read but through this access.
  public MemorySegment whole() {
    long bytes = parts.stream().mapToLong(MemorySegment::byteSize).sum();
    return MemorySegment.ofAddress(FIRST_ADDRESS).reinterpret(bytes);
  }

  /// Does that with each part of the stretch, and where in the stretch it begins.
  private void each(MemorySegment stretch, BiConsumer<MemorySegment, Long> body) {
    long start = stretch.address() - FIRST_ADDRESS;
    long end = start + stretch.byteSize();
    long place = 0;
    for (var part : parts) {
      long from = Math.max(start, place);
      long to = Math.min(end, place + part.byteSize());
      if (from < to) {
        body.accept(part.asSlice(from - place, to - from), from - start);
      }
      place += part.byteSize();
    }
  }

  @Override
  public void read(MemorySegment from, MemorySegment into) {
    each(from, (part, at) -> access.read(part, into.asSlice(at, part.byteSize())));
  }

  @Override
  public void write(MemorySegment from, MemorySegment to) {
    each(to, (part, at) -> access.write(from.asSlice(at, part.byteSize()), part));
  }

  /// By way of the host: pieces of one need not match those of the other.
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
    each(memory, (part, _) -> access.fill(dtype, part, value));
  }

  /// One sequence over all parts.
  @Override
  public void fillIntegers(DType dtype, MemorySegment memory, long seed) {
    try (var arena = Arena.ofConfined()) {
      var all = arena.allocate(memory.byteSize(), Long.BYTES);
      long count = memory.byteSize() / dtype.bytes();
      for (long i = 0; i < count; i++) {
        dtype.store(all, i, Integers.at(seed, i));
      }
      write(all, memory);
    }
  }
}
