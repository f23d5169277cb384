package braid.internal.selftest;

import braid.model.BraidException;

/// Thrown if a self-test case ran to its end on this rank but a result is wrong. This rank is still
/// in step with the others.
public final class CaseFailed extends BraidException {
  public CaseFailed(String message) {
    super(message);
  }
}
