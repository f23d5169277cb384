package braid.model;

import java.util.Optional;

/// A check of a machine, such as of a backend's kernels. Each rank runs it alone, all ranks at the
/// same time.
public interface SelfCheck {
  /// Returns its name in reports; the same on all ranks.
  String name();

  /// Returns why this machine cannot run it; empty if it can.
  default Optional<String> missing() {
    return Optional.empty();
  }

  /// Returns the fault in one line, or an empty string if all is right. An exception is a fault
  /// too.
  String run();
}
