package braid.launcher.ranks;

/// Detects frozen processes by unanswered heartbeats: stopped by a signal or a debugger, swapped
/// out, or stuck in the kernel.
///
/// A slow rank, on a loaded machine or during garbage collection, uses CPU time meanwhile and has
/// `PATIENCE_BEATS`. Beats are counted instead of seconds, so that a front that was paused blames
/// no rank. Silence alone never ends a rank.
final class HeartbeatMonitor {
  /// Unanswered beats, one per second, after which a rank without CPU use is frozen.
  static final int FROZEN_BEATS = 5;

  /// Unanswered beats after which any rank is silent.
  static final int PATIENCE_BEATS = 30;

  /// Most CPU time of an idle JVM during `FROZEN_BEATS`, in 1/100 s.
  private static final long IDLE_TICKS = 5;

  private int missed;
  private long ticksBefore;
  private boolean silent;

  /// Resets after an answer; returns true if the rank was silent before.
  boolean answered() {
    boolean was = silent;
    missed = 0;
    silent = false;
    return was;
  }

  /// Counts an unanswered beat; returns true if the rank is silent now.
  boolean missed(ProcessState now) {
    if (missed++ == 0) {
      ticksBefore = now.cpuTicks();
    }
    boolean frozen = now.isStopped() || now.cpuTicks() - ticksBefore <= IDLE_TICKS;
    silent = missed >= PATIENCE_BEATS || (missed >= FROZEN_BEATS && frozen);
    return silent;
  }
}
