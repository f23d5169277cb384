package braid;

import braid.internal.selftest.Case;
import braid.internal.selftest.CaseContext;
import braid.model.MemoryKind;

/// Checks cases on ranks.
final class Contract {
  private Contract() {}

  /// Runs a case; a fault names the case's text, by which it can be run again.
  static void hold(Case each, ProcessGroup group) {
    try {
      each.check(CaseContext.of(group, MemoryKind.AUTO));
    } catch (RuntimeException | Error e) {
      throw new AssertionError(
          "%s on rank %s: %s%n%s".formatted(each, group.place(), e, each.text()), e);
    }
  }
}
