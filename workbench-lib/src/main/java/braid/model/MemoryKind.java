package braid.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/// Kinds of symmetric memory.
public enum MemoryKind {
  /// The backend's choice; only this kind resolves to another.
  AUTO,
  /// CUDA virtual memory; on the host backend, shared memory of the machine.
  NATIVE,
  /// CUDA IPC handles.
  IPC,
  /// NCCL windows.
  NCCL,
  /// NVSHMEM's symmetric heap.
  NVSHMEM;

  /// Hosts whose ranks can share memory.
  public enum Span {
    ONE_HOST("one host"),
    SEVERAL_HOSTS("several hosts"),
    BOTH("one host or more");

    private final String words;

    Span(String words) {
      this.words = words;
    }

    /// Returns true if ranks of that number of hosts can share the memory.
    public boolean covers(int hosts) {
      return switch (this) {
        case ONE_HOST -> hosts == 1;
        case SEVERAL_HOSTS -> hosts > 1;
        case BOTH -> true;
      };
    }

    @Override
    public String toString() {
      return words;
    }
  }

  /// Hosts whose ranks can share memory of this kind. UCX reaches other hosts between CPUs, and
  /// messages by NCCL between GPUs, in native memory. A handle or a window is of one host, and
  /// NVSHMEM runs without a network transport.
  public Span span(BackendKind backend) {
    return backend == BackendKind.HOST || this == NATIVE ? Span.BOTH : Span.ONE_HOST;
  }

  /// Returns the kind of that name, in any case.
  public static MemoryKind parse(String name) {
    return Arrays.stream(values())
        .filter(kind -> kind.name().equalsIgnoreCase(name.strip()))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "a memory kind must be one of %s but was %s".formatted(known(), name)));
  }

  private static String known() {
    return Arrays.stream(values()).map(MemoryKind::toString).collect(Collectors.joining(", "));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
