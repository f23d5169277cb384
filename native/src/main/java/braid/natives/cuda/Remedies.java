package braid.natives.cuda;

import org.bytedeco.cuda.global.cudart;

/// Remedies for driver errors, if known.
final class Remedies {
  private Remedies() {}

  static String of(int code) {
    return switch (code) {
      case cudart.CUDA_ERROR_OUT_OF_MEMORY -> "free memory or allocate less";
      case cudart.CUDA_ERROR_NO_DEVICE ->
          "start the container with the host's GPUs, and check that CUDA_VISIBLE_DEVICES is not empty";
      case cudart.CUDA_ERROR_INVALID_DEVICE ->
          "start fewer ranks, or add devices to CUDA_VISIBLE_DEVICES";
      case cudart.CUDA_ERROR_DEVICE_UNAVAILABLE ->
          "another process uses the device exclusively; end it, or set the compute mode to default; clients of MPS need CUDA_DEVICE_MAX_CONNECTIONS";
      case cudart.CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED ->
          "clients of MPS share one pool of hardware queues; lower CUDA_DEVICE_MAX_CONNECTIONS, end other clients, or unset it to run without MPS";
      case cudart.CUDA_ERROR_ILLEGAL_ADDRESS,
          cudart.CUDA_ERROR_MISALIGNED_ADDRESS,
          cudart.CUDA_ERROR_ILLEGAL_INSTRUCTION,
          cudart.CUDA_ERROR_INVALID_ADDRESS_SPACE,
          cudart.CUDA_ERROR_INVALID_PC,
          cudart.CUDA_ERROR_HARDWARE_STACK_ERROR,
          cudart.CUDA_ERROR_ASSERT,
          cudart.CUDA_ERROR_LAUNCH_TIMEOUT,
          cudart.CUDA_ERROR_LAUNCH_FAILED ->
          "earlier work on this device failed and the context is lost; restart the ranks";
      case cudart.CUDA_ERROR_ECC_UNCORRECTABLE,
          cudart.CUDA_ERROR_NVLINK_UNCORRECTABLE,
          cudart.CUDA_ERROR_CONTAINED ->
          "the hardware failed and the context is lost; check dmesg, then restart the ranks";
      case cudart.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ->
          "launch fewer threads per block, or with less shared memory";
      case cudart.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE ->
          "launch no more blocks than can run at once";
      case cudart.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          cudart.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          cudart.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ->
          "calls that allocate, free, register, synchronize or use the default stream cannot be"
              + " captured; do them before the capture";
      case cudart.CUDA_ERROR_STREAM_CAPTURE_UNJOINED ->
          "every forked stream must be joined before the capture ends; make the first"
              + " stream await an event of each";
      case cudart.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cudart.CUDA_ERROR_STREAM_CAPTURE_MERGE ->
          "captured work may only await events that are recorded in the same capture";
      case cudart.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
          cudart.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ->
          "end a capture on the stream and the thread that began it";
      case cudart.CUDA_ERROR_CAPTURED_EVENT ->
          "an event recorded in a capture can be neither queried nor timed";
      case cudart.CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
          cudart.CUDA_ERROR_UNSUPPORTED_PTX_VERSION ->
          "the driver is older than the libraries; install a newer driver";
      case cudart.CUDA_ERROR_STUB_LIBRARY ->
          "the library is the toolkit's stub; take its folder out of LD_LIBRARY_PATH";
      case cudart.CUDA_ERROR_NO_BINARY_FOR_GPU, cudart.CUDA_ERROR_INVALID_IMAGE ->
          "the kernel was compiled for another architecture";
      case cudart.CUDA_ERROR_JIT_COMPILER_NOT_FOUND ->
          "the driver's libnvidia-ptxjitcompiler is missing; load a cubin instead of PTX";
      case cudart.CUDA_ERROR_SYSTEM_NOT_READY ->
          "start nvidia-fabricmanager, which must run before GPUs joined by switches can be used";
      case cudart.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
          cudart.CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE ->
          "the driver's library does not fit the loaded kernel module; take compat folders out of"
              + " LD_LIBRARY_PATH, or restart the host after an update";
      case cudart.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ->
          "these two devices cannot reach each other; see nvidia-smi topo -p2p r";
      case cudart.CUDA_ERROR_NOT_PERMITTED ->
          "the system does not permit it; a container may need --ipc=host or more capabilities";
      default -> "";
    };
  }

  static String ofMemory(long requested, long free, long total) {
    return "%d bytes were requested but %d of %d are free; free memory or allocate less"
        .formatted(requested, free, total);
  }
}
