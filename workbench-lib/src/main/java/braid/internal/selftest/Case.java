package braid.internal.selftest;

import braid.DType;

/// One thing that must come out right. It has a form as text, so that ranks that are processes can
/// be given it, and a failure can be run again.
public sealed interface Case permits PipelineCase, CollectiveCase {
  String text();

  /// The pattern or the collective.
  String what();

  /// How it is overlapped; empty for a collective.
  String method();

  /// What it goes over.
  String over();

  DType dtype();

  /// Runs it on this rank; all ranks of the group do. Throws [CaseFailed] where a result is wrong,
  /// and that only after the last call that the ranks make together.
  void check(Trial trial);
}
