package braid.internal.pipeline;

import braid.internal.rank.Closing;
import braid.model.MemoryKind;
import braid.model.Problem;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Caches idle plans of a group. Setting up a plan takes a rendezvous for each shared buffer;
/// reusing one takes none. Which plans are kept depends only on the order of this rank's own calls,
/// which is the same on all ranks.
public final class PlanCache implements AutoCloseable {
  /// Limit of cached plans, which hold memory and threads.
  public static final int MAX_IDLE_PLANS = 8;

  /// Identifies equal plans within a group.
  public record Key(Problem problem, PlanSource source, MemoryKind kind) {}

  private record Idle(Key key, Plan plan) {}

  private final List<Idle> idle = new ArrayList<>();
  private int round;

  /// Removes and returns the plan of that key that was added last.
  ///
  /// @param currentRound round of the group's calls
  public synchronized Optional<Plan> take(Key key, int currentRound) {
    enter(currentRound);
    for (int i = idle.size() - 1; i >= 0; i--) {
      if (idle.get(i).key().equals(key)) {
        return Optional.of(idle.remove(i).plan());
      }
    }
    return Optional.empty();
  }

  /// Adds a plan whose runs have all ended. If the cache is full, the plan that was added first is
  /// closed.
  public synchronized void put(Key key, Plan plan, int currentRound) {
    enter(currentRound);
    idle.add(new Idle(key, plan));
    if (idle.size() > MAX_IDLE_PLANS) {
      idle.removeFirst().plan().close();
    }
  }

  /// Closes all plans. Returns whether there were any.
  public synchronized boolean clear(int currentRound) {
    enter(currentRound);
    boolean any = !idle.isEmpty();
    close();
    return any;
  }

  /// Clears the cache in a new round: after a failure ranks may be at different points, and cache
  /// different plans.
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
