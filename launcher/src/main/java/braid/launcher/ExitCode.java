package braid.launcher;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;

/// What the `braid` command exits with; the README documents these.
public enum ExitCode {
  OK(0),
  CELL_FAILED(1),
  USAGE(2),
  VERIFICATION_FAILED(3),
  TIMEOUT(4),
  /// `compare` found something slower, or undecided where that was to fail too.
  SLOWER(6),
  /// A notebook ran, but not as it is recorded (`--check`).
  DIFFERENT(7),
  RANK_DIED(138);

  private static final List<ExitCode> WORSE_AND_WORSE =
      List.of(OK, SLOWER, DIFFERENT, USAGE, CELL_FAILED, VERIFICATION_FAILED, TIMEOUT, RANK_DIED);

  private final int code;

  ExitCode(int code) {
    this.code = code;
  }

  /// Of several notebooks' codes the one to exit with: what says most of what went wrong.
  public static ExitCode worst(Collection<ExitCode> codes) {
    return codes.stream().max(Comparator.comparingInt(WORSE_AND_WORSE::indexOf)).orElse(OK);
  }

  public int code() {
    return code;
  }
}
