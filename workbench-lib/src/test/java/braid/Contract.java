package braid;

import braid.internal.selftest.Case;
import braid.internal.selftest.CaseContext;
import braid.model.MemoryKind;

/// Holds ranks to cases.
final class Contract {
  private Contract() {}

  /// What is wrong is said with the case's text, by which it can be run again.
  static void hold(Case each, ProcessGroup group) {
    try {
      each.check(CaseContext.of(group, MemoryKind.AUTO));
    } catch (RuntimeException | Error e) {
      throw new AssertionError(
          "%s on rank %s: %s%n%s".formatted(each, group.place(), e, each.text()), e);
    }
  }
}
