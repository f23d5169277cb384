package braid.internal.cuda.memory;

import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Once;
import braid.internal.resource.AllocationFailed;
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
/// asks; another group cannot have this kind, and is told so by name. Of its heap one piece is
/// taken for good: NVSHMEM's own allocation and freeing are meetings of all ranks, and pooled
/// memory must be freed without one.
final class NvshmemKind implements CudaMemoryKind {
  private static final String HEAP = "NVSHMEM heap";

  private final CudaDevice device;
  private final long heapBytes;
  private @Nullable Joined joined;

  /// @param bases where each member's heap begins in this rank's reach
  private record Joined(Nvshmem nvshmem, List<Integer> ranks, List<Long> bases, HeapRoom room) {}

  NvshmemKind(CudaDevice device, long heapBytes) {
    this.device = device;
    this.heapBytes = heapBytes;
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var here = joined(label, rendezvous);
    var places = new ArrayList<Long>();
    try {
      var said =
          Agreement.on(
              rendezvous,
              label,
              () -> {
                long place = take(here.room(), label, bytesPerRank);
                places.add(place);
                long own = here.bases().get(rendezvous.place().rank()) + place;
                device.gpu().fill(own, (byte) 0, bytesPerRank);
                return Long.toString(place);
              });
      if (said.stream().distinct().count() > 1) {
        throw new IllegalStateException(
            "%s: ranks have different places in the heap: %s".formatted(label, said));
      }
    } catch (RuntimeException | Error e) {
      places.forEach(place -> giveBack(here.room(), place));
      throw e;
    }
    return memory(here, places.getFirst(), bytesPerRank);
  }

  private static long take(HeapRoom room, String label, long bytes) {
    synchronized (room) {
      return room.take(bytes)
          .orElseThrow(
              () ->
                  new AllocationFailed(
                      "%s needs %d bytes of NVSHMEM's heap where %d are free; close what is not needed, or set BRAID_NVSHMEM_HEAP_MIB higher"
                          .formatted(label, bytes, room.free())));
    }
  }

  private static void giveBack(HeapRoom room, long place) {
    synchronized (room) {
      room.giveBack(place);
    }
  }

  private SymmetricMemory memory(Joined here, long place, long bytesPerRank) {
    var arena = Arena.ofShared();
    List<MemorySegment> parts =
        here.bases().stream()
            .map(base -> CudaDevice.view(base + place, bytesPerRank, arena))
            .toList();
    var free =
        new Once(
            () -> {
              arena.close();
              giveBack(here.room(), place);
            });
    return Parts.anywhere(parts, "nvshmem", free);
  }

  /// NVSHMEM for that group, with which this process joins it if it has not yet.
  Nvshmem nvshmem(String label, Rendezvous rendezvous) {
    return joined(label, rendezvous).nvshmem();
  }

  private synchronized Joined joined(String label, Rendezvous rendezvous) {
    var existing = joined;
    if (existing == null) {
      existing = join(rendezvous);
      joined = existing;
    }
    if (!existing.ranks().equals(rendezvous.ranks())) {
      throw new BraidException(
          "%s: NVSHMEM and its memory belong to the group of ranks %s, with which this process joined it; ranks %s take native memory"
              .formatted(label, existing.ranks(), rendezvous.ranks()));
    }
    return existing;
  }

  private Joined join(Rendezvous rendezvous) {
    int rank = rendezvous.place().rank();
    int size = rendezvous.place().size();
    var ids =
        Agreement.on(
            rendezvous,
            HEAP,
            () -> rank == 0 ? HexFormat.of().formatHex(Nvshmem.uniqueId(heapBytes)) : "");
    var made = new ArrayList<Nvshmem>();
    var bases = new ArrayList<Long>();
    long bytes = heapBytes - heapBytes / 8;
    Agreement.on(
        rendezvous,
        HEAP,
        () -> {
          var nvshmem =
              Nvshmem.open(
                  device.gpu(), rank, size, HexFormat.of().parseHex(ids.getFirst()), heapBytes);
          made.add(nvshmem);
          long own = nvshmem.allocate(bytes);
          for (int member = 0; member < size; member++) {
            bases.add(member == rank ? own : nvshmem.pointer(own, member));
          }
          return "";
        });
    return new Joined(made.getFirst(), rendezvous.ranks(), List.copyOf(bases), new HeapRoom(bytes));
  }

  @Override
  public synchronized void close() {
    var here = joined;
    joined = null;
    if (here != null) {
      here.nvshmem().close();
    }
  }
}
