package braid.model;

import java.util.Locale;

/// Units that move the bytes.
public enum Transport {
  /// Copy engines read and write the peers' symmetric memory; no compute unit takes part.
  COPY_ENGINE,
  /// Compute units read and write it, [Overlap#workers] of them per rank: the GEMM cannot use them
  /// while the link is busy.
  WORKERS,
  /// Compute units read and write it in the kernel that raises and awaits the signals too: one
  /// launch per step, for small messages. The kernel occupies its units while it waits for peers.
  ONE_KERNEL;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
