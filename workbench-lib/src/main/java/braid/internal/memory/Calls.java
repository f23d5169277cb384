package braid.internal.memory;

import braid.internal.backend.Backend;
import braid.internal.rank.CallsDiffer;
import braid.internal.rank.Once;
import braid.internal.rank.SingleCaller;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.ControlMemory;
import braid.model.BraidException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Checks that the members of a group make the same calls. A rank publishes each call before it
/// waits; every wait of the rank then checks regularly whether the others published the same call,
/// and fails with the names of both calls if they did not.
///
/// A rendezvous at the store checks by itself. The [Board] is for calls that wait in shared memory:
/// the first such call of an epoch creates it by one rendezvous, at the same call on all ranks.
///
/// After different calls, which fail on all ranks, a new round begins: the next call of each rank
/// counts as its first. State that the members keep in step (numbers of meetings, pooled buffers,
/// cached plans, steps of collectives) restarts with the round, or is agreed on again, as in a new
/// epoch.
public final class Calls implements AutoCloseable {
  private final Members members;
  private final Waits waits;
  private final Counters counters;
  private final Supplier<Backend> backend;
  private final Supplier<Rendezvous> rendezvous;
  private final Runnable onNewRound;
  private final Runnable check = this::check;
  private final SingleCaller caller = new SingleCaller();
  private volatile @Nullable Board board;

  /// True if this rank's latest call failed because the ranks' calls differed.
  private volatile boolean differed;

  private int round;
  private int epoch;
  private boolean closed;

  /// Takes a supplier of the backend, because the rank may not have created it yet.
  ///
  /// @param onNewRound runs when a round begins because calls differed
  public Calls(
      Members members,
      Waits waits,
      Counters counters,
      Supplier<Backend> backend,
      Supplier<Rendezvous> rendezvous,
      Runnable onNewRound) {
    this.members = members;
    this.waits = waits;
    this.counters = counters;
    this.backend = backend;
    this.rendezvous = rendezvous;
    this.onNewRound = onNewRound;
    this.epoch = waits.epoch();
  }

  /// Returns the round: it increases with each epoch, and each time that calls differed. Other
  /// ranks may count from another number.
  public synchronized int round() {
    int current = waits.epoch();
    if (epoch != current) {
      epoch = current;
      differed = false;
      round++;
    } else if (differed) {
      differed = false;
      round++;
      replace(null);
      onNewRound.run();
    }
    return round;
  }

  /// Publishes a call that may wait in shared memory, such as a run of a pipeline. Throws if
  /// another rank made a different call.
  public void enter(Call call) {
    var current = board(call);
    failing(
        () -> {
          var _ = current.enter(waits, call);
        });
  }

  /// Publishes a call and waits until all members have published it, without a rendezvous at the
  /// store. For calls that change state that the members keep in step but do not wait otherwise.
  public void agree(Call call) {
    agree(board(call), call);
  }

  void agree(Board current, Call call) {
    failing(() -> current.agree(waits, call));
  }

  /// Publishes a call that meets at the store, which compares the calls itself. The board, if one
  /// exists, reports to ranks that are not at the store.
  public <T> T meet(Call call, Supplier<T> meeting) {
    var _ = round();
    var current = board;
    if (current == null || current.epoch() != waits.epoch()) {
      return meeting.get();
    }
    var values = new ArrayList<T>();
    failing(
        () -> {
          var _ = current.enter(waits, call);
          values.add(meeting.get());
        });
    return values.getFirst();
  }

  /// Runs `body`; a failure caused by different calls is reported as such.
  private void failing(Runnable body) {
    try {
      body.run();
    } catch (CallsDiffer e) {
      // Another host's memory may not show it on the board yet.
      differed = true;
      throw e;
    } catch (BraidException e) {
      if (failed()) {
        check();
      }
      throw e;
    }
  }

  /// Records that this rank's latest call failed. Returns whether the cause is that the ranks'
  /// calls differ; the calls of all members then fail.
  public boolean failed() {
    var current = board;
    if (current != null && current.epoch() == waits.epoch() && current.differs()) {
      differed = true;
    }
    return differed;
  }

  /// Runs a call that no other thread of this rank may make meanwhile, nor any other such call on
  /// the group.
  public <T> T exclusively(Supplier<String> call, Supplier<T> body) {
    boolean entered =
        caller.enter(
            call, "call them from one thread, so that all ranks make the calls in the same order");
    try {
      return body.get();
    } finally {
      if (entered) {
        caller.leave();
      }
    }
  }

  /// Returns the members that have not made this rank's latest call, as ranks of the world.
  public List<Integer> absent() {
    var current = board;
    return current == null || current.epoch() != waits.epoch() ? List.of() : current.absent();
  }

  /// Returns whether a board is still the one that the members share.
  boolean isCurrent(Board expected) {
    return expected.equals(board) && expected.epoch() == waits.epoch() && !differed;
  }

  /// Throws if another rank has made a different call. Every wait of the rank calls it.
  private void check() {
    var current = board;
    if (current != null && current.epoch() == waits.epoch()) {
      current.check();
    }
  }

  /// Returns the board of this epoch, or creates it for `call`.
  Board board(Call call) {
    var _ = round();
    var current = board;
    return current != null && current.epoch() == waits.epoch() ? current : make(call);
  }

  private Board make(Call call) {
    int epoch = waits.epoch();
    var created = new Board(members, epoch, memory(call));
    replace(created);
    return created;
  }

  private ControlMemory memory(Call call) {
    if (members.place().size() == 1) {
      // The host may not be able to read the backend's own memory.
      var arena = Arena.ofShared();
      return ControlMemory.shared(
          SymmetricMemory.sideBySide(
              arena.allocate(Board.bytesPerRank(), Long.BYTES),
              Board.bytesPerRank(),
              new Once(arena::close)),
          0);
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

  /// Ends this rank's view of the others' calls. May be called twice.
  @Override
  public synchronized void close() {
    closed = true;
    replace(null);
  }
}
