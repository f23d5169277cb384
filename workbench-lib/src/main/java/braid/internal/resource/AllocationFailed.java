package braid.internal.resource;

import braid.model.BraidException;

/// Failure to allocate memory on some rank. All ranks of the group learn of it in the same exchange
/// and undo their part, so the allocation can be tried again.
public final class AllocationFailed extends BraidException {
  public AllocationFailed(String message) {
    super(message);
  }
}
