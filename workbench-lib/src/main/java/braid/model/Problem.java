package braid.model;

import java.util.SequencedMap;

/// The task of a schedule, the same on every rank and independent of the tuning.
public sealed interface Problem permits GemmSpec, AttentionSpec, AttentionGradientSpec {
  /// Returns the type of its inputs.
  DType dtype();

  /// Returns this problem as columns of a table; defaults have none.
  SequencedMap<String, String> columns();
}
