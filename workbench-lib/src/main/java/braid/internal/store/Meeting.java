package braid.internal.store;

import braid.model.BraidException;
import java.util.List;

/// What ranks agree to do together. The `epoch` and the `key` say which meeting it is, and are the
/// same on every member; the `label` says what the member believes it is, so that ranks that call
/// different things are told so. `members` are ranks of the world, in the order of the values.
public record Meeting(int epoch, String key, String label, List<Integer> members) {
  /// What is larger belongs into symmetric memory: the store is one process that copies it to all.
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
