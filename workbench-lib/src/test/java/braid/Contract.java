package braid;

import braid.internal.selftest.Case;
import braid.internal.selftest.CaseGroup;
import braid.model.MemoryKind;

/// Checks a contract case by case.
final class Contract {
  private Contract() {}

  /// Checks one case; a failure prints the case's text, with which it can be rerun.
  static void hold(Case each, ProcessGroup group) {
    try {
      each.check(CaseGroup.of(group, MemoryKind.AUTO));
    } catch (RuntimeException | Error e) {
      throw new AssertionError(
          "%s on rank %s: %s%n%s".formatted(each, group.place(), e, each.text()), e);
    }
  }
}
