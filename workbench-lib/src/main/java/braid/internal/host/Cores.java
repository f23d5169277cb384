package braid.internal.host;

import braid.model.Place;
import braid.natives.LibC;
import java.util.List;

/// The processors that play a rank's GPU. Each rank has its own share of the machine, as it would
/// have its own GPU: where the scheduler may move ranks about, two of them now and then share a
/// processor that a third has to itself, and an iteration is as slow as the slowest rank.
///
/// @param yielding whether threads let the rank's others go before them
public record Cores(List<Integer> processors, boolean yielding) {
  /// How far a yielding thread steps back: it gets about a third of a processor that another wants.
  private static final int YIELDING_STEPS = 5;

  /// This rank's share of what the process may use; where there are more ranks than processors they
  /// take turns. A rank alone has all of them.
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

  /// The same, for threads that let the rank's others go before them.
  public Cores yieldingToOthers() {
    return new Cores(processors, true);
  }

  /// Keeps the calling thread on them. Where the system does not let it, ranks share the machine as
  /// well as they can: that costs steadiness, not results.
  void take() {
    if (!processors.isEmpty()) {
      var _ = LibC.runOn(processors);
    }
    if (yielding) {
      var _ = LibC.lowerPriorityBy(YIELDING_STEPS);
    }
  }
}
