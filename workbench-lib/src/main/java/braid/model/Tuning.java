package braid.model;

/// How a problem is solved: the method and its settings. It changes time and memory, never the
/// result.
public sealed interface Tuning extends Configuration permits Overlap, ContextParallel {
  /// Returns whether an iteration is recorded once and replayed.
  boolean replayed();

  Transport transport();

  /// Sets the number of streams that the chunks' computations use in turn.
  Tuning streams(int count);

  /// Sets the transport.
  Tuning over(Transport chosen);

  /// Sets the number of compute units per rank that communicate; only over [Transport#WORKERS].
  Tuning workers(int count);

  /// Records an iteration once and replays it.
  Tuning replay();

  /// Returns the reference of a problem: communication and computation in order, each as a whole.
  static Tuning unfused(Problem problem) {
    return switch (problem) {
      case GemmSpec _ -> Overlap.unfused();
      case AttentionSpec _, AttentionGradientSpec _ -> ContextParallel.unfused();
    };
  }

  /// Returns this tuning as the type that a problem needs.
  ///
  /// @throws BraidException if it tunes other problems
  default <T extends Tuning> T require(Class<T> type, Problem problem) {
    if (!type.isInstance(this)) {
      throw new BraidException(
          "`%s` is tuned by %s but was given `%s`; try overlap(%s)"
              .formatted(
                  problem,
                  type.getSimpleName(),
                  this,
                  type == Overlap.class ? "Overlap.defaults()" : "ContextParallel.ring()"));
    }
    return type.cast(this);
  }
}
