package braid;

/// What a span of time was spent on.
public enum Stage {
  /// Multiplying.
  GEMM,
  /// Moving bytes between ranks.
  COPY,
  /// Adding what several ranks sent.
  REDUCE,
  /// Moving bytes within one rank's memory: no link has to do with it, so it is no communication.
  LOCAL,
  /// Waiting for a signal or another rank.
  WAIT,
  /// Telling another rank.
  SIGNAL
}
