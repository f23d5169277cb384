package braid;

import braid.model.BraidException;
import org.jspecify.annotations.Nullable;

/// Checks that a builder sets each attribute at most once.
final class SetOnce {
  private SetOnce() {}

  /// @param before the attribute's value so far; null if it was not set
  /// @throws BraidException if it was set
  static void check(String attribute, @Nullable Object before) {
    if (before != null) {
      throw new BraidException("%s was set already: %s; set it once".formatted(attribute, before));
    }
  }
}
