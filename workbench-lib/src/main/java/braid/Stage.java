package braid;

/// What a span of time was spent on.
public enum Stage {
  /// Multiplying.
  GEMM,
  /// Moving bytes between ranks.
  COPY,
  /// Adding what several ranks sent.
  REDUCE,
  /// Waiting for a signal or another rank.
  WAIT,
  /// Telling another rank.
  SIGNAL
}
