package braid.natives.cuda;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.cudart.CUmemAccessDesc_v1;
import org.bytedeco.cuda.global.cudart;

/// A reserved address range into which physical allocations are mapped side by side: the contiguous
/// view of the memory of all ranks.
public final class AddressRange implements AutoCloseable {
  private final Gpu gpu;
  private final long address;
  private final long bytes;
  private final List<Mapping> mappings = new ArrayList<>();
  private boolean closed;

  private record Mapping(long address, long bytes) {}

  private AddressRange(Gpu gpu, long address, long bytes) {
    this.gpu = gpu;
    this.address = address;
    this.bytes = bytes;
  }

  /// Reserves a range. With `alignment` 0 the driver chooses the alignment.
  public static AddressRange reserve(Gpu gpu, long bytes, long alignment) {
    gpu.use();
    var address = new long[1];
    gpu.check("cuMemAddressReserve", cudart.cuMemAddressReserve(address, bytes, alignment, 0, 0));
    return new AddressRange(gpu, address[0], bytes);
  }

  public long address() {
    return address;
  }

  /// Maps a whole allocation, with read and write access for this device.
  public void map(long offset, VirtualMemory memory) {
    if (offset < 0 || offset > bytes - memory.bytes()) {
      throw new IllegalArgumentException(
          "%d bytes at %d do not fit a range of %d".formatted(memory.bytes(), offset, bytes));
    }
    gpu.use();
    var index = address + offset;
    gpu.check("cuMemMap", cudart.cuMemMap(index, memory.bytes(), 0, memory.handle(), 0));
    mappings.add(new Mapping(index, memory.bytes()));
    try (var access = new CUmemAccessDesc_v1()) {
      access.location().type(cudart.CU_MEM_LOCATION_TYPE_DEVICE).id(gpu.device());
      access.flags(cudart.CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      gpu.check("cuMemSetAccess", cudart.cuMemSetAccess(index, memory.bytes(), access, 1));
    }
  }

  /// Unmaps all allocations and frees the range. No work may still use it.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    for (Mapping mapping : mappings) {
      gpu.release("cuMemUnmap", () -> cudart.cuMemUnmap(mapping.address(), mapping.bytes()));
    }
    gpu.release("cuMemAddressFree", () -> cudart.cuMemAddressFree(address, bytes));
  }
}
