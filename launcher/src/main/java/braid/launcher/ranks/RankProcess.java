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

/// The front's hold on one rank: its process, its two connections, and the requests that wait for
/// an answer.
public final class RankProcess {
  /// A rank that closed its connections is ending; one that has not ended after this long is made
  /// to.
  private static final Duration LINGER = Duration.ofSeconds(2);

  /// A process that is killed is gone at once, unless a driver still has to take a GPU from it.
  /// Nobody waits longer for that.
  private static final Duration KILL_PATIENCE = Duration.ofSeconds(10);

  /// What a dead rank printed is read to its end, unless a child of its keeps the pipe open.
  private static final Duration PIPE_PATIENCE = Duration.ofSeconds(2);

  private final int rank;
  private final Process process;
  private final Consumer<RankEvent> events;
  private final ArrayDeque<CompletableFuture<FromRank.Answer>> pending = new ArrayDeque<>();
  private volatile @Nullable Connection execution;
  private volatile @Nullable Connection control;
  private volatile @Nullable Death death;
  private volatile @Nullable Heartbeat heartbeat;
  private final Map<Long, CompletableFuture<Void>> hearings = new HashMap<>();
  private final Map<Long, CompletableFuture<Boolean>> restings = new ConcurrentHashMap<>();
  private final AtomicLong lastResting = new AtomicLong();
  private final Silence silence = new Silence();
  private volatile boolean beatAnswered = true;
  private volatile boolean silent;
  private volatile boolean endedFrozen;
  private volatile long beatNanos;
  private volatile long waitingStep;
  private long lastHearing;

  /// What a rank last said of itself, and when (`System.nanoTime`).
  public record Heartbeat(FromRank.Pong pong, long heardNanos) {}

  RankProcess(int rank, Process process, String token, Consumer<RankEvent> events) {
    this.rank = rank;
    this.process = process;
    this.events = events;
    var out = drain(Channel.STDOUT, token);
    var err = drain(Channel.STDERR, token);
    // A thread of its own: `Process.onExit` would need one of the common pool's, which on a small
    // machine has a single
    // one that may be waiting for this very rank.
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

  public Optional<Death> death() {
    return Optional.ofNullable(death);
  }

  /// Whether it has been asked something and has not answered.
  public boolean isBusy() {
    synchronized (pending) {
      return !pending.isEmpty();
    }
  }

  public Optional<Heartbeat> heartbeat() {
    return Optional.ofNullable(heartbeat);
  }

  /// Sends a heartbeat if the last one was answered, so that nothing gathers before a rank that
  /// reads nothing; else looks whether the rank is silent. Called once a second.
  void beat(long number) {
    if (death != null || control == null) {
      return;
    }
    if (beatAnswered) {
      if (silence.answered()) {
        silent = false;
        events.accept(new RankEvent.AnswersAgain(rank, pid(), secondsSince(beatNanos)));
      }
      beatAnswered = false;
      beatNanos = System.nanoTime();
      tell(new ToRank.Ping(number));
      return;
    }
    ProcessState.of(pid())
        .filter(silence::missed)
        .ifPresent(
            state -> {
              silent = true;
              events.accept(new RankEvent.Silent(rank, pid(), secondsSince(beatNanos), why(state)));
            });
  }

  private static long secondsSince(long nanos) {
    return Math.round((System.nanoTime() - nanos) / 1e9);
  }

  private String why(ProcessState state) {
    return switch (state.state()) {
      case 'T' -> "its process is stopped; kill -CONT " + pid() + " lets it go on";
      case 't' -> "its process is stopped by a debugger";
      case 'D' -> "its process is stuck in the kernel";
      default -> "";
    };
  }

  /// Whether the process cannot act on what it is told: it is stopped, or silent.
  public boolean isFrozen() {
    return death == null
        && (silent || ProcessState.of(pid()).map(ProcessState::isStopped).orElse(false));
  }

  boolean connected() {
    return execution != null && control != null;
  }

  void attach(Connection connection, boolean isControl) {
    if (isControl) {
      control = connection;
      listen("control", connection, this::heardOnControl);
    } else {
      execution = connection;
      listen("execution", connection, this::heardOnExecution);
    }
  }

  /// Asks something of the rank; requests are answered in their order. Completes exceptionally with
  /// [RankDied].
  public CompletableFuture<FromRank.Answer> request(ToRank message) {
    var answer = new CompletableFuture<FromRank.Answer>();
    var connection = execution;
    synchronized (pending) {
      if (death != null || connection == null) {
        answer.completeExceptionally(diedOrNever());
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

  /// Tells the rank something that is heard also while it runs a cell. A rank that is gone hears
  /// nothing, which is said by its death, not here.
  public void tell(ToRank message) {
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

  /// Done when the rank has heard all that it was told so far, or is dead.
  public CompletableFuture<Void> hearing() {
    var heard = new CompletableFuture<Void>();
    long number;
    synchronized (hearings) {
      // Downwards: heartbeats count up.
      number = --lastHearing;
      hearings.put(number, heard);
    }
    tell(new ToRank.Ping(number));
    if (death != null || control == null) {
      heardAll();
    }
    return heard;
  }

  /// Whether nothing of a cell runs in the rank and its streams are done; a rank that dies does not
  /// say.
  public CompletableFuture<Boolean> resting() {
    var answer = new CompletableFuture<Boolean>();
    long number = lastResting.incrementAndGet();
    restings.put(number, answer);
    tell(new ToRank.Rest(number));
    return answer;
  }

  /// Whether the rank has waited in that step for long enough to say so.
  public boolean isWaiting(long step) {
    return waitingStep == step;
  }

  private void heardAll() {
    synchronized (hearings) {
      hearings.values().forEach(heard -> heard.complete(null));
      hearings.clear();
    }
  }

  private void heard(long number) {
    synchronized (hearings) {
      var waiting = hearings.remove(number);
      if (waiting != null) {
        waiting.complete(null);
      }
    }
  }

  private RankDied diedOrNever() {
    var how = death;
    return new RankDied(how != null ? how : new Death(rank, pid(), -1));
  }

  private interface Heard {
    void accept(FromRank message);
  }

  private void listen(String name, Connection connection, Heard heard) {
    Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-" + name)
        .start(
            () -> {
              try {
                while (true) {
                  heard.accept(FromRank.read(connection.in()));
                }
              } catch (IOException e) {
                close(connection);
                endSoon();
              }
            });
  }

  private void heardOnExecution(FromRank message) {
    switch (message) {
      case FromRank.Answer answer -> {
        CompletableFuture<FromRank.Answer> asked;
        synchronized (pending) {
          asked = pending.remove();
        }
        asked.complete(answer);
      }
      case FromRank other -> heardByItself(other);
    }
  }

  private void heardOnControl(FromRank message) {
    switch (message) {
      case FromRank.Pong pong -> {
        heartbeat = new Heartbeat(pong, System.nanoTime());
        beatAnswered = true;
        heard(pong.number());
      }
      case FromRank.Waiting waiting -> waitingStep = waiting.step();
      case FromRank.Resting resting -> {
        var asked = restings.remove(resting.number());
        if (asked != null) {
          asked.complete(resting.atRest());
        }
      }
      case FromRank other -> heardByItself(other);
    }
  }

  private void heardByItself(FromRank message) {
    switch (message) {
      case FromRank.Display shown ->
          events.accept(
              new RankEvent.Displayed(rank, shown.bundle(), shown.displayId(), shown.update()));
      case FromRank.Published published ->
          events.accept(new RankEvent.Published(rank, published.bundle()));
      case FromRank.InputRequest request ->
          events.accept(new RankEvent.InputRequested(rank, request.prompt()));
      case FromRank.Pong _, FromRank.Waiting _, FromRank.Resting _ ->
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

  /// Waits for the end of the process; false where it has not come by the deadline
  /// (`System.nanoTime`), or the wait was interrupted.
  boolean hasLeft(long deadlineNanos) {
    try {
      return process.waitFor(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /// All that the rank still said is reported before its death is.
  private void awaitExit(Thread out, Thread err) {
    try {
      process.waitFor();
      out.join(PIPE_PATIENCE);
      err.join(PIPE_PATIENCE);
      CellThreads.sweep();
      died(new Death(rank, process.pid(), process.exitValue()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void died(Death how) {
    synchronized (pending) {
      if (death != null) {
        return;
      }
      death = how;
      pending.forEach(p -> p.completeExceptionally(new RankDied(how)));
      pending.clear();
    }
    heardAll();
    close(execution);
    close(control);
    events.accept(new RankEvent.Died(rank, how));
  }

  private static void close(@Nullable Connection connection) {
    try {
      if (connection != null) {
        connection.close();
      }
    } catch (IOException e) {
      // The other end is dead; there is nothing left to lose on this one.
      return;
    }
  }

  /// Ends the process at once; its death is reported like any other. One that even so does not end
  /// is taken for dead, so that nobody waits for its answers.
  public void kill() {
    process.destroyForcibly();
    Thread.ofPlatform()
        .daemon()
        .name("braid-rank-" + rank + "-killed")
        .start(
            () -> {
              if (!hasLeft(killedBy())) {
                System.err.println(
                    "braid: rank %d (pid %d) was killed but has not ended within %d s; its GPU is free when it has"
                        .formatted(rank, pid(), KILL_PATIENCE.toSeconds()));
                died(new Death(rank, pid(), Death.KILLED));
              }
            });
  }

  /// Ends a process that is frozen, and so cannot end what it was told to.
  public void killFrozen() {
    endedFrozen = true;
    kill();
  }

  /// Whether the process was ended because it was frozen.
  public boolean endedFrozen() {
    return endedFrozen;
  }

  /// When a process that is killed now must have ended (`System.nanoTime`).
  static long killedBy() {
    return System.nanoTime() + KILL_PATIENCE.toNanos();
  }
}
