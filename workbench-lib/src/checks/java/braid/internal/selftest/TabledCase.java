package braid.internal.selftest;

import braid.model.DType;

/// A case with a row in the self-test's table.
public sealed interface TabledCase extends Case
    permits PipelineCase, AttentionCase, CollectiveCase, MemoryCase {
  /// Returns the pattern, attention, the collective or the tensor.
  String what();

  /// Returns the method of a pipeline or of attention, or the algorithm that a collective names;
  /// else empty.
  String method();

  /// Returns the transport or library; empty for a tensor.
  String over();

  DType dtype();
}
