package braid.internal.resource;

import braid.model.BraidException;

/// Memory that could not be had, on some rank; all ranks of the group are told so in the same
/// exchange and have undone their part, so it can be tried again.
public final class AllocationFailed extends BraidException {
  public AllocationFailed(String message) {
    super(message);
  }
}
