package braid.internal.host;

import braid.model.Place;
import braid.natives.LibC;
import java.util.List;

/// The processors that stand in for a rank's GPU. Each rank is bound to its own share of the
/// machine: if the scheduler may move ranks, two of them sometimes share a processor while a third
/// has one alone, and an iteration is as slow as the slowest rank.
///
/// @param yielding true if threads have a lower priority than the rank's other threads
public record Cores(List<Integer> processors, boolean yielding) {
  /// Priority steps of a yielding thread: it gets about a third of a processor that another thread
  /// uses.
  private static final int YIELDING_STEPS = 5;

  /// Returns this rank's share of the process's allowed processors. Ranks share processors if there
  /// are more ranks. A single rank is not bound.
  public static Cores of(Place local) {
    var allowed = LibC.allowedProcessors();
    return new Cores(share(local, allowed), false);
  }

  static List<Integer> share(Place local, List<Integer> allowed) {
    int count = allowed.size();
    if (local.size() == 1 || count == 0) {
      return List.of();
    }
    if (count < local.size()) {
      return List.of(allowed.get(local.rank() % count));
    }
    return allowed.subList(
        local.rank() * count / local.size(), (local.rank() + 1) * count / local.size());
  }

  /// Returns the same processors for threads of lower priority.
  public Cores yieldingToOthers() {
    return new Cores(processors, true);
  }

  /// Binds the calling thread to the processors. Failures are ignored: they make timings noisier,
  /// not results wrong.
  void take() {
    if (!processors.isEmpty()) {
      var _ = LibC.runOn(processors);
    }
    if (yielding) {
      var _ = LibC.lowerPriorityBy(YIELDING_STEPS);
    }
  }
}
