package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.ranks.RemoteProcess;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/// The front's handle of a rank's process that an agent has started. Its output arrives on links of
/// its own, so that output that nobody reads delays no other message.
final class JoinedProcess extends RemoteProcess {
  /// Exit value of a process whose end is unknown.
  private static final int UNKNOWN = -1;

  private static final long NOT_STARTED = -1;

  /// Time for the links of an ended process to arrive.
  private static final long LINKS_MILLIS = 1000;

  private final JoinedAgent agent;
  private final int start;
  private final int frontPort;
  private final int storePort;
  private final CompletableFuture<Long> pid = new CompletableFuture<>();
  private final CompletableFuture<Integer> exit = new CompletableFuture<>();
  private final CompletableFuture<InputStream> stdout = new CompletableFuture<>();
  private final CompletableFuture<InputStream> stderr = new CompletableFuture<>();
  private final Set<Link> links = ConcurrentHashMap.newKeySet();
  private volatile ProcessState state = LinkMessage.NO_PROCESS;
  private volatile String loss = "";

  JoinedProcess(JoinedAgent agent, int start, int frontPort, int storePort) {
    this.agent = agent;
    this.start = start;
    this.frontPort = frontPort;
    this.storePort = storePort;
  }

  int start() {
    return start;
  }

  /// Port of this host to which a link with this stream leads.
  int port(LinkMessage.Stream stream) {
    return stream == LinkMessage.Stream.FRONT ? frontPort : storePort;
  }

  void started(long number) {
    pid.complete(number);
  }

  void exited(int value) {
    exit.complete(value);
    for (var stream : Set.of(stdout, stderr)) {
      var _ =
          stream.completeOnTimeout(
              InputStream.nullInputStream(), LINKS_MILLIS, TimeUnit.MILLISECONDS);
    }
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
    links.forEach(Link::close);
  }

  /// Keeps a link of this process until it is lost.
  void keep(Link link) {
    links.add(link);
    if (!loss.isEmpty()) {
      link.close();
    }
  }

  void forget(Link link) {
    links.remove(link);
  }

  /// Passes a link to the reader of the output; returns when it has been read to its end.
  void readTo(LinkMessage.Stream stream, Link link) {
    var output = new Output(link.in());
    (stream == LinkMessage.Stream.STDOUT ? stdout : stderr).complete(output);
    output.ended.join();
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
    return new Awaited(stdout);
  }

  @Override
  public InputStream getErrorStream() {
    return new Awaited(stderr);
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

  /// A stream that begins when its link arrives.
  private static final class Awaited extends InputStream {
    private final CompletableFuture<InputStream> arriving;

    private Awaited(CompletableFuture<InputStream> arriving) {
      this.arriving = arriving;
    }

    private InputStream stream() throws IOException {
      try {
        return arriving.get();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException("interrupted while a rank's output was awaited");
      } catch (ExecutionException e) {
        throw new IOException(e);
      }
    }

    @Override
    public int read() throws IOException {
      return stream().read();
    }

    @Override
    public int read(byte[] bytes, int offset, int count) throws IOException {
      return stream().read(bytes, offset, count);
    }
  }

  /// Output of the process. A link that breaks ends it: the loss of the rank is reported by itself.
  private static final class Output extends FilterInputStream {
    final CompletableFuture<Void> ended = new CompletableFuture<>();

    private Output(InputStream link) {
      super(link);
    }

    @Override
    public int read(byte[] bytes, int offset, int count) {
      int read;
      try {
        read = in.read(bytes, offset, count);
      } catch (IOException e) {
        read = -1;
      }
      if (read < 0) {
        ended.complete(null);
      }
      return read;
    }
  }
}
