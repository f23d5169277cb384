package braid.internal.selftest;

/// Work of a group whose results plain loops know. Its text tells a failure and lets ranks that are
/// processes be given it.
public sealed interface Case permits TabledCase, ViewCase, RefusedCase {
  int ROUNDS = 2;

  String text();

  /// Sets it up on this rank; all ranks of the trial's group do. What is wrong goes to the
  /// findings, since an exception would leave the other ranks waiting.
  Opened open(CaseGroup trial, Findings findings);

  /// Runs it on this rank; all ranks of the group do. Throws [CaseFailed] where a result is wrong,
  /// and that only after the last call that the ranks make together.
  default void check(CaseGroup trial) {
    var findings = new Findings();
    try (var opened = open(trial, findings)) {
      for (int round = 0; round < ROUNDS; round++) {
        opened.round(round, findings);
      }
    }
    findings.orThrow();
  }

  /// A case that is set up.
  interface Opened extends AutoCloseable {
    /// Runs it once more, with other numbers than in the rounds before.
    void round(int round, Findings findings);

    @Override
    void close();
  }
}
