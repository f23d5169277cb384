package braid.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/// Kinds of backends.
public enum BackendKind {
  /// GPUs if the machine has one per rank, else the host; only requested, never in use.
  AUTO,
  /// Threads and shared memory.
  HOST,
  /// GPUs.
  CUDA;

  /// Returns the kind of that name.
  ///
  /// @param from option or variable with the name, for messages
  /// @throws BraidException if there is none
  public static BackendKind parse(String name, String from) {
    return Arrays.stream(values())
        .filter(kind -> kind.toString().equals(name))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "%s must be one of %s but was %s; try %s"
                        .formatted(from, known(), name, HOST)));
  }

  private static String known() {
    return Arrays.stream(values()).map(BackendKind::toString).collect(Collectors.joining(", "));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
