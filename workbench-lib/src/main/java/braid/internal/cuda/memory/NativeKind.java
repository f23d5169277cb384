package braid.internal.cuda.memory;

import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Closing;
import braid.internal.rank.Once;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.natives.FdMailbox;
import braid.natives.cuda.AddressRange;
import braid.natives.cuda.VirtualMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.TreeSet;

/// CUDA virtual memory. Each rank allocates its part, sends it to the other ranks as a file
/// descriptor, and maps all parts into one address range. The ranks synchronize twice: when every
/// rank has its part and an open mailbox, and when every rank has mapped all parts.
final class NativeKind implements CudaMemoryKind {
  private final CudaDevice device;
  private final String token;
  private final Waits waits;
  private final Duration timeout;

  NativeKind(CudaDevice device, String token, Waits waits, Duration timeout) {
    this.device = device;
    this.token = token;
    this.waits = waits;
    this.timeout = timeout;
  }

  /// Resources of an allocation on one rank, closed in reverse order.
  private static final class Resources implements AutoCloseable {
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();

    <T extends AutoCloseable> T keep(T resource) {
      opened.push(resource);
      return resource;
    }

    @Override
    public void close() {
      Closing.all(opened::poll);
    }
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var gpu = device.gpu();
    int rank = rendezvous.place().rank();
    int size = rendezvous.place().size();
    var name = "%s-%s".formatted(token, rendezvous.unique());
    var resources = new Resources();
    try (var setUp = new Resources()) {
      var prepared = new ArrayList<LocalPart>();
      Agreement.on(
          rendezvous,
          label,
          () -> {
            prepared.add(begin(bytesPerRank, size, box(name, rank), resources, setUp));
            return "";
          });
      var local = prepared.getFirst();
      var own = local.own();
      var range = local.range();
      Agreement.on(
          rendezvous,
          label,
          () -> {
            range.map(rank * own.bytes(), own);
            gpu.fill(range.address() + rank * own.bytes(), (byte) 0, own.bytes());
            fetch(local, name, rank, size, resources);
            return "";
          });
      return memory(range, own.bytes(), bytesPerRank, size, resources);
    } catch (RuntimeException | Error e) {
      Closing.after(e, resources);
      throw e;
    }
  }

  /// Resources of a rank before it has fetched the other ranks' parts.
  private record LocalPart(VirtualMemory own, AddressRange range, FdMailbox box) {}

  private LocalPart begin(long bytes, int size, String box, Resources resources, Resources setUp) {
    var gpu = device.gpu();
    var own = resources.keep(VirtualMemory.create(gpu, bytes));
    var range =
        resources.keep(
            AddressRange.reserve(gpu, own.bytes() * size, gpu.granularity().recommended()));
    return new LocalPart(own, range, setUp.keep(FdMailbox.open(box)));
  }

  private void fetch(LocalPart local, String name, int rank, int size, Resources resources) {
    var own = local.own();
    var others = new TreeSet<Integer>();
    for (int i = 1; i < size; i++) {
      int peer = (rank + i) % size;
      others.add(peer);
      int fd = own.export();
      try {
        local.box().send(box(name, peer), rank, fd);
      } finally {
        FdMailbox.closeFd(fd);
      }
    }
    var fds =
        local.box().receive(others, timeout, () -> waits.check(() -> "memory of the other ranks"));
    for (var each : fds.entrySet()) {
      var peerMemory =
          resources.keep(VirtualMemory.imported(device.gpu(), each.getValue(), own.bytes()));
      local.range().map(each.getKey() * own.bytes(), peerMemory);
    }
  }

  private static String box(String name, int rank) {
    return name + "-" + rank;
  }

  private SymmetricMemory memory(
      AddressRange range, long stride, long bytesPerRank, int size, Resources resources) {
    var arena = Arena.ofShared();
    var parts = new ArrayList<MemorySegment>();
    for (int member = 0; member < size; member++) {
      parts.add(CudaDevice.view(range.address() + member * stride, bytesPerRank, arena));
    }
    var free =
        new Once(
            () -> {
              device.gpu().use();
              arena.close();
              resources.close();
            });
    return stride == bytesPerRank || size == 1
        ? SymmetricMemory.sideBySide(
            CudaDevice.view(range.address(), size * bytesPerRank, arena), bytesPerRank, free)
        : SymmetricMemory.inPieces(
            parts,
            "parts of %d bytes do not lie side by side, since memory is allocated in units of %d; use a multiple of that, or on(rank)"
                .formatted(bytesPerRank, device.gpu().granularity().recommended()),
            free);
  }

  @Override
  public void close() {}
}
