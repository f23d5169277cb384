package braid.launcher.hosts;

import braid.launcher.ranks.RankStarter;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/// The front's handle of one agent: its link, its answers to heartbeats and the process that it has
/// started last.
final class JoinedAgent {
  /// Unanswered beats, one per second, after which the agent is lost. Beats are counted instead of
  /// seconds, so that a front that was paused blames no host.
  static final int LOST_BEATS = 7;

  private final LinkMessage.Join join;
  private final Link link;
  private final BiConsumer<JoinedAgent, String> ended;
  private volatile @Nullable JoinedProcess process;
  private volatile long answered;
  private long sent;
  private int missed;
  private int starts;

  /// @param ended receives the reason of its end, as a part of a sentence
  JoinedAgent(LinkMessage.Join join, Link link, BiConsumer<JoinedAgent, String> ended) {
    this.join = join;
    this.link = link;
    this.ended = ended;
  }

  int rank() {
    return join.rank();
  }

  String host() {
    return join.host();
  }

  @Nullable JoinedProcess process() {
    return process;
  }

  /// Reads the agent's messages until its link ends.
  void serve() {
    try {
      while (true) {
        receive(link.read());
      }
    } catch (EOFException | SocketException e) {
      loseEnded();
    } catch (IOException | OutOfMemoryError e) {
      // Java throws OutOfMemoryError if it cannot start more threads.
      lose(
          "the connection to its agent broke (pid %d on host %s): %s"
              .formatted(join.pid(), host(), e.getMessage()));
    }
  }

  private void loseEnded() {
    lose("its agent has ended (pid %d on host %s)".formatted(join.pid(), host()));
  }

  private void receive(LinkMessage message) throws IOException {
    var current = process;
    switch (message) {
      case LinkMessage.Alive alive -> {
        answered = alive.number();
        if (current != null) {
          current.alive(alive.state());
        }
      }
      case LinkMessage.Started started -> {
        if (current != null && current.start() == started.start()) {
          current.started(started.pid());
        }
      }
      case LinkMessage.Exited exited -> {
        if (!exited.reason().isEmpty()) {
          System.err.println(
              "braid: rank %d could not be started on host %s: %s"
                  .formatted(rank(), host(), exited.reason()));
        }
        if (current != null && current.start() == exited.start()) {
          current.exited(exited.exitValue());
        }
      }
      case LinkMessage.Connect connect -> {
        var channel = link.accept(connect.channel());
        // Beside this thread, which must not wait.
        Thread.ofVirtual().name("braid-joined-channel").start(() -> connect(connect, channel));
      }
      default -> throw new IOException("an agent must not send " + message.getClass());
    }
  }

  private void connect(LinkMessage.Connect connect, Channel channel) {
    var current = process;
    if (current != null && current.start() == connect.start()) {
      current.connect(connect.end(), channel);
    } else {
      channel.close(); // of a process that has been replaced
    }
  }

  /// Starts a process. An earlier one has ended.
  JoinedProcess start(
      RankStarter.Start order,
      Map<String, String> environment,
      Map<String, String> defaults,
      int storePort)
      throws IOException {
    var stdout = link.open();
    var stderr = link.open();
    var next =
        new JoinedProcess(this, ++starts, stdout.in(), stderr.in(), order.frontPort(), storePort);
    process = next;
    link.send(
        new LinkMessage.Start(
            starts,
            stdout.number(),
            stderr.number(),
            order.kind(),
            order.token(),
            environment,
            defaults));
    return next;
  }

  /// Sends a heartbeat if the last one was answered; otherwise counts it as missed. Called once per
  /// second, by one thread, which does not wait: a link to a lost host may take no more bytes.
  void beat() {
    if (answered == sent) {
      missed = 0;
      var beat = new LinkMessage.Beat(sent + 1);
      Thread.ofVirtual().name("braid-beat").start(() -> send(beat));
      sent++;
    } else if (++missed >= LOST_BEATS) {
      lose(
          "host %s has not answered for %d s; is it down, or the network cut?"
              .formatted(host(), missed));
    }
  }

  void send(LinkMessage message) {
    try {
      link.send(message);
    } catch (SocketException e) {
      loseEnded();
    } catch (IOException e) {
      lose("the connection to host %s broke (%s)".formatted(host(), e.getMessage()));
    }
  }

  private void lose(String reason) {
    ended.accept(this, reason);
    var current = process;
    if (current != null) {
      current.lost(reason);
    }
    link.close();
  }
}
