package braid;

import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.MemoryKind;
import braid.model.Transport;
import braid.natives.kernels.ReduceArguments;

/// Collectives that a backend offers, by route and kind of memory. The table of capabilities and
/// the checks of calls both use it.
record CollectiveRules(boolean cuda) {
  private static final String NEEDS_GPU_MEMORY = "needs CUDA; on the host use native";

  static CollectiveRules of(BackendKind backend) {
    return new CollectiveRules(isCuda(backend));
  }

  /// Returns true for the CUDA backend.
  static boolean isCuda(BackendKind backend) {
    return switch (backend) {
      case HOST -> false;
      case CUDA -> true;
      case AUTO ->
          throw new BraidException(
              "a backend must be host or cuda but was %s; ask for one of them".formatted(backend));
    };
  }

  /// Returns why the combination is not available; empty if it is.
  String unsupported(Collective collective, CollectiveWay way, MemoryKind kind) {
    if (!cuda && way.library().isPresent()) {
      return "needs CUDA; on the host call over(COPY_ENGINE) or pushing()";
    }
    var none = none(collective, way);
    if (!none.isEmpty()) {
      return none;
    }
    if (!cuda && kind != MemoryKind.NATIVE) {
      return NEEDS_GPU_MEMORY;
    }
    return collective == Collective.BARRIER ? "" : unreachable(way.transport(), kind);
  }

  private static String none(Collective collective, CollectiveWay way) {
    boolean adds = collective.adds();
    boolean message = collective.isMessage();
    return switch (way) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL -> "";
      case PUSHING ->
          adds
              ? "sums are fetched by the rank that adds them; call over(COPY_ENGINE)"
              : message ? messages() : "";
      case NCCL_KERNELS -> message ? messages() : "";
      case NCCL_SYMMETRIC ->
          message
              ? messages()
              : collective == Collective.ALL_TO_ALL || collective == Collective.BROADCAST
                  ? "NCCL has no symmetric kernel for it; call over(NCCL_KERNELS)"
                  : collective == Collective.REDUCE_SCATTER ? Transport.WRONG_SYMMETRIC_SUM : "";
      case NCCL_COPY_ENGINE ->
          message
              ? messages()
              : adds || collective == Collective.BROADCAST
                  ? "NCCL has it by kernels only; call over(NCCL_KERNELS)"
                  : "";
      case NVSHMEM_PUTS ->
          message
              ? messages()
              : adds
                  ? "NVSHMEM's puts do not add; call over(COPY_ENGINE) or over(NCCL_KERNELS)"
                  : "";
    };
  }

  /// Returns why the parts of that number of ranks cannot be added in one step; empty if they can.
  /// Rings, which add two parts per step, and libraries have no such limit.
  String unaddable(int ranks) {
    return cuda && ranks > ReduceArguments.MOST_PARTS
        ? "sums on GPUs must be of at most %d ranks but the group has %d"
            .formatted(ReduceArguments.MOST_PARTS, ranks)
        : "";
  }

  private static String messages() {
    return "a message is matched and fetched by its receiver; call over(COPY_ENGINE)";
  }

  /// Returns why a transport does not reach a kind of memory; empty if it does.
  static String unreachable(Transport transport, MemoryKind kind) {
    return transport
        .memory()
        .filter(needed -> needed != kind)
        .map(
            needed ->
                needed == MemoryKind.NCCL
                    ? "needs memory in NCCL's windows; take memory(NCCL)"
                    : "needs memory in NVSHMEM's heap; take memory(NVSHMEM)")
        .orElse("");
  }

  /// Names the unit that moves the bytes.
  static String engine(boolean cuda, Transport transport) {
    return switch (transport) {
      case COPY_ENGINE ->
          cuda
              ? "copy engine: DMA between GPUs, no multiprocessor"
              : "a thread that sleeps while the link is busy";
      case WORKERS ->
          cuda
              ? "Braid's copy kernels, one block per worker, in bulk where possible"
              : "threads that keep the rank's cores busy while the link is";
      case ONE_KERNEL ->
          cuda
              ? "the kernel that exchanges the signals, and adds, reads or writes peers' memory"
              : "the thread of the lane, which keeps its core busy while the link is";
      case NCCL_KERNELS -> "NCCL's kernels, on as many multiprocessors as it chooses";
      case NCCL_COPY_ENGINE -> "copy engine, driven by NCCL";
      case NCCL_SYMMETRIC -> "NCCL's symmetric kernels, on few multiprocessors";
      case NVSHMEM_PUTS -> "NVSHMEM's puts: copy engine, or its own kernel";
      case CUBLASMP -> "cuBLASMp, in the call that multiplies";
    };
  }

  String engine(Collective collective, CollectiveWay way) {
    if (collective == Collective.BARRIER) {
      return "signals; nothing is moved";
    }
    if (collective == Collective.SEND) {
      return "the receiver's";
    }
    return engine(cuda, way.transport());
  }

  static String note(Collective collective, CollectiveWay way) {
    return switch (way) {
      case COPY_ENGINE, WORKERS, ONE_KERNEL -> pulled(collective);
      case PUSHING ->
          switch (collective) {
            case ALL_TO_ALL -> "x and y are two tensors";
            case BARRIER -> "";
            default -> "written into the others, not fetched";
          };
      case NCCL_KERNELS, NCCL_SYMMETRIC ->
          switch (collective) {
            case REDUCE_SCATTER, ALL_REDUCE -> "adds in NCCL's order; fp32, bf16 and fp16";
            case ALL_TO_ALL -> "x and y are two tensors";
            default -> "";
          };
      case NCCL_COPY_ENGINE, NVSHMEM_PUTS ->
          collective == Collective.ALL_TO_ALL ? "x and y are two tensors" : "";
    };
  }

  private static String pulled(Collective collective) {
    return switch (collective) {
      case ALL_GATHER -> "every rank fetches from all others";
      case REDUCE_SCATTER -> "adds in fp32 in the order of the ranks, rounds once";
      case ALL_REDUCE ->
          "twoShot(): sums by their owners, then to all; oneShot(): by every rank; also in place";
      case ALL_TO_ALL -> "x and y are two tensors";
      case BROADCAST -> "every rank fetches from the root";
      case SEND -> "returns when it is received; in rings call sendReceive";
      case RECEIVE -> "copies out of the sender's tensor";
      case BARRIER -> "";
    };
  }
}
