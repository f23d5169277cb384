package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.wire.Connection;
import braid.launcher.wire.FromRank;
import braid.launcher.wire.Hello;
import braid.launcher.wire.OutputMark;
import braid.launcher.wire.ToRank;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.net.SocketException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
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
      try (var link = Link.patiently(PATIENCE, () -> join(Link.connect(key)))) {
        link.silence(Duration.ZERO);
        while (true) {
          switch (LinkMessage.read(link.in())) {
            case LinkMessage.Beat beat ->
                link.send(new LinkMessage.Alive(beat.number(), new ProcessState('S', 0)));
            // Beside the beats, which a busy machine would delay too long.
            case LinkMessage.Start start -> serve(() -> start(start, link));
            case LinkMessage.End() -> {
              return;
            }
            case LinkMessage other -> throw new IOException("unexpected: " + other);
          }
        }
      }
    }

    private Link join(Link link) throws IOException {
      try {
        link.send(new LinkMessage.Join(version, "h" + rank / 8, rank, count, pid));
        if (!LinkMessage.read(link.in()).equals(new LinkMessage.Answered(""))) {
          throw new ProtocolException("rank " + rank + " was refused");
        }
        return link;
      } catch (IOException e) {
        link.close();
        throw e;
      }
    }

    private Link carry(Link joined, LinkMessage.Start start, LinkMessage.Stream stream)
        throws IOException {
      var link = joined.another(PATIENCE);
      link.send(new LinkMessage.Carry(rank, start.start(), stream));
      link.silence(Duration.ZERO);
      return link;
    }

    private void start(LinkMessage.Start start, Link agent) throws IOException {
      agent.send(new LinkMessage.Started(start.start(), pid));
      var output =
          List.of(
              carry(agent, start, LinkMessage.Stream.STDOUT),
              carry(agent, start, LinkMessage.Stream.STDERR));
      var execution = greet(agent, start, false);
      var control = greet(agent, start, true);
      serve(() -> execute(execution, output, start.token()));
      serve(
          () -> {
            control(control);
            for (var link : output) {
              link.close();
            }
            agent.send(new LinkMessage.Exited(start.start(), 0, ""));
          });
    }

    private Connection greet(Link agent, LinkMessage.Start start, boolean control)
        throws IOException {
      var connection = new Connection(carry(agent, start, LinkMessage.Stream.FRONT).socket);
      connection.greet(start.token(), new Hello(rank, pid, control));
      return connection;
    }

    private void execute(Connection execution, List<Link> output, String token) throws IOException {
      while (true) {
        if (ToRank.read(execution.in()) instanceof ToRank.Mark mark) {
          for (var link : output) {
            link.copy(new ByteArrayInputStream(new OutputMark(token, mark.number()).bytes()));
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
