package braid.launcher.hosts;

import braid.internal.store.FoldedLog;
import braid.internal.store.Unproven;
import braid.launcher.Counted;
import braid.launcher.ranks.RankStarter;
import braid.model.BraidException;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Ranks whose agents (`braid rank`) somebody else starts, on this host or on others. The front
/// listens; each agent joins over TLS with a proof of the token, starts its rank's process when
/// told, and carries the process's connections and output. An agent outlives its process, so
/// `%restart` and the next notebook need no new agents.
///
/// Strangers. A connection has 10 s until its proof, there are at most 64 without proof beside
/// those of ranks, and the oldest of the address with most makes room for a new one. Until the
/// proof nothing but a TLS greeting and 100 bytes are read, so a flood costs time and nothing else:
/// agents try again until they are in.
///
/// Failures. The front sends each agent a beat per second; seven without an answer declare the
/// agent's rank dead. An agent that hears nothing for 15 s, or whose link breaks, kills its process
/// and ends. A process whose agent has ended loses its connections, and ends too. So nothing
/// survives on any host, whoever fails.
public final class JoinedRanks implements RankStarter, AutoCloseable {
  /// Default time for all agents to join.
  public static final Duration JOIN_TIMEOUT = Duration.ofMinutes(5);

  /// Time from the connection to the proof.
  private static final Duration PROOF = Duration.ofSeconds(10);

  private static final Duration BEAT = Duration.ofSeconds(1);

  private static final int BACKLOG = 256;
  private static final long ACCEPT_PAUSE_NANOS = Duration.ofMillis(100).toNanos();

  /// @param launcher name of the launcher, for messages: `attach`
  /// @param count number of ranks
  /// @param listen address, perhaps of all interfaces
  /// @param port 0 for any
  /// @param key made before this front; empty to make one
  /// @param file receives the key for the agents; empty if they get it otherwise
  /// @param timeout for all agents to join
  /// @param version of this build; agents of others are refused
  /// @param defaults variables that ranks get unless their host sets them
  /// @param job starts the agents; empty if somebody else does
  /// @param options of the command that chose this launcher
  public record Settings(
      String launcher,
      int count,
      InetAddress listen,
      int port,
      Optional<JoinKey> key,
      Optional<Path> file,
      Duration timeout,
      String version,
      Map<String, String> defaults,
      Optional<AgentJob> job,
      List<String> options) {
    public Settings {
      defaults = Map.copyOf(defaults);
      options = List.copyOf(options);
    }
  }

  private final Settings settings;
  private final Map<Integer, JoinedAgent> agents = new TreeMap<>();
  private final Unproven unproven;
  private final FoldedLog log = new FoldedLog(System.err::println);
  private final RunCertificate certificate = RunCertificate.create();
  private final Thread hook = new Thread(this::endWaiting, "braid-join-end");
  private @Nullable ServerSocket listener;
  private @Nullable JoinKey key;
  private @Nullable ScheduledExecutorService beats;
  private boolean waitingEnded;

  public JoinedRanks(Settings settings) {
    this.settings = settings;
    unproven = new Unproven(settings.count);
  }

  @Override
  public String description() {
    return settings.launcher;
  }

  @Override
  public List<String> options() {
    return settings.options;
  }

  /// Address and port at which agents join, once this listens.
  JoinKey key() {
    synchronized (agents) {
      if (key == null) {
        throw new IllegalStateException("not listening yet");
      }
      return key;
    }
  }

  @Override
  public void prepare(int count) {
    try {
      open();
    } catch (IOException e) {
      throw new BraidException(
          "--listen must be an address of this host with a free port but %s:%d cannot be used (%s); try --listen $(hostname -i)"
              .formatted(settings.listen.getHostAddress(), settings.port, e.getMessage()),
          e);
    }
    if (!missing().isEmpty()) {
      settings.job.ifPresent(this::restart);
      if (settings.job.isEmpty()) {
        log.line(
            "braid: waiting for %s at %s; start each by braid rank%s"
                .formatted(
                    Counted.of(missing().size(), "rank"),
                    key(),
                    settings.file.map(file -> " --join " + file).orElse("")));
      }
      await();
    }
    checkPlaces();
  }

  /// Starts all agents anew: engines end a whole job when one of its processes fails.
  private void restart(AgentJob job) {
    List<JoinedAgent> earlier;
    synchronized (agents) {
      earlier = List.copyOf(agents.values());
    }
    earlier.forEach(each -> each.send(new LinkMessage.Over()));
    job.close();
    synchronized (agents) {
      agents.clear();
    }
    job.start(key(), settings.count, log::line);
  }

  private void open() throws IOException {
    synchronized (agents) {
      if (listener != null) {
        return;
      }
      var opened = new ServerSocket(settings.port, BACKLOG + settings.count, settings.listen);
      listener = opened;
      key =
          settings.key.isPresent()
              ? settings.key.get()
              : new JoinKey(
                  JoinKey.reachable(settings.listen),
                  opened.getLocalPort(),
                  JoinKey.newToken(),
                  Optional.of(HexFormat.of().formatHex(certificate.hash())));
      Thread.ofPlatform().daemon().name("braid-join").start(() -> accept(opened));
      var clock =
          Executors.newSingleThreadScheduledExecutor(
              Thread.ofPlatform().daemon().name("braid-join-beat").factory());
      beats = clock;
      // Fixed delay, not fixed rate: a front that was paused must not catch up on missed beats.
      var _ =
          clock.scheduleWithFixedDelay(
              this::beat, BEAT.toMillis(), BEAT.toMillis(), TimeUnit.MILLISECONDS);
      Runtime.getRuntime().addShutdownHook(hook);
      settings.file.ifPresent(file -> key().write(file));
    }
  }

  private void beat() {
    unproven.closeOlderThan(PROOF);
    List<JoinedAgent> all;
    synchronized (agents) {
      all = List.copyOf(agents.values());
    }
    try {
      all.forEach(JoinedAgent::beat);
    } catch (OutOfMemoryError e) {
      // Java throws it if it cannot start more threads. An error would end all later beats.
      var line = "braid: the front cannot send beats for now: " + e.getMessage();
      log.repeated(line, line);
    }
  }

  private List<Integer> missing() {
    synchronized (agents) {
      return IntStream.range(0, settings.count)
          .filter(i -> !agents.containsKey(i))
          .boxed()
          .toList();
    }
  }

  private void await() {
    long deadline = System.nanoTime() + settings.timeout.toNanos();
    synchronized (agents) {
      while (!missing().isEmpty()) {
        long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        var ended = settings.job.flatMap(AgentJob::ended);
        if (ended.isPresent()) {
          throw new BraidException(
              "%s before %s had joined; its output is above"
                  .formatted(ended.get(), words(missing())));
        }
        if (waitingEnded) {
          throw new BraidException("the command was ended before " + words(missing()) + " joined");
        }
        if (left <= 0) {
          throw new BraidException(notJoined());
        }
        try {
          agents.wait(Math.min(left, BEAT.toMillis()));
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new BraidException("waiting for ranks was interrupted", e);
        }
      }
    }
  }

  private String notJoined() {
    var arrived = agents.keySet().stream().toList();
    return "%s of %d did not join at %s within %d s (%s); start them, or raise --join-timeout"
        .formatted(
            words(missing()),
            settings.count,
            key(),
            settings.timeout.toSeconds(),
            arrived.isEmpty()
                ? "no other did"
                : words(arrived) + " did, from " + String.join(", ", hosts()));
  }

  private List<String> hosts() {
    return agents.values().stream().map(JoinedAgent::host).distinct().toList();
  }

  private static String words(List<Integer> ranks) {
    var list = ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
    return (ranks.size() == 1 ? "rank " : "ranks ") + list;
  }

  /// Ranks of a host must be consecutive: memory and devices are dealt by that.
  private void checkPlaces() {
    synchronized (agents) {
      for (var host : hosts()) {
        var local = ranksOf(host);
        if (local.getLast() - local.getFirst() >= local.size()) {
          throw new BraidException(
              "ranks of a host must be consecutive but host %s has %s; start them host by host, as srun --distribution=block does"
                  .formatted(host, words(local)));
        }
      }
    }
  }

  private List<Integer> ranksOf(String host) {
    return agents.values().stream()
        .filter(each -> each.host().equals(host))
        .map(JoinedAgent::rank)
        .toList();
  }

  @Override
  public Process start(Start start, int rank) throws IOException {
    JoinedAgent agent;
    var environment = new TreeMap<>(start.environment());
    synchronized (agents) {
      agent = agents.get(rank);
      if (agent == null) {
        throw new IOException("rank " + rank + " has left");
      }
      var local = ranksOf(agent.host());
      environment.put("RANK", Integer.toString(rank));
      environment.put("WORLD_SIZE", Integer.toString(start.count()));
      environment.put("LOCAL_RANK", Integer.toString(local.indexOf(rank)));
      environment.put("LOCAL_WORLD_SIZE", Integer.toString(local.size()));
      if (hosts().size() > 1) {
        environment.put("BRAID_HOST", agent.host());
      }
    }
    int storePort = Integer.parseInt(environment.getOrDefault("MASTER_PORT", "0"));
    return agent.start(start, environment, settings.defaults, storePort);
  }

  private void accept(ServerSocket opened) {
    while (!opened.isClosed()) {
      try {
        var socket = opened.accept();
        unproven.add(socket);
        Thread.ofVirtual().name("braid-join-link").start(() -> serve(socket));
      } catch (IOException | OutOfMemoryError e) {
        // Java throws OutOfMemoryError if it cannot start more threads.
        if (!opened.isClosed()) {
          var line = "braid: the front cannot take connections for now: " + e.getMessage();
          log.repeated(line, line);
          LockSupport.parkNanos(ACCEPT_PAUSE_NANOS);
        }
      }
    }
  }

  private void serve(Socket socket) {
    var from = socket.getRemoteSocketAddress();
    try (socket;
        var link = Link.accept(socket, certificate, key())) {
      if (!(link.read() instanceof LinkMessage.Join join)) {
        throw new IOException("it did not join as a rank");
      }
      unproven.remove(socket);
      link.silence(Duration.ZERO);
      join(join, link);
    } catch (IOException | RuntimeException e) {
      var reason = e instanceof EOFException ? "it closed the connection" : e.getMessage();
      log.repeated(
          "braid: refused a connection: " + reason,
          "braid: refused a connection from %s: %s".formatted(from, reason));
    } finally {
      unproven.remove(socket);
    }
  }

  private void join(LinkMessage.Join join, Link link) throws IOException {
    var agent = new JoinedAgent(join, link, this::ended);
    String refusal;
    synchronized (agents) {
      refusal = admit(join, agent);
      // The agent's first message: a start or a beat can follow as soon as the lock is free.
      link.send(new LinkMessage.Answered(refusal));
      agents.notifyAll();
    }
    if (refusal.isEmpty()) {
      agent.serve();
    } else {
      log.line(
          "braid: refused rank %d of host %s: %s".formatted(join.rank(), join.host(), refusal));
    }
  }

  /// Adds the agent; returns the reason if it is refused.
  private String admit(LinkMessage.Join join, JoinedAgent agent) {
    synchronized (agents) {
      if (!join.version().equals(settings.version)) {
        return "it is Braid %s but the front is %s; use one build on all hosts"
            .formatted(join.version(), settings.version);
      }
      if (join.size() != 0 && join.size() != settings.count) {
        return "%s were started but the session has %d; try -n %d"
            .formatted(Counted.of(join.size(), "rank"), settings.count, join.size());
      }
      if (join.rank() < 0 || join.rank() >= settings.count) {
        return "its rank must be 0..%d but is %d; start %s"
            .formatted(settings.count - 1, join.rank(), Counted.of(settings.count, "rank"));
      }
      var present = agents.putIfAbsent(join.rank(), agent);
      if (present != null) {
        return "rank %d has joined from host %s already; is BRAID_RANK set twice?"
            .formatted(join.rank(), present.host());
      }
      return "";
    }
  }

  private void ended(JoinedAgent agent, String reason) {
    synchronized (agents) {
      if (agents.remove(agent.rank(), agent) && agent.process() == null && !waitingEnded) {
        log.line("braid: rank %d has left: %s".formatted(agent.rank(), reason));
      }
    }
  }

  /// Ends the waiting of a command that a signal ends. It may exit before it closes this.
  private void endWaiting() {
    synchronized (agents) {
      waitingEnded = true;
      removeFile();
      agents.notifyAll();
    }
  }

  private void removeFile() {
    var written = key;
    if (written != null) {
      settings.file.ifPresent(written::remove);
    }
  }

  /// Ends all agents and stops listening. Idempotent.
  @Override
  public void close() {
    var ending = new ArrayList<JoinedAgent>();
    synchronized (agents) {
      if (listener == null) {
        return;
      }
      waitingEnded = true;
      ending.addAll(agents.values());
    }
    ending.forEach(each -> each.send(new LinkMessage.Over()));
    settings.job.ifPresent(AgentJob::close);
    synchronized (agents) {
      closeListener();
      agents.clear();
    }
    log.close();
  }

  private void closeListener() {
    try {
      if (listener != null) {
        listener.close();
      }
    } catch (IOException e) {
      // It accepts nothing any more.
    }
    if (beats != null) {
      beats.shutdownNow();
    }
    removeFile();
    listener = null;
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending.
    }
  }
}
