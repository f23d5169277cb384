package braid.internal.cuda.memory;

import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Once;
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

/// NVSHMEM's symmetric heap. A process joins NVSHMEM once, and all ranks of the world join it
/// together, at their first use of it. Groups of some ranks use the heap after that; before it they
/// get an error, since the other ranks would not join. One block of its heap is allocated
/// permanently and divided here: NVSHMEM's own allocation and freeing are collective, but pooled
/// memory must be freed locally.
final class NvshmemKind implements CudaMemoryKind {
  private static final String HEAP = "NVSHMEM heap";

  private final CudaDevice device;
  private final int worldSize;
  private final long heapBytes;
  private @Nullable JoinedHeap joined;

  /// @param bases address of each rank's heap as mapped into this rank, by rank in the world
  private record JoinedHeap(Nvshmem nvshmem, List<Long> bases, HeapAllocator allocator) {}

  NvshmemKind(CudaDevice device, int worldSize, long heapBytes) {
    this.device = device;
    this.worldSize = worldSize;
    this.heapBytes = heapBytes;
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var heap = joined(label, rendezvous);
    long base = heap.bases().get(rendezvous.ranks().get(rendezvous.place().rank()));
    long offset =
        heap.allocator()
            .allocate(
                label,
                bytesPerRank,
                rendezvous,
                index -> device.gpu().fill(base + index, (byte) 0, bytesPerRank));
    return memory(heap, offset, bytesPerRank, rendezvous.ranks());
  }

  private static SymmetricMemory memory(
      JoinedHeap heap, long offset, long bytesPerRank, List<Integer> ranks) {
    var arena = Arena.ofShared();
    List<MemorySegment> parts =
        ranks.stream()
            .map(rank -> CudaDevice.view(heap.bases().get(rank) + offset, bytesPerRank, arena))
            .toList();
    var free =
        new Once(
            () -> {
              arena.close();
              heap.allocator().release(offset);
            });
    return CudaMemoryKind.scattered(parts, "nvshmem", free);
  }

  /// Returns NVSHMEM, whose processing elements are the ranks of the world. The first call joins
  /// it.
  Nvshmem nvshmem(String label, Rendezvous rendezvous) {
    return joined(label, rendezvous).nvshmem();
  }

  private synchronized JoinedHeap joined(String label, Rendezvous rendezvous) {
    var existing = joined;
    if (existing == null) {
      requireWorld(label, rendezvous.ranks(), worldSize);
      existing = join(rendezvous);
      joined = existing;
    }
    return existing;
  }

  /// Returns the bytes of the GPU's memory that joining takes; 0 afterwards.
  synchronized long joiningBytes() {
    return joined == null ? heapBytes : 0;
  }

  /// Returns the free part of this rank's heap, for a group.
  ///
  /// @param member this rank in the group
  synchronized FreeSpace space(List<Integer> ranks, int member) {
    long free = joined == null ? allocatableBytes() : joined.allocator().free(ranks);
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

  /// Throws, on all members alike, unless the group has all ranks of the world.
  static void requireWorld(String label, List<Integer> ranks, int worldSize) {
    if (ranks.size() < worldSize) {
      throw new BraidException(
          "%s: all %d ranks join NVSHMEM together at its first use, but this group has ranks %s only; first allocate such memory once on all ranks: SymmetricTensor.on(ProcessGroup.world()).shape(1).memory(MemoryKind.NVSHMEM).allocate()"
              .formatted(label, worldSize, ranks));
    }
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
    return new JoinedHeap(opened.getFirst(), List.copyOf(bases), new HeapAllocator(bytes));
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
