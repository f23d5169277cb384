package braid.launcher.ranks;

import braid.internal.store.FoldedLog;
import braid.internal.store.Unproven;
import braid.launcher.wire.Connection;
import braid.launcher.wire.ToRank;
import braid.model.BraidException;
import braid.model.Host;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/// The rank processes of a session: started, watched and ended together.
public final class RankSet implements AutoCloseable {
  /// Time for all ranks to connect. A rank that dies meanwhile ends the start at once.
  private static final Duration READY_TIMEOUT = Duration.ofMinutes(2);

  /// Time for the hello of a connection. A rank does not try again, so a busy machine must not
  /// exceed it; strangers are limited by their number.
  private static final Duration HELLO_TIMEOUT = Duration.ofMinutes(1);

  private static final Duration HEARTBEAT = Duration.ofSeconds(1);
  private static final int ACCEPT_POLL_MILLIS = 100;

  private final RankKind kind;
  private final List<RankProcess> ranks;
  private final ScheduledExecutorService heartbeats;
  private final AtomicLong beats = new AtomicLong();

  private RankSet(RankKind kind, List<RankProcess> ranks) {
    this.kind = kind;
    this.ranks = List.copyOf(ranks);
    heartbeats =
        Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("braid-heartbeat").factory());
    // Fixed delay, not fixed rate: a front that was paused must not catch up on missed beats.
    var _ =
        heartbeats.scheduleWithFixedDelay(
            this::beat, 0, HEARTBEAT.toMillis(), TimeUnit.MILLISECONDS);
  }

  /// Starts the ranks and returns when each has connected both of its connections. `environment` is
  /// added to torchrun's variables for all of them; `token` authenticates them.
  public static RankSet start(
      RankStarter starter,
      int count,
      String token,
      RankKind kind,
      Map<String, String> environment,
      Consumer<RankEvent> events) {
    var started = new ArrayList<RankProcess>();
    Consumer<String> output = System.err::println;
    starter.prepare(count);
    try (var server = new ServerSocket(0, 2 * count + 8, InetAddress.getLoopbackAddress());
        var log = new FoldedLog(output)) {
      var start = new RankStarter.Start(count, kind, server.getLocalPort(), token, environment);
      for (int rank = 0; rank < count; rank++) {
        started.add(new RankProcess(rank, starter.start(start, rank), token, events));
      }
      awaitHellos(server, token, started, log);
      return new RankSet(kind, started);
    } catch (IOException e) {
      kill(started);
      throw new BraidException("the ranks could not be started: " + e.getMessage(), e);
    } catch (RuntimeException | Error e) {
      kill(started);
      throw e;
    }
  }

  /// Kills ranks and waits until they have ended or cannot be ended.
  private static void kill(List<RankProcess> ranks) {
    ranks.forEach(RankProcess::kill);
    long killed = RankProcess.killedBy();
    ranks.forEach(rank -> rank.hasLeft(killed));
  }

  private static void awaitHellos(
      ServerSocket server, String token, List<RankProcess> ranks, FoldedLog log)
      throws IOException {
    long deadline = System.nanoTime() + READY_TIMEOUT.toNanos();
    server.setSoTimeout(ACCEPT_POLL_MILLIS);
    var attached = new CountDownLatch(2 * ranks.size());
    var unproven = new Unproven(2 * ranks.size());
    while (attached.getCount() > 0) {
      for (var rank : ranks) {
        rank.awaitOutput();
        rank.death().ifPresent(RankSet::diedAtStart);
      }
      if (System.nanoTime() > deadline) {
        var missing = ranks.stream().filter(r -> !r.connected()).map(RankProcess::rank).toList();
        throw new BraidException(
            "ranks "
                + missing
                + " did not connect within "
                + READY_TIMEOUT.toSeconds()
                + " s of their start; is the machine overloaded? try fewer ranks (-n)");
      }
      var next = nextConnection(server);
      next.ifPresent(unproven::add);
      next.ifPresent(
          socket ->
              Thread.ofVirtual()
                  .start(
                      () -> {
                        greet(socket, token, ranks, attached, log);
                        unproven.remove(socket);
                      }));
    }
  }

  /// Waits briefly for a connection; empty without one, so that the caller can check processes and
  /// the deadline.
  private static Optional<Socket> nextConnection(ServerSocket server) throws IOException {
    try {
      return Optional.of(server.accept());
    } catch (SocketTimeoutException e) {
      return Optional.empty();
    }
  }

  private static void diedAtStart(Death death) {
    throw new BraidException(death + " before it was ready; its output is above");
  }

  private static void greet(
      Socket socket,
      String token,
      List<RankProcess> ranks,
      CountDownLatch attached,
      FoldedLog log) {
    var from = socket.getRemoteSocketAddress();
    try {
      var connection = new Connection(socket);
      connection.readTimeoutMillis((int) HELLO_TIMEOUT.toMillis());
      var hello = connection.receiveHello(token);
      if (hello.rank() < 0 || hello.rank() >= ranks.size()) {
        throw new IOException("it claims rank " + hello.rank() + " of " + ranks.size());
      }
      connection.readTimeoutMillis(0);
      ranks.get(hello.rank()).attach(connection, hello.control());
      attached.countDown();
    } catch (EOFException | SocketException e) {
      // It has ended. If it is a rank, its death is reported.
      close(socket);
    } catch (IOException | OutOfMemoryError e) {
      // Java throws OutOfMemoryError if it cannot start more threads.
      log.repeated(
          "braid: refused a connection: " + e.getMessage(),
          "braid: refused a connection from %s: %s".formatted(from, e.getMessage()));
      close(socket);
    }
  }

  private static void close(Socket refused) {
    try {
      refused.close();
    } catch (IOException e) {
      // The refused socket carries no data yet.
    }
  }

  private void beat() {
    long number = beats.incrementAndGet();
    ranks.forEach(r -> r.beat(number));
  }

  public int size() {
    return ranks.size();
  }

  public List<RankProcess> all() {
    return ranks;
  }

  /// Returns the hosts of ranks that another program started; none if this process started them.
  public List<Host> hosts() {
    var byName = new LinkedHashMap<String, List<Integer>>();
    for (var rank : ranks) {
      if (!rank.host().isEmpty()) {
        byName.computeIfAbsent(rank.host(), _ -> new ArrayList<>()).add(rank.rank());
      }
    }
    return byName.entrySet().stream()
        .map(each -> new Host(each.getKey(), each.getValue()))
        .toList();
  }

  public RankProcess get(int rank) {
    return ranks.get(rank);
  }

  /// Returns the first death, if any: a set with a dead rank runs no more cells.
  public Optional<Death> death() {
    return ranks.stream().flatMap(r -> r.death().stream()).findFirst();
  }

  public void sendAll(ToRank message) {
    ranks.forEach(r -> r.send(message));
  }

  /// Ends every rank: asks first, then kills; returns even if one cannot be ended. Further calls
  /// have no effect.
  @Override
  public void close() {
    heartbeats.shutdownNow();
    sendAll(new ToRank.Exit());
    long deadline = System.nanoTime() + kind.exitTime().toNanos();
    var staying = ranks.stream().filter(rank -> !rank.hasLeft(deadline)).toList();
    kill(staying);
  }
}
