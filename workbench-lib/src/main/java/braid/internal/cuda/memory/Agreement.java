package braid.internal.cuda.memory;

import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.model.GroupAborted;
import java.util.ArrayList;
import java.util.List;

/// A step of a set-up that every member takes by itself and then tells the others of.
final class Agreement {
  private static final char SUCCEEDED = '+';
  private static final char FAILED = '-';

  private Agreement() {}

  /// What a member does for itself; the text is what the others need to know of it.
  @FunctionalInterface
  interface Step {
    String take();
  }

  /// Takes the step and gives every member's text. Where it fails on one, it fails on all.
  static List<String> on(Rendezvous rendezvous, String label, Step step) {
    String outcome;
    try {
      outcome = SUCCEEDED + step.take();
    } catch (GroupAborted e) {
      throw e;
    } catch (RuntimeException e) {
      // Whatever it is: the others wait for this rank's word.
      outcome = FAILED + (e.getMessage() == null ? e.toString() : e.getMessage());
    }
    var all = rendezvous.exchange(label, outcome);
    var failures = new ArrayList<String>();
    for (int i = 0; i < all.size(); i++) {
      if (all.get(i).charAt(0) == FAILED) {
        failures.add("rank %d: %s".formatted(rendezvous.ranks().get(i), all.get(i).substring(1)));
      }
    }
    if (!failures.isEmpty()) {
      throw new AllocationFailed("%s: %s".formatted(label, String.join("; ", failures)));
    }
    return all.stream().map(text -> text.substring(1)).toList();
  }
}
