package braid.natives.cuda;

import braid.natives.LibC;
import org.bytedeco.cuda.cudart.CUmemAllocationProp_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.SizeTPointer;

/// One physical allocation that processes share by file descriptor: created on this GPU, or
/// imported from another process.
public final class VirtualMemory implements AutoCloseable {
  private final Gpu gpu;
  private final long handle;
  private final long bytes;
  private boolean closed;

  private VirtualMemory(Gpu gpu, long handle, long bytes) {
    this.gpu = gpu;
    this.handle = handle;
    this.bytes = bytes;
  }

  /// Allocation granularity. Sizes and offsets must be multiples of `minimum`; multiples of
  /// `recommended` are faster, and NCCL windows need them.
  public record Granularity(long minimum, long recommended) {}

  /// Returns true if this device has memory that can be shared by file descriptor.
  public static boolean supported(Gpu gpu) {
    return gpu.attribute(cudart.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0
        && gpu.attribute(cudart.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)
            != 0;
  }

  /// Allocates on this GPU; the size is rounded up to the recommended granularity.
  public static VirtualMemory create(Gpu gpu, long bytes) {
    gpu.use();
    var each = gpu.granularity().recommended();
    var rounded = (Math.max(bytes, 1) + each - 1) / each * each;
    try (var properties = properties(gpu)) {
      var handle = new long[1];
      gpu.checkMemory("cuMemCreate", cudart.cuMemCreate(handle, rounded, properties, 0), rounded);
      return new VirtualMemory(gpu, handle[0], rounded);
    }
  }

  /// Imports an allocation of `bytes` from another process. Closes the descriptor, which is not
  /// needed afterwards.
  public static VirtualMemory imported(Gpu gpu, int fd, long bytes) {
    try {
      gpu.use();
      var handle = new long[1];
      gpu.check(
          "cuMemImportFromShareableHandle",
          cudart.cuMemImportFromShareableHandle(
              handle, new Address(fd), cudart.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
      return new VirtualMemory(gpu, handle[0], bytes);
    } finally {
      LibC.closeDescriptor(fd);
    }
  }

  /// Returns a file descriptor for this memory, which the caller closes.
  public int export() {
    gpu.use();
    try (var fd = new IntPointer(1)) {
      gpu.check(
          "cuMemExportToShareableHandle",
          cudart.cuMemExportToShareableHandle(
              fd, handle, cudart.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
      return fd.get();
    }
  }

  public long handle() {
    return handle;
  }

  public long bytes() {
    return bytes;
  }

  /// Releases the handle; mappings keep the memory.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.release("cuMemRelease", () -> cudart.cuMemRelease(handle));
    }
  }

  static Granularity granularity(Gpu gpu) {
    gpu.use();
    try (var properties = properties(gpu)) {
      return new Granularity(
          granularity(gpu, properties, cudart.CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          granularity(gpu, properties, cudart.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    }
  }

  private static long granularity(Gpu gpu, CUmemAllocationProp_v1 properties, int option) {
    try (var bytes = new SizeTPointer(1)) {
      gpu.check(
          "cuMemGetAllocationGranularity",
          cudart.cuMemGetAllocationGranularity(bytes, properties, option));
      return bytes.get();
    }
  }

  private static CUmemAllocationProp_v1 properties(Gpu gpu) {
    var properties = new CUmemAllocationProp_v1();
    properties
        .type(cudart.CU_MEM_ALLOCATION_TYPE_PINNED)
        .requestedHandleTypes(cudart.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        .win32HandleMetaData(null)
        .allocFlags_compressionType((byte) cudart.CU_MEM_ALLOCATION_COMP_NONE)
        .allocFlags_gpuDirectRDMACapable((byte) 0)
        .allocFlags_usage((short) 0);
    for (int i = 0; i < 4; i++) {
      properties.allocFlags_reserved(i, (byte) 0);
    }
    properties.location().type(cudart.CU_MEM_LOCATION_TYPE_DEVICE).id(gpu.device());
    return properties;
  }
}
