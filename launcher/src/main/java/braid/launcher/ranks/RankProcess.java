package braid.launcher.ranks;

import braid.launcher.rank.CellThreads;
import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.wire.Connection;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.ToRank;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The front's handle of one rank: its process, its two connections, and the pending requests.
public final class RankProcess {
  /// Time for a rank to exit after it closed its connections, before it is killed.
  private static final Duration LINGER = Duration.ofSeconds(2);

  /// Time for a killed process to end: immediate, unless a driver still has to release a GPU.
  private static final Duration KILL_PATIENCE = Duration.ofSeconds(10);

  /// Time to read a dead rank's output to its end, in case a child keeps the pipe open.
  private static final Duration PIPE_PATIENCE = Duration.ofSeconds(2);

  private final int rank;
  private final Process process;
  private final Consumer<RankEvent> events;
  private final ArrayDeque<CompletableFuture<FromRank.Answer>> pending = new ArrayDeque<>();
  private volatile @Nullable Connection execution;
  private volatile @Nullable Connection control;
  private volatile @Nullable Death death;
  private final CompletableFuture<Void> reported = new CompletableFuture<>();
  private volatile @Nullable Heartbeat heartbeat;
  private final Map<Long, CompletableFuture<Void>> deliveries = new HashMap<>();
  private final Map<Long, CompletableFuture<Boolean>> idleQueries = new ConcurrentHashMap<>();
  private final AtomicLong lastIdleQuery = new AtomicLong();
  private final HeartbeatMonitor silence = new HeartbeatMonitor();
  private volatile boolean beatAnswered = true;
  private volatile boolean silent;
  private volatile boolean endedFrozen;
  private volatile long beatNanos;
  private volatile long waitingStep;
  private long lastDelivery;

  /// Last state reported by a rank, and its time (`System.nanoTime`).
  public record Heartbeat(FromRank.Pong pong, long receivedNanos) {}

  RankProcess(int rank, Process process, String token, Consumer<RankEvent> events) {
    this.rank = rank;
    this.process = process;
    this.events = events;
    var out = drain(Channel.STDOUT, token);
    var err = drain(Channel.STDERR, token);
    // A separate thread: `Process.onExit` would use one of the common pool, which on a small
    // machine has a single thread that may be waiting for this rank.
    Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-exit")
        .start(() -> awaitExit(out, err));
  }

  private Thread drain(Channel channel, String token) {
    var pipe = channel == Channel.STDOUT ? process.getInputStream() : process.getErrorStream();
    var pump = new OutputPump(rank, channel, token, events);
    return Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-" + channel)
        .start(() -> pump.drain(pipe));
  }

  public int rank() {
    return rank;
  }

  public long pid() {
    return process.pid();
  }

  /// Name of the rank's host; empty on the front's own.
  public String host() {
    return process instanceof RemoteProcess remote ? remote.host() : "";
  }

  private String name() {
    return Death.name(rank, host(), pid());
  }

  private Optional<ProcessState> state() {
    return process instanceof RemoteProcess remote ? remote.state() : ProcessState.of(pid());
  }

  private Death death(int exitValue) {
    var loss = process instanceof RemoteProcess remote ? remote.loss() : "";
    return new Death(rank, pid(), exitValue, host(), loss);
  }

  public Optional<Death> death() {
    return Optional.ofNullable(death);
  }

  /// Returns true if a request is pending.
  public boolean isBusy() {
    synchronized (pending) {
      return !pending.isEmpty();
    }
  }

  public Optional<Heartbeat> heartbeat() {
    return Optional.ofNullable(heartbeat);
  }

  /// Sends a heartbeat if the last one was answered, so that none pile up for a rank that does not
  /// read; otherwise checks whether the rank is silent. Called once per second.
  void beat(long number) {
    if (death != null || control == null) {
      return;
    }
    if (beatAnswered) {
      if (silence.answered()) {
        silent = false;
        events.accept(new RankEvent.AnswersAgain(rank, name(), secondsSince(beatNanos)));
      }
      beatAnswered = false;
      beatNanos = System.nanoTime();
      send(new ToRank.Ping(number));
      return;
    }
    state()
        .filter(silence::missed)
        .ifPresent(
            state -> {
              silent = true;
              events.accept(
                  new RankEvent.Silent(rank, name(), secondsSince(beatNanos), why(state)));
            });
  }

  private static long secondsSince(long nanos) {
    return Math.round((System.nanoTime() - nanos) / 1e9);
  }

  private String why(ProcessState state) {
    return switch (state.state()) {
      case 'T' -> "its process is stopped; kill -CONT " + pid() + " continues it";
      case 't' -> "its process is stopped by a debugger";
      case 'D' -> "its process is stuck in the kernel";
      default -> "";
    };
  }

  /// Returns true if the process cannot react to messages: it is stopped, or silent.
  public boolean isFrozen() {
    return death == null && (silent || state().map(ProcessState::isStopped).orElse(false));
  }

  boolean connected() {
    return execution != null && control != null;
  }

  void attach(Connection connection, boolean isControl) {
    if (isControl) {
      control = connection;
      listen("control", connection, this::onControl);
    } else {
      execution = connection;
      listen("execution", connection, this::onExecution);
    }
  }

  /// Sends a request; requests are answered in order. Completes exceptionally with [RankDied].
  public CompletableFuture<FromRank.Answer> request(ToRank message) {
    var answer = new CompletableFuture<FromRank.Answer>();
    var connection = execution;
    synchronized (pending) {
      if (death != null || connection == null) {
        answer.completeExceptionally(deathOrUnconnected());
        return answer;
      }
      pending.add(answer);
      try {
        connection.send(message);
      } catch (IOException e) {
        // The connection broke because the process is ending: its exit completes the answer.
        endSoon();
      }
    }
    return answer;
  }

  /// Sends a control message, which the rank also handles during a cell. Has no effect on a dead
  /// rank, whose death is reported separately.
  public void send(ToRank message) {
    var connection = control;
    if (connection == null || death != null) {
      return;
    }
    try {
      connection.send(message);
    } catch (IOException e) {
      endSoon();
    }
  }

  /// Completes when the rank has received all messages so far, or is dead.
  public CompletableFuture<Void> delivery() {
    var delivered = new CompletableFuture<Void>();
    long number;
    synchronized (deliveries) {
      // Negative numbers: heartbeats count up.
      number = --lastDelivery;
      deliveries.put(number, delivered);
    }
    send(new ToRank.Ping(number));
    if (death != null || control == null) {
      completeDeliveries();
    }
    return delivered;
  }

  /// Completes with true if no code of a cell runs in the rank and its streams are idle. Does not
  /// complete if the rank dies.
  public CompletableFuture<Boolean> idle() {
    var answer = new CompletableFuture<Boolean>();
    long number = lastIdleQuery.incrementAndGet();
    idleQueries.put(number, answer);
    send(new ToRank.IdleQuery(number));
    return answer;
  }

  /// Returns true if the rank has reported that it waits in this step.
  public boolean isWaiting(long step) {
    return waitingStep == step;
  }

  private void completeDeliveries() {
    synchronized (deliveries) {
      deliveries.values().forEach(delivered -> delivered.complete(null));
      deliveries.clear();
    }
  }

  private void delivered(long number) {
    synchronized (deliveries) {
      var waiting = deliveries.remove(number);
      if (waiting != null) {
        waiting.complete(null);
      }
    }
  }

  private RankDied deathOrUnconnected() {
    var ended = death;
    return new RankDied(ended != null ? ended : death(-1));
  }

  private interface Handler {
    void accept(FromRank message);
  }

  private void listen(String name, Connection connection, Handler delivered) {
    Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-" + name)
        .start(
            () -> {
              try {
                while (true) {
                  delivered.accept(FromRank.read(connection.in()));
                }
              } catch (IOException e) {
                close(connection);
                endSoon();
              }
            });
  }

  private void onExecution(FromRank message) {
    switch (message) {
      case FromRank.Answer answer -> {
        @Nullable CompletableFuture<FromRank.Answer> request;
        synchronized (pending) {
          request = pending.poll();
        }
        // None if the rank's end was known before its last answer arrived.
        if (request != null) {
          request.complete(answer);
        }
      }
      case FromRank other -> onEvent(other);
    }
  }

  private void onControl(FromRank message) {
    switch (message) {
      case FromRank.Pong pong -> {
        heartbeat = new Heartbeat(pong, System.nanoTime());
        beatAnswered = true;
        delivered(pong.number());
      }
      case FromRank.Waiting waiting -> waitingStep = waiting.step();
      case FromRank.IdleAnswer reply -> {
        var request = idleQueries.remove(reply.number());
        if (request != null) {
          request.complete(reply.idle());
        }
      }
      case FromRank other -> onEvent(other);
    }
  }

  private void onEvent(FromRank message) {
    switch (message) {
      case FromRank.Display shown ->
          events.accept(
              new RankEvent.Displayed(rank, shown.bundle(), shown.displayId(), shown.update()));
      case FromRank.Published published ->
          events.accept(new RankEvent.Published(rank, published.bundle()));
      case FromRank.InputRequest request ->
          events.accept(new RankEvent.InputRequested(rank, request.prompt()));
      case FromRank.Pong _, FromRank.Waiting _, FromRank.IdleAnswer _ ->
          throw new IllegalStateException("on the wrong connection: " + message);
      case FromRank.Answer ignored ->
          throw new IllegalStateException("an answer on the wrong connection");
    }
  }

  private void endSoon() {
    Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-ending")
        .start(
            () -> {
              if (!hasLeft(System.nanoTime() + LINGER.toNanos())) {
                kill();
              }
            });
  }

  /// Waits for the end of the process; returns false after the deadline (`System.nanoTime`), or if
  /// interrupted.
  boolean hasLeft(long deadlineNanos) {
    try {
      return process.waitFor(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /// Ends the requests of the dead rank at once, since other ranks may wait for it. Reports the
  /// death after all output of the rank, which a slow client may delay.
  private void awaitExit(Thread out, Thread err) {
    try {
      process.waitFor();
      var ended = death(process.exitValue());
      boolean first = endRequests(ended);
      out.join(PIPE_PATIENCE);
      err.join(PIPE_PATIENCE);
      CellThreads.sweep();
      if (first) {
        reportDeath(ended);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Returns false if the death was known.
  private boolean endRequests(Death ended) {
    synchronized (pending) {
      if (death != null) {
        return false;
      }
      death = ended;
      pending.forEach(p -> p.completeExceptionally(new RankDied(ended)));
      pending.clear();
    }
    completeDeliveries();
    return true;
  }

  private void reportDeath(Death ended) {
    close(execution);
    close(control);
    events.accept(new RankEvent.Died(rank, ended));
    reported.complete(null);
  }

  /// Waits until all output of a dead rank has been read, or for a time after its death.
  public void awaitOutput() {
    if (death != null) {
      reported.join();
    }
  }

  private static void close(@Nullable Connection connection) {
    try {
      if (connection != null) {
        connection.close();
      }
    } catch (IOException e) {
      // The other end is dead.
      return;
    }
  }

  /// Kills the process; its death is reported like any other. If it does not end, it is declared
  /// dead, so that no caller waits for its answers.
  public void kill() {
    process.destroyForcibly();
    Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-killed")
        .start(
            () -> {
              if (!hasLeft(killedBy())) {
                System.err.println(
                    "braid: %s was killed but has not ended within %d s; its GPU stays in use until it ends"
                        .formatted(name(), KILL_PATIENCE.toSeconds()));
                var ended = death(Death.KILLED);
                if (endRequests(ended)) {
                  reportDeath(ended);
                }
              }
            });
  }

  /// Kills a frozen process, which cannot stop on its own.
  public void killFrozen() {
    endedFrozen = true;
    kill();
  }

  /// Returns true if the process was killed because it was frozen.
  public boolean endedFrozen() {
    return endedFrozen;
  }

  /// Returns the deadline for a process that is killed now (`System.nanoTime`).
  static long killedBy() {
    return System.nanoTime() + KILL_PATIENCE.toNanos();
  }
}
