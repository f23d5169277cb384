package braid.internal.store;

import braid.model.BraidException;
import java.util.List;

/// A rendezvous of ranks that exchange values. `epoch` and `key` identify it and are the same on
/// every member. `label` names the member's call, so that ranks with different calls fail with a
/// message. `members` are ranks of the world, in the order of the values.
public record Meeting(int epoch, String key, String label, List<Integer> members) {
  /// Size limit of a value. Larger ones belong into symmetric memory: the store is one process that
  /// copies values to all members.
  public static final int MAX_VALUE_BYTES = 1 << 20;

  public Meeting {
    members = List.copyOf(members);
  }

  static void checkValue(String label, byte[] value) {
    if (value.length > MAX_VALUE_BYTES) {
      throw new BraidException(
          "a value for %s must be at most %d bytes but was %d; use a SymmetricTensor for more"
              .formatted(label, MAX_VALUE_BYTES, value.length));
    }
  }
}
