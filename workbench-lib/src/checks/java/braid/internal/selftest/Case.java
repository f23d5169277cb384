package braid.internal.selftest;

/// Work of a group whose results plain loops can compute. Its text describes a failure and passes
/// the case to ranks in other processes.
public sealed interface Case permits TabledCase, ViewCase, RefusedCase {
  int ROUNDS = 2;

  String text();

  /// Returns whether ranks read the memory of others from the host.
  default boolean readsOthers() {
    return false;
  }

  /// Returns whether it replays iterations.
  default boolean isReplayed() {
    return false;
  }

  /// Opens the case on this rank; all ranks of the group do. Faults go to the findings, since an
  /// exception would leave the other ranks waiting.
  Opened open(CaseContext context, Findings findings);

  /// Runs the case on this rank; all ranks of the group do. Throws [CaseFailed] if a result is
  /// wrong, but only after the last call that the ranks make together.
  default void check(CaseContext context) {
    var findings = new Findings();
    try (var opened = open(context, findings)) {
      for (int round = 0; round < ROUNDS; round++) {
        opened.round(round, findings);
      }
    }
    findings.orThrow();
  }

  /// An open case.
  interface Opened extends AutoCloseable {
    /// Runs one round, with other numbers than in earlier rounds.
    void round(int round, Findings findings);

    @Override
    void close();
  }
}
