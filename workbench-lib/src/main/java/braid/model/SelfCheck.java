package braid.model;

/// Something to hold a machine to, such as a backend's kernels by themselves. Each rank runs it for
/// itself, all of them at once.
public interface SelfCheck {
  /// Its name in reports; the same on all ranks.
  String name();

  /// Returns the mistake in one line, or nothing if all is right. A throw is a mistake too.
  String run();
}
