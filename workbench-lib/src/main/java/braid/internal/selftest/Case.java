package braid.internal.selftest;

import braid.DType;

/// One thing that must come out right. It has a form as text, so that ranks that are processes can
/// be given it, and a failure can be run again.
public sealed interface Case permits PipelineCase, CollectiveCase, MemoryCase {
  String text();

  /// The pattern, the collective or the tensor.
  String what();

  /// How it is overlapped; empty where nothing is.
  String method();

  /// What it goes over; empty where nothing is moved.
  String over();

  DType dtype();

  /// Runs it on this rank; all ranks of the group do. Throws [CaseFailed] where a result is wrong,
  /// and that only after the last call that the ranks make together.
  void check(Trial trial);
}
