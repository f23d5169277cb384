package braid.model;

import java.util.Locale;

/// Methods by which a pipeline overlaps communication with its GEMM. They differ in time, not in
/// the result.
public enum Method {
  /// Collective and GEMM are split into chunks: each chunk waits only for the data it needs.
  PIPELINED,
  /// Each rank exchanges data with its peers in order, through symmetric memory, and processes its
  /// own part without waiting.
  DIRECT,
  /// Data go from each rank to the next, round the ring.
  RING,
  /// One collective of other data beside one GEMM, neither waiting for the other.
  BULK,
  /// Communication and GEMM in order, each as a whole: the reference.
  UNFUSED;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
