package braid.internal.selftest;

import braid.model.BraidException;

/// A case that ended on this rank, in step with the others, with a wrong result.
public final class CaseFailed extends BraidException {
  public CaseFailed(String message) {
    super(message);
  }
}
