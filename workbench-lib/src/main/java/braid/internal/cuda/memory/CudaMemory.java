package braid.internal.cuda.memory;

import braid.internal.cuda.device.Communicators;
import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Closing;
import braid.internal.rank.Env;
import braid.internal.rank.Waits;
import braid.internal.resource.FreeSpace;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.MemoryKind;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.VirtualMemory;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import braid.natives.nvshmem.Nvshmem;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/// The kinds of symmetric memory of this rank.
public final class CudaMemory implements AutoCloseable {
  private final CudaDevice device;
  private final Env env;
  private final AutoKind auto;
  private final Map<MemoryKind, CudaMemoryKind> kinds = new EnumMap<>(MemoryKind.class);
  private final NvshmemKind nvshmem;

  public CudaMemory(
      CudaDevice device, Env env, String token, Waits waits, Communicators communicators) {
    this.device = device;
    this.env = env;
    this.auto = new AutoKind(this::virtualMemory, System.out::println);
    var natives = new NativeKind(device, token, waits, env.timeout());
    this.nvshmem = new NvshmemKind(device, env.world().size(), env.nvshmemHeapBytes());
    kinds.put(MemoryKind.NATIVE, natives);
    kinds.put(MemoryKind.IPC, new IpcKind(device));
    kinds.put(MemoryKind.NCCL, new NcclKind(natives, communicators));
    kinds.put(MemoryKind.NVSHMEM, nvshmem);
  }

  /// Returns the kind that is allocated for the requested one.
  public MemoryKind resolve(MemoryKind requested) {
    if (requested == MemoryKind.AUTO) {
      return auto.take();
    }
    var reason = missing(requested);
    if (reason.isPresent()) {
      throw new BraidException(
          "memory kind %s is not available: %s; use auto or another kind"
              .formatted(requested, reason.get()));
    }
    return requested;
  }

  /// Reason why the kind is not available; empty if it is.
  public Optional<String> missing(MemoryKind kind) {
    return switch (kind) {
      case AUTO, IPC -> Optional.empty();
      case NATIVE -> virtualMemory();
      case NCCL ->
          virtualMemory()
              .or(CudaMemory::missingNccl)
              .or(() -> refusal(kind))
              .or(
                  () ->
                      sharing(
                          "NCCL takes ranks that share a GPU for hosts, which have no windows"));
      case NVSHMEM -> Libraries.missing(Libraries.Library.NVSHMEM).or(() -> refusal(kind));
    };
  }

  /// Feature of the driver or of a library that the kind needs on GPUs.
  public static Feature feature(MemoryKind kind) {
    return switch (kind) {
      case AUTO, NATIVE, IPC -> Feature.RANKS;
      case NCCL -> Feature.NCCL_COPY_ENGINES;
      case NVSHMEM -> Feature.NVSHMEM;
    };
  }

  /// Reason why NCCL's collectives are not available; empty if they are.
  public static Optional<String> missingNccl() {
    return Libraries.missing(Libraries.Library.NCCL);
  }

  /// Reason why the kind's library is too old; empty if it is not.
  private static Optional<String> refusal(MemoryKind kind) {
    var feature = feature(kind);
    return feature
        .component()
        .library()
        .flatMap(Libraries::find)
        .flatMap(found -> feature.refusal(found.version()));
  }

  private Optional<String> sharing(String reason) {
    return device.ranks() > 1 ? Optional.of(reason) : Optional.empty();
  }

  private Optional<String> virtualMemory() {
    return VirtualMemory.supported(device.gpu())
        ? Optional.empty()
        : Optional.of("this GPU's driver cannot export virtual memory as file descriptors");
  }

  public SymmetricMemory allocate(
      MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous) {
    var maker = kinds.get(kind);
    if (maker == null) {
      throw new IllegalArgumentException("no memory of kind " + kind);
    }
    return maker.allocate(label, bytesPerRank, rendezvous);
  }

  /// Returns whether an outcome that members exchange while they allocate is a failure.
  public static boolean isFailure(String outcome) {
    return Agreement.isFailure(outcome);
  }

  /// Returns the memory that the members on this rank's GPU share, and this rank's NVSHMEM heap if
  /// the kind is allocated there.
  public List<FreeSpace> freeSpaces(MemoryKind kind, List<Integer> ranks) {
    var gpu = device.gpu();
    var sharing =
        IntStream.range(0, ranks.size())
            .filter(member -> env.hasSameGpu(ranks.get(member), Gpu.count()))
            .boxed()
            .toList();
    var name = "the memory of GPU %d".formatted(gpu.device());
    long free = gpu.freeBytes();
    return switch (kind) {
      case AUTO, NATIVE, NCCL ->
          List.of(new FreeSpace(name, free, sharing, gpu.granularity().recommended(), 1));
      case IPC -> List.of(new FreeSpace(name, free, sharing, IpcKind.BLOCK_BYTES, 1));
      case NVSHMEM -> {
        long joining = sharing.size() * nvshmem.joiningBytes();
        yield List.of(
            nvshmem.space(ranks, ranks.indexOf(env.world().rank())),
            new FreeSpace(name, free - joining, sharing, 0, 1));
      }
    };
  }

  /// Returns NVSHMEM, whose processing elements are the ranks of the world. Collective: all members
  /// of the group call it together.
  public Nvshmem nvshmem(Rendezvous rendezvous) {
    return nvshmem.nvshmem("collectives by nvshmem", rendezvous);
  }

  /// Zeroes this rank's part.
  public void zero(MemorySegment part) {
    device.gpu().fill(part.address(), (byte) 0, part.byteSize());
  }

  @Override
  public void close() {
    var left = new ArrayDeque<AutoCloseable>(List.copyOf(kinds.values()));
    Closing.all(left::poll);
  }
}
