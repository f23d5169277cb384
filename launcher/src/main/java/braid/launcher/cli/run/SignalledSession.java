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

/// A session that ends in order where a signal ends the command. Ctrl-C and SIGTERM end the JVM by
/// its shutdown hooks: one of them has the work stopped and what it has saved, and the ranks ended
/// first. The exit code is then the signal's. Where something else ends the JVM, a cell for
/// instance, nothing is waited for: [ProcessExit] has the code.
public final class SignalledSession {
  /// How long that may take: an interrupt that is not heeded, and what follows it.
  private static final Duration STOP_PATIENCE = Duration.ofSeconds(25);

  /// The JVM's own exit codes on these signals.
  private static final int HUNG_UP = 129;

  private static final int INTERRUPTED = 130;
  private static final int TERMINATED = 143;

  /// What is done on the session.
  public interface Work<T> {
    T on(Session session) throws IOException;
  }

  /// What is to be ended in order.
  interface Ordered<T> {
    T done() throws IOException;
  }

  private SignalledSession() {}

  /// @param stop asks the work to end, with the reason; it does not wait for that
  public static <T> T run(SessionOptions options, Consumer<String> stop, Work<T> work)
      throws IOException {
    var running = new AtomicReference<@Nullable Session>();
    return inOrder(
        stop,
        () -> close(running.get()),
        () -> {
          try (var session = Session.start(options)) {
            running.set(session);
            return work.on(session);
          }
        });
  }

  static void close(@Nullable Session session) {
    if (session != null) {
      session.close();
    }
  }

  /// Work that starts its own sessions: a signal asks it to stop, and the JVM waits for its end.
  ///
  /// @param atOnce ends the ranks there are, if there are any
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
    Runtime.getRuntime().addShutdownHook(hook);
    InterruptSignal.handle(() -> interrupted(signals.incrementAndGet(), atOnce));
    InterruptSignal.handle("TERM", () -> exit(signals, TERMINATED));
    InterruptSignal.handle("HUP", () -> exit(signals, HUNG_UP));
    try {
      return work.done();
    } finally {
      ended.countDown();
      removeUnlessRunning(hook);
    }
  }

  /// The first Ctrl-C has the work end in order. The next does not wait until a cell heeds that: it
  /// ends the ranks, and with them the cell, which is saved as it is.
  private static void interrupted(int times, Runnable atOnce) {
    if (times == 1) {
      System.err.println("braid: interrupted; ending in order (again: ends the ranks at once)");
      exit(INTERRUPTED);
    } else {
      System.err.println("braid: interrupted again; ending the ranks at once");
      atOnce.run();
    }
  }

  private static void exit(AtomicInteger signals, int code) {
    if (signals.getAndIncrement() == 0) {
      exit(code);
    }
  }

  /// On a thread of its own: an exit waits for the hooks, and the next signal must be heard.
  private static void exit(int code) {
    ProcessExit.code(code);
    Thread.ofPlatform().daemon().name("exit").start(() -> System.exit(code));
  }

  private static void removeUnlessRunning(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // the JVM is ending, by the signal that the hook answers
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
