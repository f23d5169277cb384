package braid.model;

import java.util.Locale;

/// Libraries that run whole collectives, for comparison with Braid's own. All of them need the cuda
/// backend.
public enum Library {
  /// NCCL by its kernels: every collective, in every kind of symmetric memory.
  NCCL,
  /// NCCL by copy engines (its zero-CTA policy): all-gather and all-to-all, in [MemoryKind#NCCL]
  /// memory.
  NCCL_COPY_ENGINE,
  /// NVSHMEM's puts on a stream: all-gather, all-to-all and broadcast, in [MemoryKind#NVSHMEM]
  /// memory.
  NVSHMEM;

  /// Returns true if its sums support the type. NCCL adds in its own order and rounds in between,
  /// so its sums may differ from Braid's in the last bits.
  public boolean adds(DType type) {
    return this == NCCL && !type.isFp8();
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
