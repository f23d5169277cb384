package braid.internal.selftest;

import braid.DType;

/// A case of one way to compute or communicate, which has a row in the self-test's table.
public sealed interface TabledCase extends Case permits PipelineCase, CollectiveCase {
  /// The pattern or the collective.
  String what();

  /// How it is overlapped; empty for a collective.
  String method();

  /// The transport or library.
  String over();

  DType dtype();
}
