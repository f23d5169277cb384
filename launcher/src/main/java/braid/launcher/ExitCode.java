package braid.launcher;

/// What the `braid` command exits with; the README documents these.
public enum ExitCode {
  OK(0),
  CELL_FAILED(1),
  USAGE(2),
  VERIFICATION_FAILED(3),
  TIMEOUT(4),
  REGRESSION(5),
  /// `compare` found something slower.
  SLOWER(6),
  RANK_DIED(138);

  private final int code;

  ExitCode(int code) {
    this.code = code;
  }

  public int code() {
    return code;
  }
}
