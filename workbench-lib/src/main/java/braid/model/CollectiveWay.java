package braid.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/// Implementations of standalone collectives.
public enum CollectiveWay {
  /// Every rank fetches by its copy engines; the default.
  COPY_ENGINE(Transport.COPY_ENGINE),
  /// Every rank fetches by its compute units: `over(WORKERS)`.
  WORKERS(Transport.WORKERS),
  /// Every rank fetches, or adds what it reads in place, in the kernel that exchanges the signals:
  /// `over(ONE_KERNEL)`.
  ONE_KERNEL(Transport.ONE_KERNEL),
  /// Every rank writes into the others by its copy engines: `pushing()`.
  PUSHING(Transport.COPY_ENGINE),
  /// `over(NCCL_KERNELS)`.
  NCCL_KERNELS(Transport.NCCL_KERNELS),
  /// `over(NCCL_COPY_ENGINE)`.
  NCCL_COPY_ENGINE(Transport.NCCL_COPY_ENGINE),
  /// `over(NCCL_SYMMETRIC)`.
  NCCL_SYMMETRIC(Transport.NCCL_SYMMETRIC),
  /// `over(NVSHMEM_PUTS)`.
  NVSHMEM_PUTS(Transport.NVSHMEM_PUTS);

  private final Transport transport;

  CollectiveWay(Transport transport) {
    this.transport = transport;
  }

  /// Returns the way over a transport; over copy engines every rank fetches.
  public static CollectiveWay of(Transport transport) {
    return Arrays.stream(values())
        .filter(way -> way.transport == transport)
        .findFirst()
        .orElseThrow();
  }

  public Transport transport() {
    return transport;
  }

  /// Returns the transport if it is a library, so that Braid's own copies are not used.
  public Optional<Transport> library() {
    return Optional.of(transport).filter(Transport::isLibrary);
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
