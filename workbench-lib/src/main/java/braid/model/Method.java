package braid.model;

import java.util.Locale;

/// How a pipeline lays communication beside its GEMM. The result is the same, the time is not.
public enum Method {
  /// The collective is cut into chunks, and the GEMM with it: what a chunk needs of the other is
  /// waited for, and nothing more.
  PIPELINED,
  /// Each rank deals with its peers one after the other, by symmetric memory, and with itself
  /// without waiting for any.
  DIRECT,
  /// What is communicated goes from each rank to the next, round the ring.
  RING,
  /// One collective of other data beside one GEMM, neither waiting for the other.
  BULK,
  /// Communication and GEMM one after the other, each in one piece: the reference.
  UNFUSED;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
