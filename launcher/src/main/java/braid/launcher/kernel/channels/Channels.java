package braid.launcher.kernel.channels;

import braid.launcher.machine.SocketOwner;
import braid.model.BraidException;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// The five sockets of a kernel and the single thread that owns them. It reads all received
/// messages and dispatches them, then sends all queued messages in order. So nothing waits for a
/// poll interval, and every request that arrived before a reply was sent is known before the reply
/// is.
///
/// [Admission] tells trusted clients from strangers, [Publications] queues the kernel's output.
public final class Channels implements AutoCloseable {
  /// Receives messages on the thread of the sockets; must not block.
  @FunctionalInterface
  public interface Receiver {
    void receive(Channel channel, Message message);

    /// Receives a signed message above [Message#MAX_BYTES], without its content.
    default void tooLarge(Channel channel, Message message, long bytes) {}
  }

  private sealed interface Task {
    record Send(Channel channel, Message message, CompletableFuture<Boolean> sent)
        implements Task {}

    record Close() implements Task {}
  }

  /// Time after which a subscriber that reads nothing is dropped: it no longer delays output and
  /// misses messages until it reads again. Clients that pause, as a Jupyter server does while it
  /// saves a large notebook, must not reach it: a client that misses an `idle` waits forever.
  private static final Duration STALLED = Duration.ofSeconds(30);

  /// Interval at which waiting publications look for subscribers that have stalled.
  private static final int RETRY_MS = 50;

  /// Time for the last messages to leave when the kernel ends.
  private static final int LINGER_MS = 1000;

  private final Receiver receiver;
  private final Optional<CurveKeys> keys;
  private final MessageCodec codec;
  private final Selector selector;
  private final Listeners listeners;
  private final Admission admission;
  private final Publications publications;
  private final ConcurrentLinkedQueue<Task> tasks = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean woken = new AtomicBoolean();
  private final AtomicLong dropped = new AtomicLong();
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final Thread owner;

  // Used by the thread of the sockets only.
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(Admission.READ_BYTES);

  /// The oldest first.
  private final Set<Peer> peers = new LinkedHashSet<>();

  private final Map<Channel, Map<ByteBuffer, Peer>> byIdentity = new EnumMap<>(Channel.class);
  private int unnamed;

  /// Reads from nobody, or accepts nobody, until the window ends.
  private boolean paused;

  private final Peer.Sink sink =
      new Peer.Sink() {
        @Override
        public void ready(Peer peer) throws IOException {
          identify(peer);
        }

        @Override
        public void subscribed(Peer peer, byte[] topic) {
          if (admission.isTrusted(peer) && peer.queuedBytes() < Peer.MAX_QUEUED_BYTES) {
            peer.send(Peer.encode(codec.encode(Message.welcome(topic))));
          }
        }

        @Override
        public void message(Peer peer, List<byte[]> frames) throws IOException {
          if (peer.channel == Channel.HEARTBEAT) {
            peer.answer(Peer.encode(frames));
          } else {
            Channels.this.receive(peer, named(peer, frames));
          }
        }

        @Override
        public int limit(Peer peer) {
          return admission.maxMessageBytes(peer);
        }

        @Override
        public MessageCodec.Skim tooLarge(Peer peer, List<byte[]> frames, long bytes)
            throws IOException {
          if (admission.isTrusted(peer)) {
            var skim = codec.skim(named(peer, frames));
            if (skim.isPresent()) {
              return skim.get();
            }
          }
          throw new IOException("its message has more than %d KiB".formatted(limit(peer) >> 10));
        }

        @Override
        public void skimmed(Peer peer, MessageCodec.Skim message, long bytes) throws IOException {
          try {
            receiver.tooLarge(peer.channel, message.message(), bytes);
          } catch (MalformedMessage e) {
            refuse(peer, e);
          }
        }
      };

  /// Binds all five sockets.
  ///
  /// @param keys of CURVE; empty for sockets without encryption
  /// @throws BraidException if the connection file requests something unavailable
  public Channels(
      KernelConnectionProperties connection, Optional<CurveKeys> keys, Receiver receiver) {
    this(connection, keys, receiver, STALLED, SocketOwner::isOwn);
  }

  /// @param isOwn accepts owners that need no key to be trusted
  Channels(
      KernelConnectionProperties connection,
      Optional<CurveKeys> keys,
      Receiver receiver,
      Duration stalledAfter,
      Predicate<SocketOwner> isOwn) {
    this.receiver = receiver;
    this.keys = keys;
    var transport = connection.getTransport();
    if (!List.of("tcp", "ipc").contains(transport)) {
      throw new BraidException(
          "transport must be tcp or ipc but was "
              + transport
              + "; start the kernel with --KernelManager.transport=tcp");
    }
    codec = MessageCodec.of(connection);
    try {
      selector = Selector.open();
    } catch (IOException e) {
      throw new BraidException("the kernel's sockets cannot be opened: " + e, e);
    }
    try {
      admission = new Admission(isOwn);
      listeners = new Listeners(connection, selector);
    } catch (IOException e) {
      closeSelector();
      throw new BraidException("the kernel's sockets cannot be opened: " + e, e);
    } catch (BraidException e) {
      closeSelector();
      throw e;
    }
    publications = new Publications(peers, admission::isTrusted, this::flush, stalledAfter);
    owner = Thread.ofPlatform().name("kernel-channels").unstarted(this::serve);
  }

  /// Starts to receive. Not part of the constructor, so that the receiver can be complete by then.
  public void start() {
    owner.start();
  }

  /// Returns the port of each channel, for a kernel that chooses its own.
  public Map<Channel, Integer> ports() throws IOException {
    return listeners.ports();
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
    publications.awaitRoom();
  }

  /// Number of malformed messages and of connections that broke a rule.
  public long dropped() {
    return dropped.get();
  }

  /// Completes when the sockets are closed; fails if they break, which ends the kernel.
  public CompletableFuture<Void> ended() {
    return ended;
  }

  /// Sends queued messages, then closes. Further calls have no effect.
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
      publications.announce();
    }
    tasks.add(task);
    if (ended.isDone()) {
      discardUnsent();
    } else if (woken.compareAndSet(false, true)) {
      selector.wakeup();
    }
  }

  private void serve() {
    try {
      try {
        serveUntilClosed();
      } finally {
        closeAll();
      }
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

  private void serveUntilClosed() throws IOException {
    boolean open = true;
    while (open) {
      selector.select(pauseMillis());
      if (admission.renewWindow() && paused) {
        paused = !admission.mayAccept();
        watch();
      }
      // Reset before the tasks are read: a later task wakes the selector again.
      woken.set(false);
      var sockets = Optional.<SocketOwner.Sockets>empty();
      for (var key : selector.selectedKeys()) {
        if (key.attachment() instanceof Channel channel) {
          if (sockets.isEmpty()) {
            sockets = Optional.of(admission.lookUp());
          }
          accept(channel, sockets.get());
        } else if (key.attachment() instanceof Peer peer && key.isValid()) {
          if (key.isReadable()) {
            read(peer);
          }
          flush(peer);
        }
      }
      selector.selectedKeys().clear();
      open = sendAll();
    }
    linger();
  }

  private long pauseMillis() {
    return paused ? admission.windowMillisLeft() : publications.isEmpty() ? 0 : RETRY_MS;
  }

  /// Reads nothing more from strangers, or accepts nobody, until the window ends.
  private void pause() {
    paused = true;
    watch();
  }

  private void watch() {
    listeners.watch(admission.mayAccept());
    peers.forEach(this::watch);
  }

  private void watch(Peer peer) {
    if (peer.key.isValid()) {
      boolean waits =
          !admission.mayRead(peer)
              // Nobody needs more beats than it reads.
              || (peer.channel == Channel.HEARTBEAT && peer.queued() > 0);
      peer.key.interestOps(
          (waits ? 0 : SelectionKey.OP_READ) | (peer.queued() > 0 ? SelectionKey.OP_WRITE : 0));
    }
  }

  private void accept(Channel channel, SocketOwner.Sockets sockets) {
    try {
      while (admission.mayAccept()) {
        var socket = listeners.accept(channel);
        if (socket == null) {
          return;
        }
        admission.countAccepted();
        welcome(channel, socket, sockets);
      }
    } catch (IOException e) {
      // Descriptors may be free again later.
      admission.acceptNoMore();
      drop(channel, "connection", e);
    }
    pause();
  }

  private void welcome(Channel channel, SocketChannel socket, SocketOwner.Sockets sockets) {
    try {
      var from = SocketOwner.of(socket, sockets);
      admission.checkRoom(peers.size());
      socket.configureBlocking(false);
      if (socket.supportedOptions().contains(StandardSocketOptions.TCP_NODELAY)) {
        socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
      }
      var key = socket.register(selector, SelectionKey.OP_READ);
      var name = ByteBuffer.allocate(5).putInt(1, ++unnamed).array();
      var peer = new Peer(channel, from, socket, key, name, keys, sink);
      key.attach(peer);
      peers.add(peer);
      flush(peer);
      limitStrangers();
    } catch (IOException e) {
      drop(channel, "connection", e);
      close(socket);
    }
  }

  private void limitStrangers() {
    admission.excessConnection(peers).ifPresent(this::close);
    admission.excessMemory(peers).ifPresent(this::close);
  }

  private void read(Peer peer) {
    boolean trusted = admission.isTrusted(peer);
    int left = admission.turnBytes(peer);
    try {
      while (left > 0) {
        int count = peer.socket.read(buffer.clear().limit(Math.min(left, Admission.READ_BYTES)));
        if (count < 0) {
          close(peer);
          return;
        }
        if (count == 0) {
          break;
        }
        left -= count;
        admission.countRead(peer, count);
        try {
          peer.receive(buffer.flip());
        } catch (IOException e) {
          drop(peer.channel, "connection", e);
          close(peer);
          return;
        }
      }
    } catch (IOException e) {
      close(peer); // the client has closed it
      return;
    }
    if (!trusted) {
      limitStrangers();
      if (!admission.mayRead(peer)) {
        pause();
      }
    }
  }

  /// Makes a client known by its identity. One that returns under its old identity, as a restarted
  /// front end does, is accepted; another owner's identity is not taken from a client that lives.
  private void identify(Peer peer) throws IOException {
    var named = identities(peer.channel);
    var name = ByteBuffer.wrap(peer.identity);
    var old = named.get(name);
    if (old != null && admission.isTrusted(old) && !old.owner.equals(peer.owner)) {
      throw new IOException("its identity is that of another client");
    }
    if (old != null) {
      close(old);
    }
    named.put(name, peer);
  }

  private static List<byte[]> named(Peer peer, List<byte[]> frames) {
    var all = new ArrayList<byte[]>(frames.size() + 1);
    all.add(peer.identity);
    all.addAll(frames);
    return all;
  }

  private void receive(Peer peer, List<byte[]> frames) throws IOException {
    Message message;
    try {
      message = codec.decode(frames);
    } catch (MalformedMessage e) {
      refuse(peer, e);
      return;
    }
    if (admission.trust(peer)) {
      for (var other : List.copyOf(peers)) {
        if (other.owner.equals(peer.owner)) {
          other.topics().forEach(topic -> sink.subscribed(other, topic));
        }
        flush(other);
      }
    }
    receiver.receive(peer.channel, message);
  }

  /// Drops a message, and its connection too if no key vouches for it.
  private void refuse(Peer peer, MalformedMessage reason) throws IOException {
    if (reason instanceof MalformedMessage.Forged && !admission.isTrusted(peer)) {
      throw new IOException(reason.getMessage(), reason);
    }
    drop(peer.channel, "message", reason);
  }

  private void drop(Channel channel, String subject, Exception reason) {
    if (dropped.incrementAndGet() == 1) {
      System.err.println(
          "braid kernel: dropped a %s on %s: %s; more like it are only counted"
              .formatted(subject, channel, reason.getMessage()));
    }
  }

  private boolean sendAll() {
    for (var task = tasks.poll(); task != null; task = tasks.poll()) {
      switch (task) {
        case Task.Send send when send.channel == Channel.IOPUB -> {
          publications.add(codec.encode(send.message));
          send.sent.complete(true);
        }
        case Task.Send send -> send.sent.complete(reply(send));
        case Task.Close _ -> {
          publications.send(true);
          return false;
        }
      }
    }
    publications.send(false);
    return true;
  }

  private boolean reply(Task.Send send) {
    var frames = codec.encode(send.message);
    var peer = identities(send.channel).get(ByteBuffer.wrap(frames.getFirst()));
    if (peer == null || !admission.isTrusted(peer)) {
      return false;
    }
    peer.send(Peer.encode(frames.subList(1, frames.size())));
    flush(peer);
    if (peer.queuedBytes() > Peer.MAX_QUEUED_BYTES) {
      drop(send.channel, "connection", new IOException("it reads no replies"));
      close(peer);
      return false;
    }
    return true;
  }

  private void flush(Peer peer) {
    try {
      if (peer.key.isValid()) {
        peer.flush();
        watch(peer);
      }
    } catch (IOException e) {
      close(peer); // the client has closed it
    }
  }

  /// Gives queued messages some time to leave.
  private void linger() throws IOException {
    long deadline = System.nanoTime() + Duration.ofMillis(LINGER_MS).toNanos();
    while (peers.stream().anyMatch(peer -> peer.queued() > 0 && admission.isTrusted(peer))) {
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        return;
      }
      for (var peer : List.copyOf(peers)) {
        flush(peer);
        if (peer.key.isValid()) {
          peer.key.interestOps(peer.queued() > 0 ? SelectionKey.OP_WRITE : 0);
        }
      }
      listeners.watch(false);
      selector.selectedKeys().clear();
      selector.select(left);
    }
  }

  private void close(Peer peer) {
    if (!admission.isTrusted(peer)) {
      abort(peer.socket);
    }
    peers.remove(peer);
    identities(peer.channel).remove(ByteBuffer.wrap(peer.identity), peer);
    close(peer.socket);
  }

  /// Leaves nothing of a connection in the system's tables.
  private static void abort(SocketChannel socket) {
    try {
      socket.setOption(StandardSocketOptions.SO_LINGER, 0);
    } catch (IOException e) {
      // The client has closed it.
    }
  }

  private static void close(SocketChannel socket) {
    try {
      socket.close();
    } catch (IOException e) {
      // It carries nothing any more.
    }
  }

  private void closeAll() {
    List.copyOf(peers).forEach(this::close);
    try {
      listeners.close();
    } catch (IOException e) {
      System.err.println("braid kernel: its sockets did not close cleanly: " + e);
    }
    closeSelector();
  }

  private void closeSelector() {
    try {
      selector.close();
    } catch (IOException e) {
      System.err.println("braid kernel: its selector did not close cleanly: " + e);
    }
  }

  private void discardUnsent() {
    for (var task = tasks.poll(); task != null; task = tasks.poll()) {
      if (task instanceof Task.Send send) {
        send.sent.complete(false);
      }
    }
    publications.end();
  }

  private Map<ByteBuffer, Peer> identities(Channel channel) {
    return byIdentity.computeIfAbsent(channel, _ -> new HashMap<>());
  }
}
