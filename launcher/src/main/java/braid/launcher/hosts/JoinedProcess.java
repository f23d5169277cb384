package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.ranks.RemoteProcess;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/// The front's handle of a rank's process that an agent has started.
final class JoinedProcess extends RemoteProcess {
  /// Exit value of a process whose end is unknown.
  private static final int UNKNOWN = -1;

  private static final long NOT_STARTED = -1;

  private final JoinedAgent agent;
  private final int start;
  private final int frontPort;
  private final int storePort;
  private final CompletableFuture<Long> pid = new CompletableFuture<>();
  private final CompletableFuture<Integer> exit = new CompletableFuture<>();
  private final InputStream stdout;
  private final InputStream stderr;
  private volatile ProcessState state = LinkMessage.NO_PROCESS;
  private volatile String loss = "";

  JoinedProcess(
      JoinedAgent agent,
      int start,
      InputStream stdout,
      InputStream stderr,
      int frontPort,
      int storePort) {
    this.agent = agent;
    this.start = start;
    this.stdout = stdout;
    this.stderr = stderr;
    this.frontPort = frontPort;
    this.storePort = storePort;
  }

  int start() {
    return start;
  }

  /// Connects a channel to an end in this process until one of both closes.
  void connect(LinkMessage.End end, Channel channel) {
    int port = end == LinkMessage.End.FRONT ? frontPort : storePort;
    try (channel;
        var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.setTcpNoDelay(true);
      channel.join(socket);
    } catch (IOException e) {
      System.err.println(
          "braid: rank %d on host %s has lost its connection to the %s: %s"
              .formatted(
                  agent.rank(), host(), end.name().toLowerCase(Locale.ROOT), e.getMessage()));
    }
  }

  void started(long number) {
    pid.complete(number);
  }

  void exited(int value) {
    exit.complete(value);
  }

  void alive(ProcessState now) {
    state = now;
  }

  /// Declares the process dead: nothing can be known of it any more.
  void lost(String reason) {
    if (!exit.isDone()) {
      loss = reason;
    }
    exited(UNKNOWN);
  }

  @Override
  public String host() {
    return agent.host();
  }

  @Override
  public Optional<ProcessState> state() {
    return Optional.of(state).filter(each -> !each.hasEnded());
  }

  @Override
  public String loss() {
    return loss;
  }

  @Override
  public long pid() {
    return pid.getNow(NOT_STARTED);
  }

  @Override
  public OutputStream getOutputStream() {
    return OutputStream.nullOutputStream();
  }

  @Override
  public InputStream getInputStream() {
    return stdout;
  }

  @Override
  public InputStream getErrorStream() {
    return stderr;
  }

  @Override
  public int waitFor() throws InterruptedException {
    try {
      return exit.get();
    } catch (ExecutionException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public boolean waitFor(long timeout, TimeUnit unit) throws InterruptedException {
    try {
      exit.get(timeout, unit);
      return true;
    } catch (ExecutionException e) {
      throw new IllegalStateException(e);
    } catch (TimeoutException e) {
      return false;
    }
  }

  @Override
  public int exitValue() {
    if (!exit.isDone()) {
      throw new IllegalThreadStateException("the process has not ended");
    }
    return exit.join();
  }

  @Override
  public void destroy() {
    agent.send(new LinkMessage.Kill(start));
  }

  @Override
  public Process destroyForcibly() {
    destroy();
    return this;
  }
}
