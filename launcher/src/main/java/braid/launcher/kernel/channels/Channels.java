package braid.launcher.kernel.channels;

import braid.model.BraidException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
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
import java.util.stream.Collectors;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;

/// The five sockets of a kernel and the single thread that owns them. It reads all received
/// messages and dispatches them, then sends all queued messages in order. So nothing waits for a
/// poll interval, and every request that arrived before a reply was sent is known before the reply
/// is.
///
/// Every local user can connect to a TCP port. A client is *trusted* if its process belongs to the
/// kernel's user or to root, or if its owner has sent a message that is signed with the key; the
/// owner is the user on this machine, or the address of another one. Everybody else is a stranger:
///
/// - Strangers get no output, cannot take the identity of a trusted client, and are closed at the
///   first message with a wrong signature or above a limit.
/// - All strangers together have a number of connections, a rate of bytes and of connections, and
///   memory for unfinished messages. If they exceed the number or the memory, the owner with most
///   loses its oldest connection. If they exceed a rate, nothing more is read from them for the
///   rest of a window, so that the stranger waits and not the kernel.
/// - All connections together leave half of the free file descriptors to the kernel.
public final class Channels implements AutoCloseable {
  public enum Channel {
    SHELL("ROUTER"),
    CONTROL("ROUTER"),
    STDIN("ROUTER"),
    IOPUB("PUB"),
    HEARTBEAT("REP");

    final String socketType;

    Channel(String socketType) {
      this.socketType = socketType;
    }
  }

  /// Receives messages on the thread of the sockets; must not block.
  @FunctionalInterface
  public interface Receiver {
    void receive(Channel channel, Message message);

    /// Receives a signed message above [#MAX_MESSAGE_BYTES], without its content.
    default void tooLarge(Channel channel, Message message, long bytes) {}
  }

  private sealed interface Task {
    record Send(Channel channel, Message message, CompletableFuture<Boolean> sent)
        implements Task {}

    record Close() implements Task {}
  }

  /// Largest message of a client.
  public static final int MAX_MESSAGE_BYTES = 16 << 20;

  /// Messages that may wait in the queue of a slow subscriber.
  private static final int MAX_QUEUED = 128;

  /// Bytes that may wait there, and in the queue of a client that reads no replies.
  private static final long MAX_QUEUED_BYTES = 64 << 20;

  /// Messages that may wait for that queue before producers block.
  private static final int MAX_UNSENT = 16;

  /// Time after which a subscriber that reads nothing is dropped: it no longer delays output and
  /// misses messages until it reads again. Clients that pause, as a Jupyter server does while it
  /// saves a large notebook, must not reach it: a client that misses an `idle` waits forever.
  private static final Duration STALLED = Duration.ofSeconds(30);

  /// Interval at which waiting publications look for subscribers that have stalled.
  private static final int RETRY_MS = 50;

  /// Time for the last messages to leave when the kernel ends.
  private static final int LINGER_MS = 1000;

  /// Bytes that are read from one trusted client before the others have their turn.
  private static final int TURN_BYTES = 2 * MAX_MESSAGE_BYTES;

  private static final int READ_BYTES = 64 << 10;

  private static final int MAX_PEERS = 1024;
  private static final int MAX_STRANGERS = 64;

  /// Largest message of a stranger. Its first one makes it trusted, and is small; the garbage of
  /// larger ones would live long enough to grow the heap.
  private static final int MAX_STRANGERS_MESSAGE_BYTES = 64 << 10;

  /// Bytes of the unfinished messages of all strangers.
  private static final long MAX_STRANGERS_BYTES = 2 << 20;

  private static final long WINDOW_NANOS = 100_000_000;
  private static final int WINDOW_BYTES = 128 << 10;
  private static final int WINDOW_ACCEPTS = 20;

  private static final int FILE_TYPE = 0170000;
  private static final int SOCKET = 0140000;

  private static final int LOOK_UP_PARTS = 20;

  private static final int BACKLOG = 128;

  private final Receiver receiver;
  private final Duration stalledAfter;
  private final Predicate<Owner> isOwn;
  private final MessageCodec codec;
  private final Selector selector;
  private final Map<Channel, ServerSocketChannel> servers = new EnumMap<>(Channel.class);
  private final List<Path> files = new ArrayList<>();
  private final ConcurrentLinkedQueue<Task> tasks = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean woken = new AtomicBoolean();
  private final AtomicLong dropped = new AtomicLong();
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final Object room = new Object();
  private int published;
  private final Thread owner;

  // What only the thread of the sockets uses.
  private final int maxPeers;
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BYTES);

  /// The oldest first.
  private final Set<Peer> peers = new LinkedHashSet<>();

  private final Map<Channel, Map<ByteBuffer, Peer>> byIdentity = new EnumMap<>(Channel.class);
  private final Set<Owner> proven = new HashSet<>();
  private final ArrayDeque<List<byte[]>> unsent = new ArrayDeque<>();
  private int unnamed;
  private long windowStartNanos = System.nanoTime();
  private int windowBytes;
  private int windowAccepts;
  private long acceptAgainNanos = windowStartNanos;
  private boolean paused;

  private final Peer.Sink sink =
      new Peer.Sink() {
        @Override
        public void ready(Peer peer) throws IOException {
          identify(peer);
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
          return isTrusted(peer.owner) ? MAX_MESSAGE_BYTES : MAX_STRANGERS_MESSAGE_BYTES;
        }

        @Override
        public MessageCodec.Skim tooLarge(Peer peer, List<byte[]> frames, long bytes)
            throws IOException {
          if (isTrusted(peer.owner)) {
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
  /// @throws BraidException if the connection file requests something unavailable
  public Channels(KernelConnectionProperties connection, Receiver receiver) {
    this(connection, receiver, STALLED, Owner::isOwn);
  }

  /// @param isOwn accepts owners that need no key to be trusted
  Channels(
      KernelConnectionProperties connection,
      Receiver receiver,
      Duration stalledAfter,
      Predicate<Owner> isOwn) {
    this.receiver = receiver;
    this.stalledAfter = stalledAfter;
    this.isOwn = isOwn;
    var transport = connection.getTransport();
    if (!List.of("tcp", "ipc").contains(transport)) {
      throw new BraidException(
          "transport must be tcp or ipc but was "
              + transport
              + "; start the kernel with --KernelManager.transport=tcp");
    }
    try {
      codec = new MessageCodec(connection.getSignatureScheme(), connection.getKey());
      selector = Selector.open();
    } catch (GeneralSecurityException e) {
      throw new BraidException(
          "signature_scheme must be one this JDK has, such as hmac-sha256, but was "
              + connection.getSignatureScheme(),
          e);
    } catch (IOException e) {
      throw new BraidException("the kernel's sockets cannot be opened: " + e, e);
    }
    try {
      listen(Channel.HEARTBEAT, connection, connection.getHbPort());
      listen(Channel.SHELL, connection, connection.getShellPort());
      listen(Channel.CONTROL, connection, connection.getControlPort());
      listen(Channel.STDIN, connection, connection.getStdinPort());
      listen(Channel.IOPUB, connection, connection.getIopubPort());
      maxPeers = Math.clamp(freeDescriptors() / 2, 16, MAX_PEERS);
    } catch (IOException e) {
      closeAll();
      throw new BraidException("the kernel's sockets cannot be opened: " + e, e);
    } catch (BraidException e) {
      closeAll();
      throw e;
    }
    owner = Thread.ofPlatform().name("kernel-channels").unstarted(this::serve);
  }

  private void listen(Channel channel, KernelConnectionProperties connection, int port)
      throws IOException {
    boolean local = connection.getTransport().equals("ipc");
    var ip = connection.getIp();
    var name = local ? ip + "-" + port : ip + ":" + port;
    var server =
        local ? ServerSocketChannel.open(StandardProtocolFamily.UNIX) : ServerSocketChannel.open();
    servers.put(channel, server);
    try {
      if (local && isSocket(Path.of(name))) {
        Files.delete(Path.of(name)); // of a kernel that was killed
      }
      SocketAddress address =
          local
              ? UnixDomainSocketAddress.of(name)
              : ip.equals("*") ? new InetSocketAddress(port) : new InetSocketAddress(ip, port);
      server.bind(address, BACKLOG);
    } catch (IOException | IllegalArgumentException e) {
      throw new BraidException(
          "%s://%s must be free but is taken or not this machine's (%s); start the kernel again"
              .formatted(connection.getTransport(), name, e.getMessage()),
          e);
    }
    if (local) {
      files.add(Path.of(name));
      Files.setPosixFilePermissions(Path.of(name), PosixFilePermissions.fromString("rw-------"));
    }
    server.configureBlocking(false);
    server.register(selector, SelectionKey.OP_ACCEPT, channel);
    byIdentity.put(channel, new HashMap<>());
  }

  private static boolean isSocket(Path file) throws IOException {
    return Files.exists(file, LinkOption.NOFOLLOW_LINKS)
        && ((int) Files.getAttribute(file, "unix:mode", LinkOption.NOFOLLOW_LINKS) & FILE_TYPE)
            == SOCKET;
  }

  /// Returns the number of file descriptors that this process may still open.
  private static int freeDescriptors() throws IOException {
    try (var limits = Files.lines(Path.of("/proc/self/limits"));
        var open = Files.list(Path.of("/proc/self/fd"))) {
      var limit =
          limits
              .filter(line -> line.startsWith("Max open files"))
              .map(line -> line.split("\\s+", -1)[3])
              .findFirst()
              .orElse("unlimited");
      return limit.matches("[0-9]{1,9}")
          ? Integer.parseInt(limit) - (int) open.count()
          : Integer.MAX_VALUE;
    }
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
      count(1);
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
      renewWindow();
      // Reset before the tasks are read: a later task wakes the selector again.
      woken.set(false);
      var sockets = Optional.<Owner.Sockets>empty();
      for (var key : selector.selectedKeys()) {
        if (key.attachment() instanceof Channel channel) {
          if (sockets.isEmpty()) {
            sockets = Optional.of(lookUp());
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
    if (paused) {
      return Math.max(1, (WINDOW_NANOS - (System.nanoTime() - windowStartNanos)) / 1_000_000);
    }
    return unsent.isEmpty() ? 0 : RETRY_MS;
  }

  private void renewWindow() {
    long now = System.nanoTime();
    if (now - windowStartNanos >= WINDOW_NANOS) {
      windowStartNanos = now;
      windowBytes = 0;
      windowAccepts = now - acceptAgainNanos >= 0 ? 0 : WINDOW_ACCEPTS;
      if (paused) {
        paused = windowAccepts > 0;
        watch();
      }
    }
  }

  /// Reads nothing more from strangers, or accepts nobody, until the window ends.
  private void pause() {
    paused = true;
    watch();
  }

  private void watch() {
    for (var server : servers.values()) {
      server
          .keyFor(selector)
          .interestOps(windowAccepts < WINDOW_ACCEPTS ? SelectionKey.OP_ACCEPT : 0);
    }
    peers.forEach(this::watch);
  }

  private void watch(Peer peer) {
    if (peer.key.isValid()) {
      boolean waits =
          (windowBytes >= WINDOW_BYTES && !isTrusted(peer.owner))
              // Nobody needs more beats than it reads.
              || (peer.channel == Channel.HEARTBEAT && peer.queued() > 0);
      peer.key.interestOps(
          (waits ? 0 : SelectionKey.OP_READ) | (peer.queued() > 0 ? SelectionKey.OP_WRITE : 0));
    }
  }

  /// Reads the table of sockets, which is slow while strangers leave thousands there. So it may
  /// take one part of the time.
  private Owner.Sockets lookUp() {
    long start = System.nanoTime();
    var sockets = Owner.Sockets.now();
    long end = System.nanoTime();
    acceptAgainNanos = end + LOOK_UP_PARTS * (end - start);
    return sockets;
  }

  private void accept(Channel channel, Owner.Sockets sockets) {
    try {
      var server = server(channel);
      while (windowAccepts < WINDOW_ACCEPTS) {
        var socket = server.accept();
        if (socket == null) {
          return;
        }
        windowAccepts++;
        welcome(channel, socket, sockets);
      }
    } catch (IOException e) {
      // Descriptors may be free again later.
      windowAccepts = WINDOW_ACCEPTS;
      drop(channel, "connection", e);
    }
    pause();
  }

  private void welcome(Channel channel, SocketChannel socket, Owner.Sockets sockets) {
    try {
      var from = Owner.of(socket, sockets);
      if (peers.size() >= maxPeers) {
        throw new IOException("there are %d already".formatted(maxPeers));
      }
      socket.configureBlocking(false);
      if (socket.supportedOptions().contains(StandardSocketOptions.TCP_NODELAY)) {
        socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
      }
      var key = socket.register(selector, SelectionKey.OP_READ);
      var name = ByteBuffer.allocate(5).putInt(1, ++unnamed).array();
      var peer = new Peer(channel, from, socket, key, name, sink);
      key.attach(peer);
      peers.add(peer);
      flush(peer);
      if (!isTrusted(from)) {
        limitStrangers();
      }
    } catch (IOException e) {
      drop(channel, "connection", e);
      close(socket);
    }
  }

  private boolean isTrusted(Owner from) {
    return isOwn.test(from) || proven.contains(from);
  }

  private void limitStrangers() {
    var strangers = peers.stream().filter(peer -> !isTrusted(peer.owner)).toList();
    long bytes = strangers.stream().mapToLong(Peer::held).sum();
    if (strangers.size() > Math.min(MAX_STRANGERS, maxPeers / 2)) {
      var byOwner = strangers.stream().collect(Collectors.groupingBy(peer -> peer.owner));
      byOwner.values().stream()
          .max((a, b) -> Integer.compare(a.size(), b.size()))
          .ifPresent(most -> close(most.getFirst()));
    }
    if (bytes > MAX_STRANGERS_BYTES) {
      strangers.stream().max((a, b) -> Long.compare(a.held(), b.held())).ifPresent(this::close);
    }
  }

  private void read(Peer peer) {
    boolean trusted = isTrusted(peer.owner);
    int left = trusted ? TURN_BYTES : Math.min(READ_BYTES, WINDOW_BYTES - windowBytes);
    try {
      while (left > 0) {
        int count = peer.socket.read(buffer.clear().limit(Math.min(left, READ_BYTES)));
        if (count < 0) {
          close(peer);
          return;
        }
        if (count == 0) {
          break;
        }
        left -= count;
        windowBytes += trusted ? 0 : count;
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
      if (windowBytes >= WINDOW_BYTES) {
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
    if (old != null && isTrusted(old.owner) && !old.owner.equals(peer.owner)) {
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
    if (!isTrusted(peer.owner)) {
      proven.add(peer.owner);
      peers.forEach(this::watch);
    }
    receiver.receive(peer.channel, message);
  }

  /// Drops a message, and its connection too if no key vouches for it.
  private void refuse(Peer peer, MalformedMessage reason) throws IOException {
    if (reason instanceof MalformedMessage.Forged && !isTrusted(peer.owner)) {
      throw new IOException(reason.getMessage(), reason);
    }
    drop(peer.channel, "message", reason);
  }

  private void drop(Channel channel, String what, Exception reason) {
    if (dropped.incrementAndGet() == 1) {
      System.err.println(
          "braid kernel: dropped a %s on %s: %s; more like it are only counted"
              .formatted(what, channel, reason.getMessage()));
    }
  }

  private boolean sendAll() {
    for (var task = tasks.poll(); task != null; task = tasks.poll()) {
      switch (task) {
        case Task.Send send when send.channel == Channel.IOPUB -> {
          unsent.add(codec.encode(send.message));
          publish(false);
          send.sent.complete(true);
        }
        case Task.Send send -> send.sent.complete(reply(send));
        case Task.Close _ -> {
          publish(true);
          return false;
        }
      }
    }
    publish(false);
    return true;
  }

  private boolean reply(Task.Send send) {
    var frames = codec.encode(send.message);
    var peer = identities(send.channel).get(ByteBuffer.wrap(frames.getFirst()));
    if (peer == null || !isTrusted(peer.owner)) {
      return false;
    }
    peer.send(Peer.encode(frames.subList(1, frames.size())));
    flush(peer);
    if (peer.queuedBytes() > MAX_QUEUED_BYTES) {
      drop(send.channel, "connection", new IOException("it reads no replies"));
      close(peer);
      return false;
    }
    return true;
  }

  /// Sends publications in order while every subscriber has room. A subscriber that has had no room
  /// for long misses them until it has room again.
  private void publish(boolean all) {
    while (!unsent.isEmpty()) {
      var frames = unsent.getFirst();
      var subscribers =
          peers.stream()
              .filter(peer -> peer.channel == Channel.IOPUB && isTrusted(peer.owner))
              .filter(peer -> peer.wants(frames.getFirst()))
              .toList();
      boolean waits = false;
      for (var peer : subscribers) {
        waits |= isFull(peer) && !peer.stalled;
      }
      if (waits && !all) {
        return;
      }
      var message = Peer.encode(frames);
      for (var peer : subscribers) {
        if (!isFull(peer)) {
          peer.send(message);
          flush(peer);
        }
      }
      unsent.removeFirst();
      count(-1);
    }
  }

  /// Returns true if a subscriber has no room, and notes since when.
  private boolean isFull(Peer peer) {
    if (peer.queued() < MAX_QUEUED && peer.queuedBytes() < MAX_QUEUED_BYTES) {
      peer.fullSinceNanos = 0;
      peer.stalled = false;
      return false;
    }
    long now = System.nanoTime();
    if (peer.fullSinceNanos == 0) {
      peer.fullSinceNanos = now;
    }
    if (!peer.stalled && now - peer.fullSinceNanos > stalledAfter.toNanos()) {
      peer.stalled = true;
      System.err.printf(
          "braid kernel: a client has read no output for %d s and misses messages%n",
          stalledAfter.toSeconds());
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
    while (peers.stream().anyMatch(peer -> peer.queued() > 0 && isTrusted(peer.owner))) {
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
      servers.values().forEach(server -> server.keyFor(selector).interestOps(0));
      selector.selectedKeys().clear();
      selector.select(left);
    }
  }

  private void close(Peer peer) {
    if (!isTrusted(peer.owner)) {
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
      for (var server : servers.values()) {
        server.close();
      }
      for (var file : files) {
        Files.deleteIfExists(file);
      }
      selector.close();
    } catch (IOException e) {
      System.err.println("braid kernel: its sockets did not close cleanly: " + e);
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

  private ServerSocketChannel server(Channel channel) {
    var server = servers.get(channel);
    if (server == null) {
      throw new IllegalStateException("no socket for " + channel);
    }
    return server;
  }

  private Map<ByteBuffer, Peer> identities(Channel channel) {
    return byIdentity.computeIfAbsent(channel, _ -> new HashMap<>());
  }
}
