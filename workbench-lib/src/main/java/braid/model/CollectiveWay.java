package braid.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Implementations of standalone collectives.
public enum CollectiveWay {
  /// Every rank fetches by its copy engines; the default.
  COPY_ENGINE(Transport.COPY_ENGINE, null),
  /// Every rank fetches by its compute units: `over(WORKERS)`.
  WORKERS(Transport.WORKERS, null),
  /// Every rank fetches, or adds what it reads in place, in the kernel that exchanges the signals:
  /// `over(ONE_KERNEL)`.
  ONE_KERNEL(Transport.ONE_KERNEL, null),
  /// Every rank writes into the others by its copy engines: `pushing()`.
  PUSHING(Transport.COPY_ENGINE, null),
  /// `by(NCCL)`.
  NCCL(Transport.COPY_ENGINE, Library.NCCL),
  /// `by(NCCL_COPY_ENGINE)`.
  NCCL_COPY_ENGINE(Transport.COPY_ENGINE, Library.NCCL_COPY_ENGINE),
  /// `by(NVSHMEM)`.
  NVSHMEM(Transport.COPY_ENGINE, Library.NVSHMEM);

  private final Transport transport;
  private final Optional<Library> library;

  CollectiveWay(Transport transport, @Nullable Library library) {
    this.transport = transport;
    this.library = Optional.ofNullable(library);
  }

  public static CollectiveWay of(Transport transport) {
    return switch (transport) {
      case COPY_ENGINE -> COPY_ENGINE;
      case WORKERS -> WORKERS;
      case ONE_KERNEL -> ONE_KERNEL;
    };
  }

  public static CollectiveWay of(Library library) {
    return Arrays.stream(values())
        .filter(way -> way.library.equals(Optional.of(library)))
        .findFirst()
        .orElseThrow();
  }

  /// Returns the transport of the copies on its streams.
  public Transport transport() {
    return transport;
  }

  /// Returns the library, if Braid's own copies are not used.
  public Optional<Library> library() {
    return library;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
