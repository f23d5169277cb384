package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.ranks.RankJvm;
import braid.model.BraidException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ProtocolException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// `braid rank`: joins a front as one rank, and starts the rank's process each time that the front
/// asks. The process connects to ports of its own host; its connections and its output go through
/// this agent's link. Ends with the run, and kills the process when the front is lost.
public final class RankAgent {
  /// Longest silence of the front, which sends a beat per second.
  static final Duration FRONT_SILENCE = Duration.ofSeconds(15);

  /// Time for a killed process to end, which a driver may delay.
  private static final Duration KILL_PATIENCE = Duration.ofSeconds(10);

  /// Time for the output of an ended process to be sent.
  private static final Duration OUTPUT_PATIENCE = Duration.ofMillis(500);

  /// Finds the key. Its front may not have written it yet, or may write it again.
  public interface KeySource {
    /// @throws NoSuchFileException if it is not there yet
    JoinKey key() throws NoSuchFileException;
  }

  private final KeySource keys;
  private final RankPlace place;
  private final String version;
  private final Map<String, String> variables;
  private final Consumer<String> log;

  /// Starts and kills processes, in the order of the front's messages.
  private final ExecutorService orders =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().daemon().name("braid-rank-orders").factory());

  private volatile @Nullable Running running;
  private volatile @Nullable Link joined;
  private volatile boolean leaving;

  /// A process with its tunnels.
  private record Running(int start, Process process, List<Tunnel> tunnels) {}

  /// @param variables environment of this process
  public RankAgent(
      KeySource keys,
      RankPlace place,
      String version,
      Map<String, String> variables,
      Consumer<String> log) {
    this.keys = keys;
    this.place = place;
    this.version = version;
    this.variables = Map.copyOf(variables);
    this.log = log;
  }

  /// Serves the front until the run is over.
  ///
  /// @param patience time for the front to listen
  /// @throws BraidException if the front refuses this rank
  /// @throws IOException if the front cannot be reached, or is lost
  public void run(Duration patience) throws IOException {
    var hook = new Thread(this::leave, "braid-rank-end");
    Runtime.getRuntime().addShutdownHook(hook);
    try (var link = connect(patience)) {
      joined = link;
      serve(link);
    } catch (IOException e) {
      throw leaving ? new IOException("a signal has ended it", e) : e;
    } finally {
      endOrders();
      kill();
      removeUnlessRunning(hook);
    }
  }

  /// Waits until a process that is being started can be killed.
  private void endOrders() {
    orders.shutdown();
    try {
      var _ = orders.awaitTermination(KILL_PATIENCE.toSeconds(), TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void serve(Link link) throws IOException {
    try {
      while (serve(link.read(), link)) {}
    } catch (SocketTimeoutException e) {
      throw new IOException(
          "the front at %s has been silent for %d s"
              .formatted(link.key(), FRONT_SILENCE.toSeconds()),
          e);
    } catch (EOFException | SocketException e) {
      // A killed front that has not read everything resets the connection.
      throw new IOException("the front at " + link.key() + " has ended", e);
    }
  }

  private static void removeUnlessRunning(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending.
    }
  }

  private Link connect(Duration patience) throws IOException {
    long deadline = System.nanoTime() + patience.toNanos();
    @Nullable JoinKey key = null;
    while (true) {
      try {
        key = keys.key();
        return join(Link.connect(key));
      } catch (IOException e) {
        boolean foreign = Link.isForeign(e);
        boolean late = System.nanoTime() > deadline;
        if (late || (foreign && keys.key().equals(key))) {
          throw new BraidException(
              "rank %d cannot join %s%s: %s; is the front running, and is the key its own?"
                  .formatted(
                      place.rank(),
                      key == null ? "a front" : "the front at " + key,
                      foreign ? "" : " within %d s".formatted(patience.toSeconds()),
                      e instanceof NoSuchFileException
                          ? e.getMessage() + " does not exist"
                          : e.getMessage()),
              e);
        }
        LockSupport.parkNanos(Link.RETRY.toNanos());
      }
    }
  }

  /// Joins as this rank. A front that is too busy may close the link before it answers.
  private Link join(Link link) throws IOException {
    try {
      link.send(
          new LinkMessage.Join(
              version, place.host(), place.rank(), place.size(), ProcessHandle.current().pid()));
      link.silence(FRONT_SILENCE);
      if (!(link.read() instanceof LinkMessage.Answered(var refusal))) {
        throw new ProtocolException("it does not answer");
      }
      if (!refusal.isEmpty()) {
        throw new BraidException(
            "the front at %s refused rank %d: %s".formatted(link.key(), place.rank(), refusal));
      }
      return link;
    } catch (EOFException e) {
      link.close();
      throw new IOException("it closed the connection", e);
    } catch (IOException | RuntimeException e) {
      link.close();
      throw e;
    }
  }

  /// Returns false after the last message. Waits for nothing: a link to a lost front may take no
  /// more bytes, an earlier process may not end, and only reading finds that the front is silent.
  private boolean serve(LinkMessage message, Link link) throws IOException {
    switch (message) {
      case LinkMessage.Beat beat -> {
        var alive = new LinkMessage.Alive(beat.number(), state());
        Thread.ofVirtual().name("braid-alive").start(() -> tell(link, alive));
      }
      case LinkMessage.Start start -> {
        var stdout = link.accept(start.stdout());
        var stderr = link.accept(start.stderr());
        orders.execute(() -> start(start, stdout, stderr, link));
      }
      case LinkMessage.Kill kill -> orders.execute(() -> kill(kill.start()));
      case LinkMessage.Over() -> {
        return false;
      }
      default -> throw new IOException("a front must not send " + message.getClass());
    }
    return true;
  }

  private ProcessState state() {
    var current = running;
    return current == null
        ? LinkMessage.NO_PROCESS
        : ProcessState.of(current.process.pid()).orElse(LinkMessage.NO_PROCESS);
  }

  private void kill(int start) {
    var current = running;
    if (current != null && current.start == start) {
      current.process.destroyForcibly();
    }
  }

  private void start(LinkMessage.Start start, Channel stdout, Channel stderr, Link link) {
    kill();
    var tunnels = new ArrayList<Tunnel>();
    try {
      var front = new Tunnel(link, start.start(), LinkMessage.End.FRONT);
      tunnels.add(front);
      var store = new Tunnel(link, start.start(), LinkMessage.End.STORE);
      tunnels.add(store);
      var builder = new ProcessBuilder(RankJvm.command(start.kind(), front.port()));
      builder.environment().clear();
      builder.environment().putAll(environment(start, store.port()));
      var process = builder.start();
      running = new Running(start.start(), process, tunnels);
      if (leaving) {
        kill();
      }
      var outputs =
          List.of(carry(process.getInputStream(), stdout), carry(process.getErrorStream(), stderr));
      // Not `Process.onExit`, which needs a thread of the common pool.
      Thread.ofPlatform()
          .daemon()
          .name("braid-rank-exit")
          .start(() -> report(start.start(), process, outputs, link));
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      // Java throws OutOfMemoryError if it cannot start more threads.
      kill();
      tunnels.forEach(Tunnel::close);
      stdout.close();
      stderr.close();
      tell(link, new LinkMessage.Exited(start.start(), 1, String.valueOf(e.getMessage())));
    }
  }

  private static void tell(Link link, LinkMessage message) {
    try {
      link.send(message);
    } catch (IOException e) {
      // The front has ended, which the reader of the link finds.
    }
  }

  /// Variables of the process. The join key stays with the agent.
  private Map<String, String> environment(LinkMessage.Start start, int storePort) {
    var all = new HashMap<>(start.defaults());
    all.putAll(variables);
    all.putAll(start.environment());
    all.put("MASTER_ADDR", "127.0.0.1");
    all.put("MASTER_PORT", Integer.toString(storePort));
    all.put("BRAID_TOKEN", start.token());
    all.remove(JoinKey.VARIABLE);
    if (!start.environment().containsKey("BRAID_HOST")) {
      all.remove("BRAID_HOST");
    }
    return all;
  }

  private Thread carry(InputStream output, Channel channel) {
    return Thread.ofPlatform()
        .daemon()
        .name("braid-rank-output")
        .start(
            () -> {
              try {
                channel.copy(output);
              } catch (IOException e) {
                if (!leaving) {
                  log.accept("the output of rank %d is lost: %s".formatted(place.rank(), e));
                }
                drain(output);
              }
            });
  }

  /// Reads output that nobody receives, so that the process does not wait for room in its pipe.
  private static void drain(InputStream output) {
    try {
      output.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      // The process has ended.
    }
  }

  /// Tells the front of the process's start, and of its end after its output. A child of the
  /// process may keep the pipes open.
  private static void report(int start, Process process, List<Thread> outputs, Link link) {
    tell(link, new LinkMessage.Started(start, process.pid()));
    try {
      int exit = process.waitFor();
      for (var output : outputs) {
        output.join(OUTPUT_PATIENCE);
      }
      tell(link, new LinkMessage.Exited(start, exit, ""));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Ends the link before the process, so that the front names the agent's end as the cause.
  private void leave() {
    leaving = true;
    var link = joined;
    if (link != null) {
      link.close();
    }
    kill();
  }

  private void kill() {
    var current = running;
    if (current == null) {
      return;
    }
    running = null;
    current.process.destroyForcibly();
    try {
      current.process.waitFor(KILL_PATIENCE.toSeconds(), TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    current.tunnels.forEach(Tunnel::close);
  }
}
