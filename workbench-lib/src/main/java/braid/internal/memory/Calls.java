package braid.internal.memory;

import braid.internal.backend.Backend;
import braid.internal.rank.Once;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The calls that the members of a group make together. A rank says each before it waits for
/// anybody; every wait of the rank then looks now and then whether the others said the same, and
/// ends with both calls' names where they did not.
///
/// Ranks that only meet at the store are told there. The board is for those that wait in shared
/// memory: the first call of an epoch that may do so makes it, which is one meeting, and so it is
/// made at the same call on all ranks.
///
/// Ranks that made different calls all fail in them, and then begin a new round: the next call of
/// each counts as its first. Whatever the members keep in step (numbers of meetings, pooled
/// buffers, cached plans, steps of collectives) begins anew with it, or agrees again, as it does in
/// a new epoch.
public final class Calls implements AutoCloseable {
  private final Members members;
  private final Waits waits;
  private final Counters counters;
  private final Supplier<Backend> backend;
  private final Supplier<Rendezvous> rendezvous;
  private final Runnable renewed;
  private final Runnable check = this::check;
  private volatile @Nullable Board board;

  /// Whether this rank's latest call failed because the ranks' calls differed.
  private volatile boolean over;

  private int round;
  private int epoch;
  private boolean closed;

  /// The backend is asked for when it is needed, since it may be what the rank has not made yet.
  ///
  /// @param renewed runs where a round begins because calls differed
  public Calls(
      Members members,
      Waits waits,
      Counters counters,
      Supplier<Backend> backend,
      Supplier<Rendezvous> rendezvous,
      Runnable renewed) {
    this.members = members;
    this.waits = waits;
    this.counters = counters;
    this.backend = backend;
    this.rendezvous = rendezvous;
    this.renewed = renewed;
    this.epoch = waits.epoch();
  }

  /// Counts the epochs, and within them the times that calls differed. Other ranks may have counted
  /// from another number.
  public synchronized int round() {
    int current = waits.epoch();
    if (epoch != current) {
      epoch = current;
      over = false;
      round++;
    } else if (over) {
      over = false;
      round++;
      replace(null);
      renewed.run();
    }
    return round;
  }

  /// Says a call that may wait in shared memory, such as a run of a pipeline. Throws where another
  /// rank has called something else in its place.
  public void enter(Call call) {
    var current = board(call);
    failing(() -> current.enter(waits, call));
  }

  /// Says a call and waits until all members have said it, without a meeting at the store: for
  /// calls that change what the members keep in step but may wait for nobody else.
  public void agree(Call call) {
    agree(board(call), call);
  }

  void agree(Board current, Call call) {
    failing(
        () -> {
          current.enter(waits, call);
          current.awaitAll(waits, call);
        });
  }

  /// Says a call that meets at the store, where the ranks are told if they differ; the board, where
  /// there is one, is for those of them that are not there.
  public <T> T meet(Call call, Supplier<T> meeting) {
    var _ = round();
    var current = board;
    if (current == null || current.epoch() != waits.epoch()) {
      return meeting.get();
    }
    var values = new ArrayList<T>();
    failing(
        () -> {
          current.enter(waits, call);
          values.add(meeting.get());
        });
    return values.getFirst();
  }

  /// Whoever fails is told the cause where it is that the calls differ.
  private void failing(Runnable body) {
    try {
      body.run();
    } catch (BraidException e) {
      if (failed()) {
        check();
      }
      throw e;
    }
  }

  /// Hears that the call failed which this rank said last. Says whether that is because the ranks'
  /// calls differ, as all members then hear in theirs.
  public boolean failed() {
    var current = board;
    if (current != null && current.epoch() == waits.epoch() && current.differs()) {
      over = true;
    }
    return over;
  }

  /// Whether that board is still what the members have in common.
  boolean isCurrent(Board which) {
    return which.equals(board) && which.epoch() == waits.epoch() && !over;
  }

  /// Throws where another rank has made a different call. Every wait of the rank does this.
  private void check() {
    var current = board;
    if (current != null && current.epoch() == waits.epoch()) {
      current.check();
    }
  }

  /// The board of this epoch; the call is the one that needs it.
  Board board(Call call) {
    var _ = round();
    var current = board;
    return current != null && current.epoch() == waits.epoch() ? current : make(call);
  }

  private Board make(Call call) {
    int epoch = waits.epoch();
    var made = new Board(members, epoch, memory(call));
    replace(made);
    return made;
  }

  private SymmetricMemory memory(Call call) {
    if (members.place().size() == 1) {
      // The backend's own memory may be none that the host can read.
      var arena = Arena.ofShared();
      return SymmetricMemory.sideBySide(
          arena.allocate(Board.bytesPerRank(), Long.BYTES),
          Board.bytesPerRank(),
          new Once(arena::close));
    }
    var memory =
        backend
            .get()
            .control(
                call.toString(),
                Board.bytesPerRank(),
                new AgreeingRendezvous(rendezvous.get(), members, call));
    counters.add(Counter.RENDEZVOUS);
    return memory;
  }

  private synchronized void replace(@Nullable Board next) {
    var before = board;
    if (closed && next != null) {
      next.close();
      throw new IllegalStateException(members.in("a call") + " was made while it closed");
    }
    board = next;
    if (before == null && next != null) {
      waits.watch(check);
    } else if (before != null && next == null) {
      waits.unwatch(check);
    }
    if (before != null) {
      before.close();
    }
  }

  /// Ends this rank's view of the others' calls. Twice is harmless.
  @Override
  public synchronized void close() {
    closed = true;
    replace(null);
  }
}
