package braid.internal.rank;

import braid.model.BraidException;

/// The members of a group made different calls. The store found it, so each of them learns of it.
public final class CallsDiffer extends BraidException {
  public CallsDiffer(String message) {
    super(message);
  }
}
