package braid.launcher.cli;

/// A subcommand that checks or measures Braid itself. Its class is not in the product's source
/// folder, so [Braid] finds it by [java.util.ServiceLoader].
public interface CheckCommand {
  /// Returns true if it runs cells, so that a signal ends it only after its ranks.
  default boolean runsCells() {
    return false;
  }
}
