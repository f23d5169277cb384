package braid.internal.cuda.memory;

import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Closing;
import braid.internal.rank.Once;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.natives.cuda.Ipc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/// Ordinary device memory, shared by CUDA IPC handles. Every rank maps the others' parts wherever
/// the driver puts them, so there is no view of all in one piece.
final class IpcKind implements CudaMemoryKind {
  /// Size of the driver's blocks: smaller allocations share a block, and a handle is of a whole
  /// block.
  static final long BLOCK_BYTES = 2L << 20;

  private final CudaDevice device;

  IpcKind(CudaDevice device) {
    this.device = device;
  }

  @Override
  public SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous) {
    var gpu = device.gpu();
    int rank = rendezvous.place().rank();
    var opened = new ArrayList<Long>();
    var own = new ArrayList<Long>();
    Runnable undo = () -> free(opened, own);
    try {
      var handles =
          Agreement.on(
              rendezvous,
              label,
              () -> {
                long bytes = (bytesPerRank + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
                long address = gpu.allocate(bytes);
                own.add(address);
                gpu.fill(address, (byte) 0, bytes);
                return HexFormat.of().formatHex(Ipc.export(gpu, address));
              });
      var addresses = new ArrayList<Long>();
      Agreement.on(
          rendezvous,
          label,
          () -> {
            for (int member = 0; member < handles.size(); member++) {
              addresses.add(member == rank ? own.getFirst() : open(handles.get(member), opened));
            }
            return "";
          });
      return memory(addresses, bytesPerRank, undo);
    } catch (RuntimeException | Error e) {
      Closing.after(e, undo::run);
      throw e;
    }
  }

  private void free(List<Long> opened, List<Long> own) {
    var gpu = device.gpu();
    var parts = new ArrayDeque<AutoCloseable>();
    opened.forEach(address -> parts.add(() -> Ipc.close(gpu, address)));
    opened.clear();
    own.forEach(address -> parts.add(() -> gpu.free(address)));
    own.clear();
    Closing.all(parts::poll);
  }

  private long open(String handle, List<Long> opened) {
    long address = Ipc.open(device.gpu(), HexFormat.of().parseHex(handle));
    opened.add(address);
    return address;
  }

  private static SymmetricMemory memory(List<Long> addresses, long bytesPerRank, Runnable undo) {
    var arena = Arena.ofShared();
    List<MemorySegment> parts =
        addresses.stream().map(address -> CudaDevice.view(address, bytesPerRank, arena)).toList();
    var free =
        new Once(
            () -> {
              arena.close();
              undo.run();
            });
    return CudaMemoryKind.scattered(parts, "ipc", free);
  }

  @Override
  public void close() {}
}
