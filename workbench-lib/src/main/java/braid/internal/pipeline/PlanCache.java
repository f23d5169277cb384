package braid.internal.pipeline;

import braid.internal.rank.Closing;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Plans of a group that nobody uses at the moment. Setting one up is a meeting for each thing the
/// ranks share; taking one from here is none. What is kept and what is dropped depends only on the
/// order of this rank's own calls, which is the same on all ranks.
public final class PlanCache implements AutoCloseable {
  /// Kept plans hold memory and threads.
  public static final int MAX_IDLE_PLANS = 8;

  /// All that matters to what a plan is; its group has the cache.
  public record Key(GemmSpec spec, Tuning tuning, MemoryKind kind) {}

  private record Idle(Key key, Plan plan) {}

  private final List<Idle> idle = new ArrayList<>();
  private int round;

  /// The plan of that key that was put here last.
  ///
  /// @param currentRound of the group's calls
  public synchronized Optional<Plan> take(Key key, int currentRound) {
    enter(currentRound);
    for (int i = idle.size() - 1; i >= 0; i--) {
      if (idle.get(i).key().equals(key)) {
        return Optional.of(idle.remove(i).plan());
      }
    }
    return Optional.empty();
  }

  /// Keeps a plan that came to the end of all it began. The one that was put here first is closed
  /// where there are too many.
  public synchronized void put(Key key, Plan plan, int currentRound) {
    enter(currentRound);
    idle.add(new Idle(key, plan));
    if (idle.size() > MAX_IDLE_PLANS) {
      idle.removeFirst().plan().close();
    }
  }

  /// After a failure ranks may have come to different points, and keep different plans.
  private void enter(int currentRound) {
    if (round != currentRound) {
      round = currentRound;
      close();
    }
  }

  @Override
  public synchronized void close() {
    Closing.all(() -> idle.isEmpty() ? null : idle.removeLast().plan());
  }
}
