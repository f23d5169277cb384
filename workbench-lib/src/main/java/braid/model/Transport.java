package braid.model;

import java.util.Locale;
import java.util.Optional;

/// Units that move the bytes: Braid's own copies, or a library that runs whole collectives. The
/// libraries need the cuda backend.
public enum Transport {
  /// Copy engines read and write the peers' symmetric memory; no compute unit takes part.
  COPY_ENGINE,
  /// Compute units read and write it, [Overlap#workers] of them per rank: the GEMM cannot use them
  /// while the link is busy.
  WORKERS,
  /// Compute units read and write it in the kernel that raises and awaits the signals too: one
  /// launch per step, for small messages. The kernel occupies its units while it waits for peers.
  ONE_KERNEL,
  /// NCCL's ordinary kernels: every collective, in every kind of symmetric memory.
  NCCL_KERNELS,
  /// NCCL by copy engines (its zero-CTA policy): all-gather and all-to-all, in [MemoryKind#NCCL]
  /// memory.
  NCCL_COPY_ENGINE,
  /// NCCL's symmetric kernels, which read and write peers' windows on few compute units: all-gather
  /// and all-reduce, in [MemoryKind#NCCL] memory.
  NCCL_SYMMETRIC,
  /// NVSHMEM's puts on a stream: all-gather, all-to-all and broadcast, in [MemoryKind#NVSHMEM]
  /// memory.
  NVSHMEM_PUTS,
  /// cuBLASMp: one call multiplies and exchanges, in the library's own overlap. For GEMMs only, in
  /// every kind of symmetric memory. Not tried on GPUs.
  CUBLASMP;

  /// NCCL's symmetric kernels read right numbers only from addresses that are multiples of this: in
  /// NCCL 2.28 the one for small messages shifts 8-bit and 16-bit numbers of others wrongly. The
  /// parts of a reduce-scatter begin at such addresses too.
  public static final int SYMMETRIC_ALIGNMENT_BYTES = 4;

  /// Why NCCL's symmetric reduce-scatter is not used.
  public static final String WRONG_SYMMETRIC_SUM =
      "NCCL's symmetric reduce-scatter returns wrong sums of 16-bit parts of an odd length; take over(NCCL_KERNELS)";

  /// Returns whether a library moves the bytes, in whole collectives.
  public boolean isLibrary() {
    return switch (this) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL -> false;
      case NCCL_KERNELS, NCCL_COPY_ENGINE, NCCL_SYMMETRIC, NVSHMEM_PUTS, CUBLASMP -> true;
    };
  }

  /// Returns whether one call of the library multiplies too, in place of a multiplication and a
  /// collective.
  public boolean multiplies() {
    return this == CUBLASMP;
  }

  /// Returns whether one call of the library multiplies numbers of a type too.
  public boolean multiplies(DType type) {
    return multiplies()
        && switch (type) {
          case FP32, BF16, FP16 -> true;
          case TF32, FP8_E4M3, FP8_E5M2 -> false;
        };
  }

  /// Returns the only kind of symmetric memory that it reaches; empty if it reaches every kind.
  public Optional<MemoryKind> memory() {
    return switch (this) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL, NCCL_KERNELS, CUBLASMP -> Optional.empty();
      case NCCL_COPY_ENGINE, NCCL_SYMMETRIC -> Optional.of(MemoryKind.NCCL);
      case NVSHMEM_PUTS -> Optional.of(MemoryKind.NVSHMEM);
    };
  }

  /// Returns whether it adds numbers of a type. A library adds in its own order and may round in
  /// between, so its sums may differ from Braid's in the last bits.
  public boolean adds(DType type) {
    return switch (this) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL -> true;
      case NCCL_KERNELS, NCCL_SYMMETRIC, CUBLASMP -> !type.isFp8();
      case NCCL_COPY_ENGINE, NVSHMEM_PUTS -> false;
    };
  }

  /// Returns why a library cannot run a method of a pattern; empty if it can, and for Braid's own
  /// transports.
  public String unsupported(GemmSpec.Pattern pattern, Method method) {
    if (!isLibrary()) {
      return "";
    }
    boolean adds =
        switch (pattern) {
          case ALL_GATHER_GEMM, GEMM_BESIDE_ALL_GATHER -> false;
          case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE, GEMM_BESIDE_REDUCE_SCATTER -> true;
        };
    if (adds && !adds(DType.FP32)) {
      return "it does not add; take over(NCCL_KERNELS), or over(COPY_ENGINE)";
    }
    if (this == NCCL_SYMMETRIC
        && (pattern == GemmSpec.Pattern.GEMM_REDUCE_SCATTER
            || pattern == GemmSpec.Pattern.GEMM_BESIDE_REDUCE_SCATTER)) {
      return WRONG_SYMMETRIC_SUM;
    }
    if (multiplies() && (pattern.beside() || method != Method.PIPELINED)) {
      return pattern.beside()
          ? "it multiplies and exchanges the same data in one call; take over(NCCL_KERNELS)"
          : "it overlaps in its own way, in one call; take pipelined(1)";
    }
    return switch (method) {
      case BULK, UNFUSED -> "";
      case PIPELINED ->
          pattern.beside()
              ? "other data is gathered or added in one call, beside the multiplication; take bulk()"
              : "";
      case DIRECT, RING, DOUBLING, TWO_LEVEL ->
          "a library runs whole collectives; take %s, or over(COPY_ENGINE)"
              .formatted(pattern.beside() ? "bulk()" : "pipelined(n)");
    };
  }

  /// Returns the library that runs a method of a pattern where this one lacks it; empty if this one
  /// has it, or no other does.
  public Optional<Transport> replacement(GemmSpec.Pattern pattern, Method method) {
    return Optional.of(NCCL_KERNELS)
        .filter(
            library ->
                !unsupported(pattern, method).isEmpty()
                    && library.unsupported(pattern, method).isEmpty());
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
