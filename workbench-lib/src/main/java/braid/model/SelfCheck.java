package braid.model;

/// Something to hold a machine to, such as a backend's kernels by themselves. Each rank runs it for
/// itself, all of them at once.
public interface SelfCheck {
  /// Its name in reports; the same on all ranks.
  String name();

  /// What is wrong, in one line; empty where all is right. What it throws is wrong too.
  String run();
}
