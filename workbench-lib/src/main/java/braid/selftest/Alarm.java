package braid.selftest;

import braid.internal.rank.Waits;
import braid.internal.resource.SymmetricMemory;
import braid.model.GroupAborted;
import braid.model.Place;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// An alarm that a rank raises when it breaks off a case: otherwise the others would wait for its
/// remaining calls until their timeout.
public final class Alarm implements AutoCloseable {
  /// Bytes per rank: one cache line, so that ranks do not slow each other down.
  public static final long BYTES = 64;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final long NONE = 0;

  private final Place place;
  private final Waits waits;
  private final SymmetricMemory memory;
  private final Runnable checkPeers = this::checkPeers;
  private volatile long armed = NONE;

  /// @param memory host memory of [#BYTES] on each rank
  public Alarm(Place place, Waits waits, SymmetricMemory memory) {
    this.place = place;
    this.waits = waits;
    this.memory = memory;
    waits.watch(checkPeers);
  }

  /// Ends this rank's waits from now on if another rank breaks off that case; cases are counted
  /// from 1.
  public void arm(long number) {
    armed = number;
  }

  public void disarm() {
    armed = NONE;
  }

  /// Reports that this rank has broken off that case.
  public void raise(long number) {
    WORD.setRelease(memory.on(place.rank()), 0L, number);
  }

  private void checkPeers() {
    long number = armed;
    if (number == NONE) {
      return;
    }
    for (int rank = 0; rank < place.size(); rank++) {
      if (rank != place.rank() && (long) WORD.getAcquire(memory.on(rank), 0L) == number) {
        throw new GroupAborted("its part of a case", "rank " + rank + " broke the case off");
      }
    }
  }

  @Override
  public void close() {
    waits.unwatch(checkPeers);
    memory.close();
  }
}
