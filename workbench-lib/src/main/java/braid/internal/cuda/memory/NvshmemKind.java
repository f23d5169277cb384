package braid.internal.cuda.memory;

import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Once;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.FreeSpace;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.natives.nvshmem.Nvshmem;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// NVSHMEM's symmetric heap. A process joins NVSHMEM once, with the ranks of the first group that
/// uses it; other groups get an error. One block of its heap is allocated permanently and divided
/// here: NVSHMEM's own allocation and freeing are collective, but pooled memory must be freed
/// locally.
final class NvshmemKind implements CudaMemoryKind {
  private static final String HEAP = "NVSHMEM heap";

  private final CudaDevice device;
  private final long heapBytes;
  private @Nullable JoinedHeap joined;

  /// @param bases address of each member's heap as mapped into this rank
  private record JoinedHeap(
      Nvshmem nvshmem, List<Integer> ranks, List<Long> bases, HeapAllocator allocator) {}

  NvshmemKind(CudaDevice device, long heapBytes) {
    this.device = device;
    this.heapBytes = heapBytes;
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var heap = joined(label, rendezvous);
    var offsets = new ArrayList<Long>();
    try {
      var agreed =
          Agreement.on(
              rendezvous,
              label,
              () -> {
                long offset = take(heap.allocator(), label, bytesPerRank);
                offsets.add(offset);
                long own = heap.bases().get(rendezvous.place().rank()) + offset;
                device.gpu().fill(own, (byte) 0, bytesPerRank);
                return Long.toString(offset);
              });
      if (agreed.stream().distinct().count() > 1) {
        throw new IllegalStateException(
            "%s: ranks have different offsets in the heap: %s".formatted(label, agreed));
      }
    } catch (RuntimeException | Error e) {
      offsets.forEach(offset -> release(heap.allocator(), offset));
      throw e;
    }
    return memory(heap, offsets.getFirst(), bytesPerRank);
  }

  private static long take(HeapAllocator allocator, String label, long bytes) {
    synchronized (allocator) {
      return allocator
          .allocate(bytes)
          .orElseThrow(
              () ->
                  new AllocationFailed(
                      "%s needs %d bytes of NVSHMEM's heap where %d are free; close what is not needed, or set BRAID_NVSHMEM_HEAP_MIB higher"
                          .formatted(label, bytes, allocator.free())));
    }
  }

  private static void release(HeapAllocator allocator, long offset) {
    synchronized (allocator) {
      allocator.release(offset);
    }
  }

  private SymmetricMemory memory(JoinedHeap heap, long offset, long bytesPerRank) {
    var arena = Arena.ofShared();
    List<MemorySegment> parts =
        heap.bases().stream()
            .map(base -> CudaDevice.view(base + offset, bytesPerRank, arena))
            .toList();
    var free =
        new Once(
            () -> {
              arena.close();
              release(heap.allocator(), offset);
            });
    return CudaMemoryKind.scattered(parts, "nvshmem", free);
  }

  /// Returns NVSHMEM for the group. The first call joins it.
  Nvshmem nvshmem(String label, Rendezvous rendezvous) {
    return joined(label, rendezvous).nvshmem();
  }

  private synchronized JoinedHeap joined(String label, Rendezvous rendezvous) {
    var existing = joined;
    if (existing == null) {
      existing = join(rendezvous);
      joined = existing;
    }
    if (!existing.ranks().equals(rendezvous.ranks())) {
      throw new BraidException(
          "%s: this process joined NVSHMEM with the group of ranks %s and cannot use it with ranks %s; use memory kind native"
              .formatted(label, existing.ranks(), rendezvous.ranks()));
    }
    return existing;
  }

  /// Returns the bytes of the GPU's memory that joining takes; 0 afterwards.
  synchronized long joiningBytes() {
    return joined == null ? heapBytes : 0;
  }

  /// Returns the free part of the heap, for a member of a group.
  synchronized FreeSpace space(int member) {
    long free = joined == null ? allocatableBytes() : joined.allocator().free();
    return new FreeSpace(
        "NVSHMEM's heap (BRAID_NVSHMEM_HEAP_MIB)",
        free,
        List.of(member),
        HeapAllocator.ALIGNMENT_BYTES,
        0);
  }

  /// Returns the bytes of the heap that NVSHMEM does not need itself.
  private long allocatableBytes() {
    return heapBytes - heapBytes / 8;
  }

  private JoinedHeap join(Rendezvous rendezvous) {
    int rank = rendezvous.place().rank();
    int size = rendezvous.place().size();
    var ids =
        Agreement.on(
            rendezvous,
            HEAP,
            () -> rank == 0 ? HexFormat.of().formatHex(Nvshmem.uniqueId(heapBytes)) : "");
    var opened = new ArrayList<Nvshmem>();
    var bases = new ArrayList<Long>();
    long bytes = allocatableBytes();
    Agreement.on(
        rendezvous,
        HEAP,
        () -> {
          var nvshmem =
              Nvshmem.open(
                  device.gpu(), rank, size, HexFormat.of().parseHex(ids.getFirst()), heapBytes);
          opened.add(nvshmem);
          long own = nvshmem.allocate(bytes);
          for (int member = 0; member < size; member++) {
            bases.add(member == rank ? own : nvshmem.pointer(own, member));
          }
          return "";
        });
    return new JoinedHeap(
        opened.getFirst(), rendezvous.ranks(), List.copyOf(bases), new HeapAllocator(bytes));
  }

  @Override
  public synchronized void close() {
    var heap = joined;
    joined = null;
    if (heap != null) {
      heap.nvshmem().close();
    }
  }
}
