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
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// All waits of a rank, so that they can be ended together and listed. Waiting for another rank, a
/// stream or a link in any other way can hang forever when that one fails.
///
/// After a failure the ranks of a session are at different steps, but the session continues.
/// Therefore a rank's waits belong to an epoch: [#release] ends the waits of the current epoch,
/// present and future, until [#resume] begins the next. Keys of the store and values of signals
/// include the epoch, so signals of an earlier epoch can neither satisfy nor disturb a wait of a
/// later one.
public final class Waits {
  /// Longest delay of a release for a wait that sleeps in the kernel.
  private static final long POLL_NANOS = 50_000_000;

  /// Need of the call that this thread is in.
  private static final ThreadLocal<@Nullable Need> CALL = new ThreadLocal<>();

  /// Age of a wait that is reported, and interval of further reports.
  private static final long FIRST_REPORT_NANOS = 100_000_000;

  private static final long REPORT_NANOS = 400_000_000;

  private record ActiveWait(Supplier<String> description) {}

  /// The body that this rank runs: its thread, the ranks (of the world) that have ended theirs, and
  /// whether no other thread of this rank can make calls while that thread waits.
  private record Body(Thread thread, Supplier<Set<Integer>> departed, BooleanSupplier alone) {}

  private final Duration timeout;
  private final Map<Long, ActiveWait> active = new ConcurrentSkipListMap<>();
  private final AtomicLong ids = new AtomicLong();
  private final List<Runnable> watches = new CopyOnWriteArrayList<>();
  private volatile @Nullable Function<BlockedWait, CompletableFuture<BlockedWait.Answer>> reports;
  private volatile Runnable departures = () -> {};
  private volatile @Nullable String reason;
  private volatile @Nullable Body body;
  private volatile @Nullable BraidException futileWait;
  private volatile int epoch = 1;

  public Waits(Duration timeout) {
    this.timeout = timeout;
  }

  /// One attempt to get the awaited value, which may sleep for at most `nanos`; null if it is not
  /// available yet.
  @FunctionalInterface
  public interface Attempt<T> {
    @Nullable T within(long nanos) throws InterruptedException;
  }

  /// Waits until the attempt returns a value. The description is for messages: "all-gather `x`,
  /// chunk 3".
  public <T> T until(Supplier<String> description, Attempt<T> attempt) {
    return orTimeout(description, within(timeout, description, CALL.get(), attempt));
  }

  private <T> T orTimeout(Supplier<String> description, @Nullable T result) {
    if (result == null) {
      throw new BraidException(
          "waited %d s for %s in vain; see what the other ranks do, or raise BRAID_TIMEOUT_SECONDS"
              .formatted(timeout.toSeconds(), description.get()));
    }
    return result;
  }

  /// Waits as `until` does, for other ranks: throws if all missing ranks have [#departed], or if
  /// this rank is in a circle of ranks that wait for each other.
  public <T> T until(Supplier<String> description, Need need, Attempt<T> attempt) {
    Attempt<T> orDeparture =
        nanos -> {
          var departed = departed();
          var result = attempt.within(nanos);
          if (result == null && !departed.isEmpty()) {
            var absent = need.missing().get();
            if (!absent.isEmpty() && departed.containsAll(absent)) {
              throw departedFailure(description.get(), absent);
            }
          }
          return result;
        };
    return orTimeout(description, within(timeout, description, need, orDeparture));
  }

  /// Waits as `until` does, but returns null after the time limit.
  public <T> @Nullable T within(Duration limit, Supplier<String> description, Attempt<T> attempt) {
    return within(limit, description, (Need) null, attempt);
  }

  /// Waits as `within` does. The need is that of the wait, or null if it may end without a call of
  /// another rank.
  public <T> @Nullable T within(
      Duration limit, Supplier<String> description, @Nullable Need need, Attempt<T> attempt) {
    long end = System.nanoTime() + limit.toNanos();
    long id = ids.incrementAndGet();
    active.put(id, new ActiveWait(description));
    var reporter = reports == null || need == null ? null : new Reporter(id, need);
    try {
      for (long left = limit.toNanos(); ; left = end - System.nanoTime()) {
        check(description);
        if (reporter != null) {
          reporter.receive();
        }
        var result = attempt.within(Math.clamp(left, 0, POLL_NANOS));
        if (result != null || left <= 0) {
          return result;
        }
        watches.forEach(Runnable::run);
        departures.run();
        if (reporter != null) {
          reporter.report();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new GroupAborted(description.get(), "its thread was interrupted");
    } finally {
      active.remove(id);
      if (reporter != null) {
        reporter.end();
      }
    }
  }

  /// Reports of one wait that lasts.
  private final class Reporter {
    private final long wait;
    private final Need need;
    private long nextNanos = System.nanoTime() + FIRST_REPORT_NANOS;
    private @Nullable CompletableFuture<BlockedWait.Answer> pending;
    private BlockedWait.Answer latest = new BlockedWait.Answer(0, false, "");
    private boolean alone;
    private boolean reported;

    private Reporter(long wait, Need need) {
      this.wait = wait;
      this.need = need;
    }

    /// Takes the answer, before the attempt that the next report is about.
    void receive() {
      var answer = pending;
      if (answer == null || !answer.isDone()) {
        return;
      }
      pending = null;
      latest = answer.join();
      if (!latest.circle().isEmpty()) {
        throw ofBody(new BraidException(latest.circle()));
      }
      if (latest.suspected()) {
        var current = body;
        boolean before = alone;
        alone =
            current != null
                && current.thread().equals(Thread.currentThread())
                && current.alone().getAsBoolean();
        // Listing threads takes time, so a rank that has others does it less often.
        nextNanos = alone || before ? System.nanoTime() : nextNanos;
      }
    }

    /// Reports the wait after a vain attempt, if it is time.
    void report() {
      if (pending == null && System.nanoTime() - nextNanos >= 0) {
        nextNanos = System.nanoTime() + REPORT_NANOS;
        reported = true;
        pending = send(need.meeting(), need.missing().get());
      }
    }

    /// Withdraws the report, so that no circle is suspected of a wait that has ended.
    void end() {
      if (reported && latest.circle().isEmpty()) {
        var _ = send("", List.of());
      }
    }

    private @Nullable CompletableFuture<BlockedWait.Answer> send(
        String meeting, List<Integer> missing) {
      var to = reports;
      return to == null
          ? null
          : to.apply(
              new BlockedWait(
                  epoch,
                  Thread.currentThread().threadId(),
                  wait,
                  latest.time(),
                  alone,
                  need.message(),
                  need.purpose().get(),
                  need.scope(),
                  meeting,
                  missing));
    }
  }

  /// Sets the receiver of reports on waits that last.
  public void reportTo(Function<BlockedWait, CompletableFuture<BlockedWait.Answer>> receiver) {
    reports = receiver;
  }

  /// Runs a call of this thread. Waits for streams in it have its need.
  public void calling(Need need, Runnable body) {
    var before = CALL.get();
    CALL.set(need);
    try {
      body.run();
    } finally {
      CALL.set(before);
    }
  }

  /// Waits for a future and throws its failure. Returns null after the time limit.
  public <T> @Nullable T within(
      Duration limit, Supplier<String> description, CompletableFuture<T> future) {
    return within(limit, description, nanos -> poll(future, nanos));
  }

  /// Polls a future: returns null if it is not complete, and throws its failure.
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

  /// Sleeps until a time of [System#nanoTime]. The only sleep of the host backend, for links with a
  /// simulated speed.
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

  /// Throws if this rank's waits are released. For long work that does not wait.
  public void check(Supplier<String> description) {
    var cause = reason;
    if (cause != null) {
      throw new GroupAborted(description.get(), cause);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw new GroupAborted(description.get(), "its thread was interrupted");
    }
  }

  /// Adds a check that every pending wait runs periodically. An exception of the check ends the
  /// wait: use it for failures that make the wait futile.
  public void watch(Runnable check) {
    watches.add(check);
  }

  public void unwatch(Runnable check) {
    watches.remove(check);
  }

  /// Sets the check for departed ranks. Runs after the other checks: a rank may have departed
  /// because its call differed, and that failure is the cause.
  public void watchDepartures(Runnable check) {
    departures = check;
  }

  /// Begins a cell or another body on the calling thread. A wait of that thread fails if all
  /// awaited ranks are in `departed`: they have ended their body and have no work left, so they
  /// cannot arrive. Waits of other threads continue, since a later body may satisfy them.
  ///
  /// @param alone returns true if no other thread of the rank can make calls while the calling one
  ///   waits; called only by that thread
  public void begin(Supplier<Set<Integer>> departed, BooleanSupplier alone) {
    futileWait = null;
    body = new Body(Thread.currentThread(), departed, alone);
  }

  /// Ends the body. Returns the failure of a wait for departed ranks, or of one in a circle, even
  /// if the body caught it: the ranks are then at different steps. Null if there was none.
  public @Nullable BraidException end() {
    body = null;
    return futileWait;
  }

  /// Ranks that have ended their body while this thread still runs this rank's; empty on all other
  /// threads. Everything such a rank did is visible after this call.
  public Set<Integer> departed() {
    var current = body;
    return current != null && current.thread().equals(Thread.currentThread())
        ? current.departed().get()
        : Set.of();
  }

  /// Returns the failure of a wait for departed ranks. Throws the cause instead if a watch finds
  /// one.
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
    return ofBody(failure);
  }

  /// Keeps the failure of a wait of the body that cannot end.
  private BraidException ofBody(BraidException failure) {
    var current = body;
    if (current != null && current.thread().equals(Thread.currentThread())) {
      futileWait = failure;
    }
    return failure;
  }

  /// Ends all waits of this epoch, present and future. The first reason is kept.
  public synchronized void release(String cause) {
    if (reason == null) {
      reason = cause;
    }
  }

  /// Begins an epoch, in which waits wait again.
  public synchronized void resume(int next) {
    if (next <= epoch) {
      throw new BraidException(
          "the epoch must be later than %d but was %d; count up with every resume"
              .formatted(epoch, next));
    }
    epoch = next;
    reason = null;
  }

  public int epoch() {
    return epoch;
  }

  /// Descriptions of the pending waits, the oldest first.
  public List<String> current() {
    return active.values().stream().map(one -> one.description().get()).distinct().toList();
  }
}
