package braid.model;

import java.util.Locale;

/// Whose streams go first where communication and GEMM want the same processor.
public enum Priority {
  COMMUNICATION,
  EQUAL,
  GEMM;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
