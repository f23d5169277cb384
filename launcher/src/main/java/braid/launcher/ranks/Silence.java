package braid.launcher.ranks;

/// Tells from a rank's unanswered heartbeats that its process is frozen: stopped by a signal or a
/// debugger, swapped out, or stuck in the kernel.
///
/// A rank that is merely slow, because the machine is loaded or its JVM collects garbage, uses CPU
/// time meanwhile and is given `PATIENCE_BEATS`. Beats are counted, not seconds, so that a front
/// that was paused itself blames no rank. Silence alone never ends a rank.
final class Silence {
  /// Unanswered beats, one a second, after which a rank that uses no CPU time is frozen.
  static final int FROZEN_BEATS = 5;

  /// Unanswered beats after which any rank is silent.
  static final int PATIENCE_BEATS = 30;

  /// CPU time that an idle JVM takes in `FROZEN_BEATS`, at most; in 1/100 s.
  private static final long IDLE_TICKS = 5;

  private int missed;
  private long ticksBefore;
  private boolean silent;

  /// The rank has answered the last beat; whether it was silent before.
  boolean answered() {
    boolean was = silent;
    missed = 0;
    silent = false;
    return was;
  }

  /// Another beat without an answer; whether the rank is silent by now.
  boolean missed(ProcessState now) {
    if (missed++ == 0) {
      ticksBefore = now.cpuTicks();
    }
    boolean frozen = now.isStopped() || now.cpuTicks() - ticksBefore <= IDLE_TICKS;
    silent = missed >= PATIENCE_BEATS || (missed >= FROZEN_BEATS && frozen);
    return silent;
  }
}
