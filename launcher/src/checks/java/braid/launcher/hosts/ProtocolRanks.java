package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.wire.Connection;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.Hello;
import braid.launcher.wire.OutputMark;
import braid.launcher.wire.ToRank;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ProtocolException;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// Ranks of one process that only speak the protocol of agents and ranks: they answer every request
/// at once and run no code. They show the front's own cost at sizes that one machine cannot run.
public final class ProtocolRanks {
  private static final Duration PATIENCE = Duration.ofMinutes(1);
  private static final long MEMORY_BYTES = 100L << 20;

  private final JoinKey key;
  private final int count;
  private final String version;

  /// @param version of the front
  public ProtocolRanks(JoinKey key, int count, String version) {
    this.key = key;
    this.count = count;
    this.version = version;
  }

  /// Joins the front as all ranks, as soon as it listens, and serves until it ends them.
  public void run() throws IOException, InterruptedException {
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var ranks =
          IntStream.range(0, count)
              .mapToObj(
                  rank ->
                      (Callable<Void>)
                          () -> {
                            new Rank(rank).run();
                            return null;
                          })
              .toList();
      for (Future<Void> rank : threads.invokeAll(ranks)) {
        rank.get();
      }
    } catch (ExecutionException e) {
      throw new IOException(e.getCause());
    }
  }

  private final class Rank {
    private final int rank;
    private final long pid = ProcessHandle.current().pid();

    private Rank(int rank) {
      this.rank = rank;
    }

    private void run() throws IOException {
      try (var link = join()) {
        link.silence(Duration.ZERO);
        while (true) {
          switch (link.read()) {
            case LinkMessage.Beat beat ->
                link.send(new LinkMessage.Alive(beat.number(), new ProcessState('S', 0)));
            // Beside the beats, which a busy machine would delay too long.
            case LinkMessage.Start start -> serve(() -> start(start, link));
            case LinkMessage.Over() -> {
              return;
            }
            case LinkMessage other -> throw new IOException("unexpected: " + other);
          }
        }
      }
    }

    /// Joins, again while the front does not listen yet or is too busy to answer.
    private Link join() throws IOException {
      long deadline = System.nanoTime() + PATIENCE.toNanos();
      while (true) {
        try {
          return join(Link.connect(key));
        } catch (IOException e) {
          if (Link.isForeign(e) || System.nanoTime() > deadline) {
            throw e;
          }
          LockSupport.parkNanos(Link.RETRY.toNanos());
        }
      }
    }

    private Link join(Link link) throws IOException {
      try {
        link.send(new LinkMessage.Join(version, "h" + rank / 8, rank, count, pid));
        if (!link.read().equals(new LinkMessage.Answered(""))) {
          throw new ProtocolException("rank " + rank + " was refused");
        }
        return link;
      } catch (IOException e) {
        link.close();
        throw e;
      }
    }

    private void start(LinkMessage.Start start, Link agent) throws IOException {
      agent.send(new LinkMessage.Started(start.start(), pid));
      var output = List.of(agent.accept(start.stdout()), agent.accept(start.stderr()));
      var execution = greet(agent, start, false);
      var control = greet(agent, start, true);
      serve(() -> execute(execution, output, start.token()));
      serve(
          () -> {
            control(control);
            output.forEach(Channel::close);
            agent.send(new LinkMessage.Exited(start.start(), 0, ""));
          });
    }

    private Connection greet(Link agent, LinkMessage.Start start, boolean control)
        throws IOException {
      var channel = agent.open();
      agent.send(new LinkMessage.Connect(channel.number(), start.start(), LinkMessage.End.FRONT));
      var connection = new Connection(new ChannelSocket(channel));
      connection.greet(start.token(), new Hello(rank, pid, control));
      return connection;
    }

    private void execute(Connection execution, List<Channel> output, String token)
        throws IOException {
      while (true) {
        if (ToRank.read(execution.in()) instanceof ToRank.Mark mark) {
          for (var channel : output) {
            channel.out().write(new OutputMark(token, mark.number()).bytes());
          }
        }
        execution.send(new FromRank.Done());
      }
    }

    private void control(Connection control) throws IOException {
      while (true) {
        switch (ToRank.read(control.in())) {
          case ToRank.Ping ping ->
              control.send(new FromRank.Pong(ping.number(), MEMORY_BYTES, 0, List.of()));
          case ToRank.IdleQuery query ->
              control.send(new FromRank.IdleAnswer(query.number(), true));
          case ToRank.Exit() -> {
            return;
          }
          case ToRank _ -> {
            // A rank that runs no code has nothing to release or to interrupt.
          }
        }
      }
    }
  }

  /// A channel in the place of a socket.
  private static final class ChannelSocket extends Socket {
    private final Channel channel;

    private ChannelSocket(Channel channel) {
      this.channel = channel;
    }

    @Override
    public void setTcpNoDelay(boolean immediate) {
      // A channel sends at once.
    }

    @Override
    public InputStream getInputStream() {
      return channel.in();
    }

    @Override
    public OutputStream getOutputStream() {
      return channel.out();
    }

    @Override
    public void close() {
      channel.close();
    }
  }

  private interface Serving {
    void run() throws IOException;
  }

  private static void serve(Serving serving) {
    Thread.ofVirtual()
        .start(
            () -> {
              try {
                serving.run();
              } catch (EOFException | SocketException e) {
                // The front has ended the rank.
              } catch (IOException e) {
                System.err.println("a rank broke: " + e);
              }
            });
  }
}
