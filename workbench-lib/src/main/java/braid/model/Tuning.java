package braid.model;

/// The tuning of a planned pipeline. It never changes the result.
public sealed interface Tuning extends Configuration permits Overlap, ContextParallel {
  /// Returns true if an iteration is recorded once and replayed.
  boolean replayed();
}
