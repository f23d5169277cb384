package braid;

import braid.model.BraidException;
import org.jspecify.annotations.Nullable;

/// Checks that arguments are given. A null is refused at the call that passes it, before the rank
/// enters a meeting with others.
final class Given {
  private Given() {}

  /// @throws BraidException if the argument is null
  static void check(String argument, @Nullable Object value) {
    if (value == null) {
      throw new BraidException(argument + " must be given but was null");
    }
  }
}
