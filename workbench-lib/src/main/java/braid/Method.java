package braid;

import java.util.Locale;

/// How a pipeline lays communication beside its GEMM. The result is the same, the time is not.
public enum Method {
  /// The collective is cut into chunks; a chunk's GEMM starts when all of the chunk has landed.
  PIPELINED,
  /// Each rank reads its peers' shards one after the other and starts on its own at once.
  DIRECT,
  /// First all of the communication, then one GEMM: the reference.
  UNFUSED;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
