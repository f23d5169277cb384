package braid.model;

import java.util.Locale;

/// Streams with priority if communication and GEMM compete for a processor.
public enum Priority {
  COMMUNICATION,
  EQUAL,
  GEMM;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
