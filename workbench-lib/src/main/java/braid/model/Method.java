package braid.model;

import braid.model.GemmSpec.Pattern;
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
  /// In rounds, each rank fetches all rows that one other rank has by then, so that their number
  /// doubles. The farthest rank comes first: few rows travel far, and most between near ranks.
  DOUBLING,
  /// Within groups of consecutive ranks, such as those of a host, and between the groups: a row
  /// crosses to each other group once, and sums are added within a group before they cross.
  TWO_LEVEL,
  /// One collective of other data beside one GEMM, neither waiting for the other.
  BULK,
  /// Communication and GEMM in order, each as a whole: the reference.
  UNFUSED;

  /// Returns why the method cannot overlap the pattern; empty if it can.
  public String unsupported(Pattern pattern) {
    if (this == BULK && !pattern.beside()) {
      return "its multiplication needs all communicated data first; the nearest is pipelined(1)";
    }
    boolean gathers =
        pattern == Pattern.ALL_GATHER_GEMM || pattern == Pattern.GEMM_BESIDE_ALL_GATHER;
    return this == DOUBLING && !gathers
        ? "it gathers rows and adds none; the nearest is ring()"
        : "";
  }

  /// Returns whether ranks pass on what others have sent them. A sum is rounded to the type sent
  /// where it is passed on.
  public boolean passesOn() {
    return this == RING || this == DOUBLING || this == TWO_LEVEL;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
