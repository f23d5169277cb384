package braid.internal.pipeline;

import braid.internal.resource.SymmetricSource;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.GemmSpec;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Computes the results of a plan's problem independently of its schedule and tuning, and compares
/// the plan's with them.
public interface Reference extends AutoCloseable {
  /// Returns the reference of a plan. It keeps the values that the run to verify overwrites.
  static Reference before(Plan plan, Peers peers, SymmetricSource symmetric) {
    return switch (plan.problem()) {
      case GemmSpec _ -> new GemmReference(plan, peers, symmetric);
      case AttentionSpec _ ->
          (tolerance, differences) ->
              new AttentionReference(plan, peers, differences).compare(tolerance);
      case AttentionGradientSpec _ ->
          (tolerance, differences) ->
              new AttentionGradientReference(plan, peers, differences).compare(tolerance);
    };
  }

  /// Compares the results of the run on this rank. All ranks call it together.
  ///
  /// @param tolerance largest error; null for the bounds of each value
  /// @param differences collects the differences
  /// @return the first wrong value in words; empty if all are right
  Optional<String> compare(@Nullable Tolerance tolerance, Differences differences);

  @Override
  default void close() {}
}
