package braid.internal.rank;

import braid.model.BraidException;
import braid.model.GroupAborted;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Every wait of a rank, so that all of them can be ended at once and asked what they are for.
/// Whoever waits for another rank, a stream or a link in any other way than through this class can
/// hang for ever when that other fails.
///
/// After a failure the ranks of a session stand at different steps, and yet go on. So a rank's
/// waits belong to an epoch: [#release] ends the waits of the current one, present and future,
/// until [#resume] begins the next. Keys of the store and values of signals carry the epoch, so
/// what was sent in an earlier one can neither satisfy nor spoil a wait of a later one.
public final class Waits {
  /// How late a release can reach a wait that sleeps in the kernel.
  private static final long POLL_NANOS = 50_000_000;

  private record ActiveWait(Supplier<String> description) {}

  /// What a rank runs at the moment: its thread, and the ranks (of the world) that have ended
  /// theirs.
  private record Body(Thread thread, Supplier<Set<Integer>> departed) {}

  private final Duration timeout;
  private final Map<Long, ActiveWait> active = new ConcurrentSkipListMap<>();
  private final AtomicLong ids = new AtomicLong();
  private final List<Runnable> watches = new CopyOnWriteArrayList<>();
  private volatile Runnable departures = () -> {};
  private volatile @Nullable String reason;
  private volatile @Nullable Body body;
  private volatile @Nullable BraidException departedWait;
  private volatile int epoch = 1;

  public Waits(Duration timeout) {
    this.timeout = timeout;
  }

  /// One look at what is waited for, which may sleep for at most `nanos`; null where it has not
  /// come yet.
  @FunctionalInterface
  public interface Attempt<T> {
    @Nullable T within(long nanos) throws InterruptedException;
  }

  /// Waits until the attempt gives something; the description is for people, "all-gather `x`, chunk
  /// 3".
  public <T> T until(Supplier<String> description, Attempt<T> attempt) {
    var result = within(timeout, description, attempt);
    if (result == null) {
      throw new BraidException(
          "waited %d s for %s in vain; see what the other ranks do, or raise BRAID_TIMEOUT_SECONDS"
              .formatted(timeout.toSeconds(), description.get()));
    }
    return result;
  }

  /// As `until`, for what other ranks must do: the wait ends with [#departedFailure] where all that
  /// `missing` names have [#departed]. `missing` looks anew each time it is asked; ranks are of the
  /// world.
  public <T> T until(
      Supplier<String> description, Supplier<List<Integer>> missing, Attempt<T> attempt) {
    return until(
        description,
        nanos -> {
          var departed = departed();
          var result = attempt.within(nanos);
          if (result == null && !departed.isEmpty()) {
            var absent = missing.get();
            if (!absent.isEmpty() && departed.containsAll(absent)) {
              throw departedFailure(description.get(), absent);
            }
          }
          return result;
        });
  }

  /// As `until`, but null where it has not come in that time.
  public <T> @Nullable T within(Duration limit, Supplier<String> description, Attempt<T> attempt) {
    long end = System.nanoTime() + limit.toNanos();
    long id = ids.incrementAndGet();
    active.put(id, new ActiveWait(description));
    try {
      for (long left = limit.toNanos(); ; left = end - System.nanoTime()) {
        check(description);
        var result = attempt.within(Math.clamp(left, 0, POLL_NANOS));
        if (result != null || left <= 0) {
          return result;
        }
        watches.forEach(Runnable::run);
        departures.run();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new GroupAborted(description.get(), "its thread was interrupted");
    } finally {
      active.remove(id);
    }
  }

  /// Waits for a future; what it failed with is thrown here. Null where it has not come in time.
  public <T> @Nullable T within(
      Duration limit, Supplier<String> description, CompletableFuture<T> future) {
    return within(limit, description, nanos -> poll(future, nanos));
  }

  /// One look at a future: null where it is not complete, and what it failed with is thrown.
  public <T> @Nullable T poll(CompletableFuture<T> future, long nanos) throws InterruptedException {
    try {
      return future.get(nanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      return null;
    } catch (ExecutionException e) {
      throw switch (e.getCause()) {
        case RuntimeException failure -> failure;
        case Error error -> throw error;
        case null, default -> new IllegalStateException("a future failed without a reason", e);
      };
    }
  }

  /// Sleeps until that time of [System#nanoTime]: the one sleep of the library, that of a link
  /// which plays its speed.
  public void sleepUntil(Supplier<String> description, long deadlineNanos) {
    if (deadlineNanos - System.nanoTime() <= 0) {
      return;
    }
    until(
        description,
        nanos -> {
          long left = deadlineNanos - System.nanoTime();
          if (left > 0) {
            TimeUnit.NANOSECONDS.sleep(Math.min(left, nanos));
          }
          return deadlineNanos - System.nanoTime() <= 0 ? Boolean.TRUE : null;
        });
  }

  /// Fails where this rank's waits are released: for work that takes long without waiting.
  public void check(Supplier<String> description) {
    var why = reason;
    if (why != null) {
      throw new GroupAborted(description.get(), why);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw new GroupAborted(description.get(), "its thread was interrupted");
    }
  }

  /// From here on every wait that has not got what it waits for runs that check now and then; what
  /// the check throws ends the wait. For what shows that a wait cannot end well.
  public void watch(Runnable check) {
    watches.add(check);
  }

  public void unwatch(Runnable check) {
    watches.remove(check);
  }

  /// Sets the check for ranks that have departed. It runs behind the others: a rank may have
  /// departed because its call differed, and that is the cause.
  public void watchDepartures(Runnable check) {
    departures = check;
  }

  /// Begins a cell or another body on the calling thread. A wait of that thread ends where it waits
  /// only for ranks that `departed` names: they have ended theirs, have nothing going on, and so
  /// cannot come. Waits of other threads may be satisfied by a later body, so they go on.
  public void begin(Supplier<Set<Integer>> departed) {
    departedWait = null;
    body = new Body(Thread.currentThread(), departed);
  }

  /// Ends the body. Returns what ended a wait of its because ranks had departed, even if the body
  /// caught that: the ranks then stand at different steps. Null if nothing did.
  public @Nullable BraidException end() {
    body = null;
    return departedWait;
  }

  /// The ranks that have ended their body while this thread still runs this rank's; empty on all
  /// other threads. What such a rank did is visible to whoever looks after asking this.
  public Set<Integer> departed() {
    var current = body;
    return current != null && current.thread().equals(Thread.currentThread())
        ? current.departed().get()
        : Set.of();
  }

  /// The failure of a wait for ranks that have departed. Throws the cause that a watch knows, if
  /// one does.
  public BraidException departedFailure(String description, List<Integer> departed) {
    watches.forEach(Runnable::run);
    var failure =
        new BraidException(
            "waited for %s but %s ended the cell and cannot come any more; make the matching call there too"
                .formatted(
                    description,
                    (departed.size() == 1 ? "rank " : "ranks ")
                        + departed.stream()
                            .map(String::valueOf)
                            .collect(Collectors.joining(", "))));
    departedWait = failure;
    return failure;
  }

  /// Ends all waits of this epoch, those going on and those to come. The first reason stays.
  public synchronized void release(String why) {
    if (reason == null) {
      reason = why;
    }
  }

  /// Begins an epoch; waits are waits again.
  public synchronized void resume(int next) {
    if (next <= epoch) {
      throw new BraidException(
          "the epoch must be later than %d but was %d; count up with every resume"
              .formatted(epoch, next));
    }
    epoch = next;
    reason = null;
  }

  boolean released() {
    return reason != null;
  }

  public int epoch() {
    return epoch;
  }

  /// What each wait going on is for, the longest first.
  public List<String> current() {
    return active.values().stream().map(one -> one.description().get()).distinct().toList();
  }
}
