package braid.launcher.cli.run;

import braid.launcher.InterruptSignal;
import braid.launcher.ProcessExit;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// A session that ends in order when a signal ends the command. Ctrl-C and SIGTERM run the JVM's
/// shutdown hooks. One of them first stops the work, lets it save its results, and ends the ranks;
/// the exit code is then the signal's. If something else ends the JVM, such as a cell, the hook
/// waits for nothing, and [ProcessExit] has the code.
public final class SignalledSession {
  /// Longest time for that: an interrupt that is ignored, and ending the ranks after it.
  private static final Duration STOP_PATIENCE = Duration.ofSeconds(25);

  /// The JVM's exit codes for these signals.
  private static final int HUNG_UP = 129;

  public static final int INTERRUPTED = 130;
  private static final int TERMINATED = 143;

  /// Time for this process to notice a signal that has ended its ranks.
  private static final Duration SIGNAL_DELAY = Duration.ofMillis(500);

  /// Printed at Ctrl-C before the ranks are ready.
  public static final String WHILE_STARTING = "braid: interrupted while starting";

  private static final CountDownLatch SIGNALLED = new CountDownLatch(1);

  /// True until the first session is ready, and while a later one starts.
  private static volatile boolean starting;

  /// Ranks that did not start because a signal ends the command, which has reported it.
  public static final class StartInterrupted extends RuntimeException {
    private static final long serialVersionUID = 1;

    private StartInterrupted() {
      super("interrupted while starting");
    }
  }

  /// Work on the session.
  public interface Work<T> {
    T on(Session session) throws IOException;
  }

  /// Work that ends in order.
  interface Ordered<T> {
    T done() throws IOException;
  }

  private SignalledSession() {}

  /// @param stop requests the end of the work, with the reason, without waiting
  public static <T> T run(SessionOptions options, Consumer<String> stop, Work<T> work)
      throws IOException {
    var running = new AtomicReference<@Nullable Session>();
    return inOrder(
        stop,
        () -> close(running.get()),
        () -> {
          try (var session = start(options)) {
            running.set(session);
            return work.on(session);
          }
        });
  }

  /// Starts the ranks. Ctrl-C reaches them too, and their ends are no news: if this start fails or
  /// ends because of a signal, nothing more is reported.
  ///
  /// @throws StartInterrupted after a signal
  static Session start(SessionOptions options) {
    starting = true;
    try {
      var session = Session.start(options);
      if (SIGNALLED.getCount() == 0) {
        session.close();
        throw new StartInterrupted();
      }
      return session;
    } catch (RuntimeException | Error e) {
      if (isSignalled()) {
        throw new StartInterrupted();
      }
      throw e;
    } finally {
      starting = false;
    }
  }

  private static boolean isSignalled() {
    try {
      return SIGNALLED.await(SIGNAL_DELAY.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  static void close(@Nullable Session session) {
    if (session != null) {
      session.close();
    }
  }

  /// Runs work that starts its own sessions. A signal requests its end, and the JVM waits for it.
  ///
  /// @param atOnce ends the ranks, if any
  static <T> T inOrder(Consumer<String> stop, Runnable atOnce, Ordered<T> work) throws IOException {
    var ended = new CountDownLatch(1);
    var signals = new AtomicInteger();
    var hook =
        new Thread(
            () -> {
              if (signals.get() > 0) {
                stop(stop, ended);
              }
            },
            "end in order");
    starting = true;
    Runtime.getRuntime().addShutdownHook(hook);
    InterruptSignal.handle(
        () -> {
          SIGNALLED.countDown();
          interrupted(signals.incrementAndGet(), atOnce);
        });
    InterruptSignal.handle("TERM", () -> exit(signals, TERMINATED));
    InterruptSignal.handle("HUP", () -> exit(signals, HUNG_UP));
    try {
      return work.done();
    } finally {
      ended.countDown();
      removeUnlessRunning(hook);
    }
  }

  /// The first Ctrl-C ends the work in order. The next one ends the ranks, and so the cell, whose
  /// outputs so far are saved.
  private static void interrupted(int times, Runnable atOnce) {
    if (times == 1) {
      System.err.println(
          starting
              ? WHILE_STARTING
              : "braid: interrupted; ending in order (again: ends the ranks at once)");
      exit(INTERRUPTED);
    } else {
      System.err.println("braid: interrupted again; ending the ranks at once");
      atOnce.run();
    }
  }

  private static void exit(AtomicInteger signals, int code) {
    SIGNALLED.countDown();
    if (signals.getAndIncrement() == 0) {
      exit(code);
    }
  }

  /// Runs on its own thread: an exit waits for the hooks, and the next signal must be handled.
  private static void exit(int code) {
    ProcessExit.code(code);
    Thread.ofPlatform().daemon().name("exit").start(() -> ProcessExit.exit(code));
  }

  private static void removeUnlessRunning(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The JVM is ending by the signal that the hook handles.
    }
  }

  private static void stop(Consumer<String> stop, CountDownLatch ended) {
    stop.accept("braid was told to end by a signal");
    try {
      if (!ended.await(STOP_PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        System.err.println(
            "braid: the ranks did not end within "
                + STOP_PATIENCE.toSeconds()
                + " s; leaving them");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
