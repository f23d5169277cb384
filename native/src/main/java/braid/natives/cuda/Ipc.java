package braid.natives.cuda;

import org.bytedeco.cuda.cudart.CUipcMemHandle_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.SizeTPointer;

/// Shares memory of `Gpu.allocate` between processes by an opaque handle. The process that exported
/// a handle cannot open it.
public final class Ipc {
  private Ipc() {}

  /// Returns the handle of a whole allocation.
  public static byte[] export(Gpu gpu, long address) {
    gpu.use();
    var base = new long[1];
    try (var size = new SizeTPointer(1);
        var handle = new CUipcMemHandle_v1()) {
      gpu.check("cuMemGetAddressRange", cudart.cuMemGetAddressRange(base, size, address));
      if (base[0] != address) {
        throw new IllegalArgumentException(
            ("a handle exports a whole allocation but the address is %d bytes into one of %d;"
                    + " export its first address")
                .formatted(address - base[0], size.get()));
      }
      gpu.check("cuIpcGetMemHandle", cudart.cuIpcGetMemHandle(handle, address));
      var bytes = new byte[cudart.CU_IPC_HANDLE_SIZE];
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] = handle.reserved(i);
      }
      return bytes;
    }
  }

  /// Maps another process's allocation into this one, with access for this device.
  public static long open(Gpu gpu, byte[] handle) {
    if (handle.length != cudart.CU_IPC_HANDLE_SIZE) {
      throw new IllegalArgumentException(
          "a handle has %d bytes but this one has %d"
              .formatted(cudart.CU_IPC_HANDLE_SIZE, handle.length));
    }
    gpu.use();
    try (var copy = new CUipcMemHandle_v1()) {
      for (int i = 0; i < handle.length; i++) {
        copy.reserved(i, handle[i]);
      }
      var address = new long[1];
      gpu.check(
          "cuIpcOpenMemHandle",
          cudart.cuIpcOpenMemHandle(address, copy, cudart.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
      return address[0];
    }
  }

  public static void close(Gpu gpu, long address) {
    gpu.release("cuIpcCloseMemHandle", () -> cudart.cuIpcCloseMemHandle(address));
  }
}
