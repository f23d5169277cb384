package braid.launcher;

import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;

/// Exit codes of the `braid` command; docs/guide/headless_and_ci.md documents them.
public enum ExitCode {
  OK(0),
  CELL_FAILED(1),
  USAGE(2),
  VERIFICATION_FAILED(3),
  TIMEOUT(4),
  /// `compare` found that the machine differed between the runs, so that nothing can be said.
  MACHINE_DIFFERED(5),
  /// `compare` found a slowdown, or an undecided comparison with the option to fail on those.
  SLOWER(6),
  /// A notebook's outputs differ from the recorded ones (`--check`).
  DIFFERENT(7),
  RANK_DIED(138);

  private static final List<ExitCode> BY_SEVERITY =
      List.of(
          OK,
          MACHINE_DIFFERED,
          SLOWER,
          DIFFERENT,
          USAGE,
          CELL_FAILED,
          VERIFICATION_FAILED,
          TIMEOUT,
          RANK_DIED);

  private final int code;

  ExitCode(int code) {
    this.code = code;
  }

  /// Returns the exit code of that number.
  public static ExitCode of(int code) {
    return Arrays.stream(values())
        .filter(each -> each.code == code)
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no exit code is " + code));
  }

  /// Returns the most severe of several notebooks' codes.
  public static ExitCode worst(Collection<ExitCode> codes) {
    return codes.stream().max(Comparator.comparingInt(BY_SEVERITY::indexOf)).orElse(OK);
  }

  public int code() {
    return code;
  }
}
