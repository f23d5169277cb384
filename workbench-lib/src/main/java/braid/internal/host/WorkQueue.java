package braid.internal.host;

import braid.internal.rank.Waits;
import braid.model.BraidException;
import braid.model.GroupAborted;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A queue of tasks and a thread that runs them in order.
///
/// After a failure the thread drops the remaining tasks. Marks among them fail, so that no wait for
/// the queue hangs. The next [#synchronize] throws the failure and resets the queue.
public final class WorkQueue {
  /// Time limit for a running task, which cannot be stopped. A task that takes longer hangs.
  private static final Duration QUIESCE_TIMEOUT = Duration.ofMinutes(1);

  /// Time for a released task to end; twice the interval in which it polls.
  private static final Duration SETTLE_TIMEOUT = Duration.ofMillis(100);

  /// One task. It may sleep, but must wait for other ranks and streams only through [Waits].
  @FunctionalInterface
  public interface Task {
    void run();
  }

  private record QueuedTask(Supplier<String> description, Task task, boolean evenAfterFailure) {}

  private final String name;
  private final Waits waits;
  private final LinkedBlockingQueue<QueuedTask> tasks = new LinkedBlockingQueue<>();
  private final AtomicInteger unfinished = new AtomicInteger();
  private final Thread thread;
  private volatile @Nullable RuntimeException failure;
  private volatile @Nullable Supplier<String> running;
  private volatile boolean closed;

  /// Creates the queue and its thread, which runs on these cores only.
  public WorkQueue(String name, Waits waits, Cores cores) {
    this.name = name;
    this.waits = waits;
    thread =
        Thread.ofPlatform()
            .daemon()
            .inheritInheritableThreadLocals(false)
            .name("braid-" + name)
            .start(
                () -> {
                  cores.take();
                  work();
                });
  }

  /// Queues a task; the description is for messages.
  public void add(Supplier<String> description, Task task) {
    put(new QueuedTask(description, task, false));
  }

  /// Completes the future with the time at which all tasks added so far are done, or with their
  /// failure.
  public void mark(CompletableFuture<Long> reached) {
    put(
        new QueuedTask(
            () -> "a mark",
            () -> {
              var failed = failure;
              if (failed == null) {
                reached.complete(System.nanoTime());
              } else {
                reached.completeExceptionally(failed);
              }
            },
            true));
  }

  /// Throws if the queue is being closed. Tasks that wait call it.
  public void checkOpen(Supplier<String> description) {
    if (closed) {
      throw new GroupAborted(description.get(), "stream " + name + " was closed");
    }
  }

  /// Waits for all tasks added so far, and throws the first failure.
  public void synchronize(Supplier<String> description) {
    var reached = new CompletableFuture<Long>();
    mark(reached);
    await(reached, description);
  }

  /// Waits for the tasks before a mark, and throws the first failure.
  public void await(CompletableFuture<Long> reached, Supplier<String> description) {
    try {
      var _ =
          waits.until(
              () -> {
                var task = running;
                return task == null ? description.get() : task.get();
              },
              nanos -> waits.poll(reached, nanos));
    } catch (GroupAborted released) {
      // The released task has the more precise description.
      settle(reached);
      throw failure instanceof GroupAborted known ? known : released;
    } catch (RuntimeException failed) {
      put(new QueuedTask(() -> "a reset", () -> failure = null, true));
      throw failed;
    }
  }

  /// Returns the description of the running task; after a release, that of the task whose wait was
  /// ended.
  public Optional<String> running() {
    var task = running;
    if (task != null) {
      return Optional.of(task.get());
    }
    return failure instanceof GroupAborted released
        ? Optional.of(released.waitedFor())
        : Optional.empty();
  }

  private static void settle(CompletableFuture<Long> reached) {
    try {
      reached.get(SETTLE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      // The caller reads the outcome from the queue's failure.
    }
  }

  /// Returns true if all tasks added so far are done.
  public boolean isEmpty() {
    return unfinished.get() == 0;
  }

  /// Drops tasks that have not begun, waits for the running one, and forgets failures. Then the
  /// queue can be used again.
  public void quiesce() {
    if (closed) {
      return;
    }
    drop();
    var idle = new CountDownLatch(1);
    put(
        new QueuedTask(
            () -> "a reset after dropping tasks",
            () -> {
              failure = null;
              idle.countDown();
            },
            true));
    try {
      if (!idle.await(QUIESCE_TIMEOUT.toSeconds(), TimeUnit.SECONDS)) {
        var task = running;
        throw new BraidException(
            "stream %s is still busy with %s after %d s; restart the ranks"
                .formatted(
                    name, task == null ? "its work" : task.get(), QUIESCE_TIMEOUT.toSeconds()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("interrupted while waiting until stream " + name + " is idle", e);
    }
  }

  /// Ends the queue and drops tasks that have not begun. Idempotent.
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    drop();
    unfinished.incrementAndGet();
    tasks.add(new QueuedTask(() -> "the end", () -> {}, true));
    try {
      // Joins, so that the thread has ended when this returns, not only its last task.
      if (!thread.join(QUIESCE_TIMEOUT)) {
        throw new BraidException(
            "stream %s does not end within %d s; restart the ranks"
                .formatted(name, QUIESCE_TIMEOUT.toSeconds()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("interrupted while stream " + name + " was closed", e);
    }
  }

  private void drop() {
    failure = new GroupAborted("stream " + name, "its work was dropped");
  }

  private void put(QueuedTask queued) {
    if (closed) {
      throw new BraidException("stream " + name + " is closed; make a new one");
    }
    unfinished.incrementAndGet();
    tasks.add(queued);
  }

  private void work() {
    try {
      while (!closed || !tasks.isEmpty()) {
        perform(tasks.take());
        unfinished.decrementAndGet();
      }
    } catch (InterruptedException e) {
      // Only an ending JVM interrupts this thread.
      failure = new BraidException("stream " + name + " was interrupted", e);
    }
  }

  private void perform(QueuedTask queued) {
    if (queued.evenAfterFailure()) {
      queued.task().run();
      return;
    }
    if (failure != null) {
      return;
    }
    running = queued.description();
    try {
      waits.check(queued.description());
      queued.task().run();
    } catch (BraidException e) {
      failure = e;
    } catch (Throwable e) {
      failure =
          new BraidException(
              "stream %s failed in %s: %s".formatted(name, queued.description().get(), e), e);
    } finally {
      running = null;
    }
  }
}
