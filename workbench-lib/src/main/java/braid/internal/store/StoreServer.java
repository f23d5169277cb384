package braid.internal.store;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// The meeting table of ranks that are processes, served on a port of the loopback interface. The
/// process that starts the ranks holds it, and passes them its port and a token, which both ends of
/// a connection prove; a connection without it is refused, with a line on both sides.
public final class StoreServer implements AutoCloseable {
  /// Time limit of a connection's greeting.
  private static final Duration HELLO = Duration.ofSeconds(10);

  /// Pause after a connection that could not be accepted.
  private static final Duration ACCEPT_PAUSE = Duration.ofMillis(100);

  /// Connections that wait to be accepted.
  private static final int BACKLOG = 64;

  private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(1);

  private final String token;
  private final FoldedLog log;
  private final ServerSocket listener;
  private final Thread acceptor =
      Thread.ofPlatform().daemon().name("braid-store").unstarted(this::accept);
  private final MeetingTable table = new MeetingTable();
  private final Set<Socket> connections = ConcurrentHashMap.newKeySet();
  private final Unproven unproven;
  private final Map<Integer, Socket> ranks = new ConcurrentHashMap<>();
  private volatile boolean closed;

  private StoreServer(String token, int expected, Consumer<String> log, ServerSocket listener) {
    this.token = token;
    unproven = new Unproven(expected);
    this.log = new FoldedLog(log);
    this.listener = listener;
  }

  /// Listens on a free port; refusals are printed to stderr.
  public static StoreServer open(String token) throws IOException {
    return open(token, 0);
  }

  /// Listens on a free port for ranks of which this number may arrive at once.
  public static StoreServer open(String token, int expected) throws IOException {
    return open(token, expected, System.err::println);
  }

  /// Listens on a free port; refusals are printed to `log`, repeated ones as a number.
  public static StoreServer open(String token, Consumer<String> log) throws IOException {
    return open(token, 0, log);
  }

  private static StoreServer open(String token, int expected, Consumer<String> log)
      throws IOException {
    if (token.isBlank()) {
      throw new IllegalArgumentException(
          "a store needs a token: without one any process could join");
    }
    var listener = new ServerSocket();
    try {
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), BACKLOG + expected);
    } catch (IOException e) {
      listener.close();
      throw e;
    }
    var server = new StoreServer(token, expected, log, listener);
    server.acceptor.start();
    return server;
  }

  public int port() {
    return listener.getLocalPort();
  }

  /// Releases all ranks that wait in a meeting, and all that join one before the next epoch.
  public void abort(String reason) {
    table.abort(reason);
  }

  /// Number of open meetings: 0 whenever no rank waits.
  public int pending() {
    return table.pending();
  }

  /// Accepts connections until closed. Errors are not fatal: a process without free descriptors may
  /// have some again.
  private void accept() {
    while (!closed) {
      try {
        var socket = listener.accept();
        connections.add(socket);
        if (closed) {
          // The kernel may accept one more after the listener was closed.
          socket.close();
          return;
        }
        unproven.add(socket);
        Thread.ofVirtual().name("braid-store-rank").start(() -> serve(socket));
      } catch (IOException | OutOfMemoryError e) {
        if (!closed) {
          var line =
              "the store cannot take connections for now: "
                  + e.getMessage()
                  + "; it keeps trying (see ulimit -n)";
          log.repeated(line, line);
          LockSupport.parkNanos(ACCEPT_PAUSE.toNanos());
        }
      }
    }
  }

  private void serve(Socket socket) {
    int rank = -1;
    try (socket) {
      var frames = new Frames(socket);
      rank = welcome(socket, frames);
      unproven.remove(socket);
      if (rank >= 0) {
        serve(frames, rank);
      }
    } catch (IOException | BufferUnderflowException e) {
      if (rank < 0) {
        refuse(socket, String.valueOf(e.getMessage()));
      }
      // A rank whose connection breaks counts as disconnected, below.
    } finally {
      connections.remove(socket);
      unproven.remove(socket);
      if (rank >= 0 && ranks.remove(rank, socket)) {
        table.disconnected(rank);
      }
    }
  }

  private void refuse(Socket socket, String reason) {
    if (!closed) {
      log.repeated(
          "the store refused a connection: " + reason,
          "the store refused %s: %s".formatted(socket.getRemoteSocketAddress(), reason));
    }
  }

  /// Returns the rank that connects; -1 if it is refused.
  private int welcome(Socket socket, Frames frames) throws IOException {
    socket.setSoTimeout(Math.toIntExact(HELLO.toMillis()));
    var greeting = frames.receiveGreeting(token);
    int rank = greeting.rank();
    var refusal =
        !greeting.proven()
            ? "wrong token; is BRAID_TOKEN from the session that listens here?"
            : rank < 0
                ? "a rank must be 0 or more but was " + rank
                : ranks.putIfAbsent(rank, socket) != null
                    ? "rank " + rank + " is connected already; is RANK set twice?"
                    : "";
    if (!refusal.isEmpty()) {
      // Logged first: whoever reads the answer finds the line.
      refuse(socket, refusal);
      try {
        frames.sendWelcome(refusal);
      } catch (IOException e) {
        // It has left; the line says why it was refused.
      }
      return -1;
    }
    table.connected(rank);
    frames.sendWelcome("");
    socket.setSoTimeout(0);
    return rank;
  }

  private void serve(Frames frames, int rank) throws IOException {
    var pending = new ConcurrentHashMap<Integer, Meeting>();
    for (var frame = frames.receive(Frames.MAX_FRAME_BYTES);
        frame != null;
        frame = frames.receive(Frames.MAX_FRAME_BYTES)) {
      byte request = frame.get();
      int id = frame.getInt();
      switch (request) {
        case 'j' -> join(frames, rank, pending, id, frame);
        case 'g' -> {
          var meeting = pending.get(id);
          if (meeting != null) {
            table.giveUp(meeting, rank);
          }
        }
        case 'd' -> {
          var meeting = pending.get(id);
          var departed = Set.copyOf(Frames.ranks(frame));
          if (meeting != null) {
            table.departed(meeting, departed);
          }
        }
        case 'w' -> {
          var answer = table.report(rank, Frames.blockedWait(frame));
          frames.send(
              out -> {
                out.writeInt(id);
                Frames.put(out, new Reply.Reported(answer));
              });
        }
        default -> throw new IOException("rank " + rank + " sent an unknown request " + request);
      }
    }
  }

  private void join(
      Frames frames, int rank, Map<Integer, Meeting> pending, int id, ByteBuffer frame)
      throws IOException {
    var meeting = Frames.meeting(frame);
    var value = Frames.bytes(frame);
    pending.put(id, meeting);
    table.join(
        meeting,
        rank,
        value,
        reply -> {
          pending.remove(id);
          try {
            frames.send(
                out -> {
                  out.writeInt(id);
                  Frames.put(out, reply);
                });
          } catch (IOException e) {
            // The thread that serves the rank sees the broken connection too.
            log.line("the store could not reply to rank %d: %s".formatted(rank, e.getMessage()));
          }
        });
  }

  /// Ends the store, its thread and its connections. Idempotent.
  @Override
  public void close() {
    closed = true;
    table.abort("the store was closed");
    try {
      listener.close();
      for (var socket : connections) {
        socket.close();
      }
    } catch (IOException e) {
      log.line("the store did not close cleanly: " + e.getMessage());
    }
    try {
      acceptor.join(CLOSE_PATIENCE);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    log.close();
  }
}
