package braid.launcher.kernel.channels;

import braid.model.BraidException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

/// The five sockets of a kernel and the single thread that owns them, as ZeroMQ requires. It reads
/// all received messages and dispatches them, then sends all queued messages in order. So nothing
/// waits for a poll interval, and every request that arrived before a reply was sent is known
/// before the reply is.
public final class Channels implements AutoCloseable {
  public enum Channel {
    SHELL,
    CONTROL,
    STDIN,
    IOPUB
  }

  /// Receives messages on the thread of the sockets; must not block.
  @FunctionalInterface
  public interface Receiver {
    void receive(Channel channel, Message message);
  }

  private sealed interface Task {
    record Send(Channel channel, Message message, CompletableFuture<Boolean> sent)
        implements Task {}

    record Close() implements Task {}
  }

  /// Largest frame of a client. ZeroMQ reserves memory for the size in a frame's header before the
  /// message is authenticated.
  static final int MAX_FRAME_BYTES = 16 << 20;

  /// Messages that may wait in the queue of a slow subscriber.
  private static final int MAX_QUEUED = 128;

  /// Messages that may wait for that queue before producers block.
  private static final int MAX_UNSENT = 16;

  /// Time after which a subscriber that reads nothing is dropped: it no longer delays output and
  /// misses messages until it reads again. Clients that pause, as a Jupyter server does while it
  /// saves a large notebook, must not reach it: a client that misses an `idle` waits forever.
  private static final Duration STALLED = Duration.ofSeconds(30);

  /// Interval of retries for messages without room.
  private static final int RETRY_MS = 5;

  /// Time for the last messages to leave when the kernel ends.
  private static final int LINGER_MS = 1000;

  private final Receiver receiver;
  private final Duration stalledAfter;
  private final MessageCodec codec;
  private final ZContext context = new ZContext();
  private final Map<Channel, ZMQ.Socket> sockets = new EnumMap<>(Channel.class);
  private final ConcurrentLinkedQueue<Task> tasks = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean woken = new AtomicBoolean();
  private final AtomicLong dropped = new AtomicLong();
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final ArrayDeque<List<byte[]>> unsent = new ArrayDeque<>();
  private final Object room = new Object();
  private int published;
  private long fullSinceNanos;
  private boolean stalled;
  private final Pipe wake;
  private final ZMQ.Socket heartbeat;
  private final Thread owner;

  /// Binds all five sockets.
  ///
  /// @throws BraidException if the connection file requests something unavailable
  public Channels(KernelConnectionProperties connection, Receiver receiver) {
    this(connection, receiver, STALLED);
  }

  Channels(KernelConnectionProperties connection, Receiver receiver, Duration stalledAfter) {
    this.receiver = receiver;
    this.stalledAfter = stalledAfter;
    if (!"tcp".equals(connection.getTransport())) {
      throw new BraidException(
          "transport must be tcp but was "
              + connection.getTransport()
              + "; start the kernel with --KernelManager.transport=tcp");
    }
    try {
      codec = new MessageCodec(connection.createHMACGenerator());
      wake = Pipe.open();
      wake.source().configureBlocking(false);
    } catch (GeneralSecurityException e) {
      throw new BraidException(
          "signature_scheme must be one this JDK has, such as hmac-sha256, but was "
              + connection.getSignatureScheme(),
          e);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    context.setLinger(LINGER_MS);
    // Handles failures of ZeroMQ's own threads: without them no client is answered.
    context.setUncaughtExceptionHandler((_, failure) -> ended.completeExceptionally(failure));
    heartbeat = context.createSocket(SocketType.REP);
    heartbeat.setMaxMsgSize(MAX_FRAME_BYTES);
    for (var channel : Channel.values()) {
      var type = channel == Channel.IOPUB ? SocketType.PUB : SocketType.ROUTER;
      var socket = context.createSocket(type);
      // Replies are few; without a high-water mark none is dropped.
      socket.setHWM(0);
      socket.setMaxMsgSize(MAX_FRAME_BYTES);
      sockets.put(channel, socket);
    }
    // A subscriber with a full queue delays output instead of missing some.
    socket(Channel.IOPUB).setSndHWM(MAX_QUEUED);
    socket(Channel.IOPUB).setXpubNoDrop(true);
    // If the client has no stdin, sending to it must fail instead of leaving a cell waiting.
    socket(Channel.STDIN).setRouterMandatory(true);
    // A client that returns under its old identity, as a restarted front end does, is accepted.
    socket(Channel.SHELL).setRouterHandover(true);
    socket(Channel.CONTROL).setRouterHandover(true);
    socket(Channel.STDIN).setRouterHandover(true);
    try {
      bind(heartbeat, connection, connection.getHbPort());
      bind(socket(Channel.SHELL), connection, connection.getShellPort());
      bind(socket(Channel.CONTROL), connection, connection.getControlPort());
      bind(socket(Channel.STDIN), connection, connection.getStdinPort());
      bind(socket(Channel.IOPUB), connection, connection.getIopubPort());
    } catch (BraidException e) {
      context.close();
      throw e;
    }
    owner = Thread.ofPlatform().name("kernel-channels").unstarted(this::serve);
  }

  /// Starts to receive. Not part of the constructor, so that the receiver can be complete by then.
  public void start() {
    owner.start();
  }

  /// Queues a message.
  public void send(Channel channel, Message message) {
    enqueue(new Task.Send(channel, message, new CompletableFuture<>()));
  }

  /// Queues a message; the future is true once the socket has taken it, false if there is no
  /// receiver.
  public CompletableFuture<Boolean> deliver(Channel channel, Message message) {
    var send = new Task.Send(channel, message, new CompletableFuture<>());
    enqueue(send);
    return send.sent;
  }

  /// Blocks while much output is queued because a client reads slowly; not forever, because a
  /// client that has stopped reading is dropped. Replies never block.
  public void awaitRoom() {
    synchronized (room) {
      try {
        while (published > MAX_UNSENT && !ended.isDone()) {
          room.wait();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// Counts queued publications.
  private void count(int more) {
    synchronized (room) {
      published += more;
      room.notifyAll();
    }
  }

  /// Number of malformed messages.
  public long dropped() {
    return dropped.get();
  }

  /// Completes when the sockets are closed; fails if they break, which ends the kernel.
  public CompletableFuture<Void> ended() {
    return ended;
  }

  /// Sends queued messages, then closes. Further calls have no effect. Broken sockets are left
  /// open: closing them would wait for a dead thread.
  @Override
  public void close() {
    if (ended.isCompletedExceptionally()) {
      return;
    }
    enqueue(new Task.Close());
    boolean interrupted = false;
    while (owner.isAlive()) {
      try {
        owner.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void enqueue(Task task) {
    if (task instanceof Task.Send send && send.channel == Channel.IOPUB) {
      count(1);
    }
    tasks.add(task);
    if (ended.isDone()) {
      discardUnsent();
    } else if (woken.compareAndSet(false, true)) {
      try {
        wake.sink().write(ByteBuffer.wrap(new byte[1]));
      } catch (IOException e) {
        throw new UncheckedIOException("the kernel's sockets cannot be woken", e);
      }
    }
  }

  private void serve() {
    try {
      try (context) {
        serveUntilClosed();
      }
      wake.source().close();
      wake.sink().close();
      ended.complete(null);
    } catch (IOException e) {
      ended.completeExceptionally(e);
    } catch (RuntimeException | Error e) {
      ended.completeExceptionally(e);
      throw e;
    } finally {
      discardUnsent();
    }
  }

  private void serveUntilClosed() {
    try (var poller = context.createPoller(5)) {
      poller.register(socket(Channel.CONTROL), ZMQ.Poller.POLLIN);
      poller.register(socket(Channel.SHELL), ZMQ.Poller.POLLIN);
      poller.register(socket(Channel.STDIN), ZMQ.Poller.POLLIN);
      poller.register(heartbeat, ZMQ.Poller.POLLIN);
      poller.register(wake.source(), ZMQ.Poller.POLLIN);
      boolean open = true;
      while (open) {
        poller.poll(unsent.isEmpty() ? -1 : RETRY_MS);
        clearWake();
        receiveAll(Channel.CONTROL);
        receiveAll(Channel.SHELL);
        receiveAll(Channel.STDIN);
        beat();
        open = sendAll();
      }
    }
  }

  /// Resets the flag before the tasks are read: a later task wakes the poll again.
  private void clearWake() {
    if (woken.get()) {
      try {
        if (wake.source().read(ByteBuffer.allocate(1)) > 0) {
          woken.set(false);
        }
      } catch (IOException e) {
        throw new UncheckedIOException("the kernel's sockets cannot be woken", e);
      }
    }
  }

  private void beat() {
    for (var pulse = heartbeat.recv(ZMQ.DONTWAIT);
        pulse != null;
        pulse = heartbeat.recv(ZMQ.DONTWAIT)) {
      heartbeat.send(pulse);
    }
  }

  private void receiveAll(Channel channel) {
    var socket = socket(channel);
    for (byte[] first = socket.recv(ZMQ.DONTWAIT);
        first != null;
        first = socket.recv(ZMQ.DONTWAIT)) {
      var frames = new ArrayList<byte[]>(8);
      frames.add(first);
      while (socket.hasReceiveMore()) {
        frames.add(socket.recv());
      }
      receive(channel, frames);
    }
  }

  private void receive(Channel channel, List<byte[]> frames) {
    Message message;
    try {
      message = codec.decode(frames);
    } catch (MalformedMessage e) {
      if (dropped.incrementAndGet() == 1) {
        System.err.println(
            "braid kernel: dropped a message on "
                + channel
                + ": "
                + e.getMessage()
                + "; more like it are only counted");
      }
      return;
    }
    receiver.receive(channel, message);
  }

  private boolean sendAll() {
    for (var task = tasks.poll(); task != null; task = tasks.poll()) {
      switch (task) {
        case Task.Send send when send.channel == Channel.IOPUB -> {
          unsent.add(codec.encode(send.message));
          publish(false);
          send.sent.complete(true);
        }
        case Task.Send send ->
            send.sent.complete(transmit(socket(send.channel), codec.encode(send.message)));
        case Task.Close _ -> {
          publish(true);
          return false;
        }
      }
    }
    publish(false);
    return true;
  }

  /// Sends publications in order while every subscriber has room. A subscriber that has had no room
  /// for long misses them until it has room again.
  private void publish(boolean all) {
    var socket = socket(Channel.IOPUB);
    while (!unsent.isEmpty()) {
      if (transmit(socket, unsent.getFirst())) {
        stalled = false;
      } else {
        long now = System.nanoTime();
        if (fullSinceNanos == 0) {
          fullSinceNanos = now;
        }
        boolean tooLong = now - fullSinceNanos > stalledAfter.toNanos();
        if (!all && !stalled && !tooLong) {
          return;
        }
        if (tooLong && !stalled) {
          stalled = true;
          System.err.printf(
              "braid kernel: a client has read no output for %d s and misses messages%n",
              stalledAfter.toSeconds());
        }
        socket.setXpubNoDrop(false);
        boolean _ = transmit(socket, unsent.getFirst());
        socket.setXpubNoDrop(true);
      }
      fullSinceNanos = 0;
      unsent.removeFirst();
      count(-1);
    }
  }

  private static boolean transmit(ZMQ.Socket socket, List<byte[]> frames) {
    int last = frames.size() - 1;
    try {
      for (int i = 0; i < last; i++) {
        if (!socket.send(frames.get(i), ZMQ.SNDMORE | ZMQ.DONTWAIT)) {
          return false;
        }
      }
      return socket.send(frames.get(last), ZMQ.DONTWAIT);
    } catch (ZMQException e) {
      if (e.getErrorCode() == ZMQ.Error.EHOSTUNREACH.getCode()) {
        return false;
      }
      throw e;
    }
  }

  private void discardUnsent() {
    for (var task = tasks.poll(); task != null; task = tasks.poll()) {
      if (task instanceof Task.Send send) {
        send.sent.complete(false);
      }
    }
    synchronized (room) {
      room.notifyAll();
    }
  }

  private ZMQ.Socket socket(Channel channel) {
    var socket = sockets.get(channel);
    if (socket == null) {
      throw new IllegalStateException("no socket for " + channel);
    }
    return socket;
  }

  private static void bind(ZMQ.Socket socket, KernelConnectionProperties connection, int port) {
    var address = connection.getTransport() + "://" + connection.getIp() + ":" + port;
    try {
      socket.bind(address);
    } catch (ZMQException e) {
      throw new BraidException(
          address + " must be free but is taken or not this machine's; start the kernel again", e);
    }
  }
}
