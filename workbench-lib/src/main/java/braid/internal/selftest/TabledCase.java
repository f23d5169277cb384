package braid.internal.selftest;

import braid.model.DType;

/// A case of one way to compute or communicate, which has a row in the self-test's table.
public sealed interface TabledCase extends Case permits PipelineCase, CollectiveCase, MemoryCase {
  /// The pattern, the collective or the tensor.
  String what();

  /// How it is overlapped, or the algorithm that a collective names; else empty.
  String method();

  /// The transport or library; empty for a tensor.
  String over();

  DType dtype();
}
