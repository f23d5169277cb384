package braid.launcher.session;

import braid.launcher.cell.CellFailure;

/// Failure thrown within a cell.
final class CellFailed extends Exception {
  private static final long serialVersionUID = 1;

  private final transient CellFailure failure;

  CellFailed(CellFailure failure) {
    super(failure.message());
    this.failure = failure;
  }

  CellFailure failure() {
    return failure;
  }
}
