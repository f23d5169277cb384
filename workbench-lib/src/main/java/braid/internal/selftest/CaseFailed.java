package braid.internal.selftest;

import braid.model.BraidException;

/// A case came to its end on this rank, in step with the others, and a result was wrong.
public final class CaseFailed extends BraidException {
  public CaseFailed(String message) {
    super(message);
  }
}
