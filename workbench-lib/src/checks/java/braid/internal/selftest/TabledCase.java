package braid.internal.selftest;

import braid.model.DType;

/// A case with a row in the self-test's table.
public sealed interface TabledCase extends Case
    permits PipelineCase,
        AttentionCase,
        CollectiveCase,
        MemoryCase,
        BoundTensorsCase,
        OwnScheduleCase,
        ChainCase {
  /// Returns the pattern, the pass of attention, the collective, or what else is tested.
  String what();

  /// Returns the method of a pipeline or of attention, the algorithm that a collective names, or
  /// the form of the case; else empty.
  default String method() {
    return "";
  }

  /// Returns the transport or library; empty if the case has no choice.
  default String over() {
    return "";
  }

  DType dtype();
}
