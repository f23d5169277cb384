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
