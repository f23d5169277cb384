package braid.selftest;

import braid.internal.rank.Waits;
import braid.internal.resource.SymmetricMemory;
import braid.model.GroupAborted;
import braid.model.Place;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/// By which a rank that breaks off a case lets the others know: they wait for what it will not do
/// any more, and would until their time is up.
public final class Alarm implements AutoCloseable {
  /// What a rank needs for its part: a line, so that nobody is slowed by another's.
  public static final long BYTES = 64;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final long NONE = 0;

  private final Place place;
  private final Waits waits;
  private final SymmetricMemory memory;
  private final Runnable look = this::look;
  private volatile long armed = NONE;

  /// @param memory of the host, of [#BYTES] on each rank
  public Alarm(Place place, Waits waits, SymmetricMemory memory) {
    this.place = place;
    this.waits = waits;
    this.memory = memory;
    waits.watch(look);
  }

  /// From here on waits of this rank end where another rank breaks off that case; cases are counted
  /// from 1.
  public void arm(long number) {
    armed = number;
  }

  public void disarm() {
    armed = NONE;
  }

  /// This rank has broken off that case.
  public void raise(long number) {
    WORD.setRelease(memory.on(place.rank()), 0L, number);
  }

  private void look() {
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
    waits.unwatch(look);
    memory.close();
  }
}
