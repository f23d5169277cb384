package braid.internal.cuda.memory;

import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.model.GroupAborted;
import java.util.ArrayList;
import java.util.List;

/// A step of a set-up that every member runs locally, followed by an exchange of outcomes.
final class Agreement {
  private static final char SUCCEEDED = '+';
  private static final char FAILED = '-';

  private Agreement() {}

  /// The local step. Returns the text to be sent to the other members.
  @FunctionalInterface
  interface Step {
    String take();
  }

  static boolean isFailure(String outcome) {
    return outcome.charAt(0) == FAILED;
  }

  /// Runs the step and returns every member's text. A failure on one member fails on all.
  static List<String> on(Rendezvous rendezvous, String label, Step step) {
    String outcome;
    try {
      outcome = SUCCEEDED + step.take();
    } catch (GroupAborted e) {
      throw e;
    } catch (RuntimeException e) {
      // Any failure is sent: the other members wait for this rank's outcome.
      outcome = FAILED + (e.getMessage() == null ? e.toString() : e.getMessage());
    }
    var all = rendezvous.exchange(label, outcome);
    var failures = new ArrayList<String>();
    for (int i = 0; i < all.size(); i++) {
      if (isFailure(all.get(i))) {
        failures.add("rank %d: %s".formatted(rendezvous.ranks().get(i), all.get(i).substring(1)));
      }
    }
    if (!failures.isEmpty()) {
      throw new AllocationFailed("%s: %s".formatted(label, String.join("; ", failures)));
    }
    return all.stream().map(text -> text.substring(1)).toList();
  }
}
