package braid.launcher.kernel.channels;

import braid.launcher.machine.SocketOwner;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/// Tells trusted clients from strangers, and limits strangers.
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
final class Admission {
  private static final int MAX_PEERS = 1024;
  private static final int MAX_STRANGERS = 64;

  /// Largest message of a stranger. Its first one makes it trusted, and is small; the garbage of
  /// larger ones would live long enough to grow the heap.
  private static final int MAX_STRANGERS_MESSAGE_BYTES = 64 << 10;

  /// Bytes of the unfinished messages of all strangers.
  private static final long MAX_STRANGERS_BYTES = 2 << 20;

  /// Bytes that are read at once.
  static final int READ_BYTES = 64 << 10;

  /// Bytes that are read from one trusted client before the others have their turn.
  private static final int TURN_BYTES = 2 * Message.MAX_BYTES;

  private static final long WINDOW_NANOS = 100_000_000;
  private static final int WINDOW_BYTES = 128 << 10;
  private static final int WINDOW_ACCEPTS = 20;
  private static final int LOOK_UP_PARTS = 20;

  private final Predicate<SocketOwner> isOwn;
  private final int maxPeers;
  private final Set<SocketOwner> proven = new HashSet<>();
  private long windowStartNanos = System.nanoTime();
  private int windowBytes;
  private int windowAccepts;
  private long acceptAgainNanos = windowStartNanos;

  /// @param isOwn accepts owners that need no key to be trusted
  Admission(Predicate<SocketOwner> isOwn) throws IOException {
    this.isOwn = isOwn;
    maxPeers = Math.clamp(freeDescriptors() / 2, 16, MAX_PEERS);
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

  boolean isTrusted(Peer peer) {
    return isTrusted(peer.owner);
  }

  private boolean isTrusted(SocketOwner owner) {
    return isOwn.test(owner) || proven.contains(owner);
  }

  /// Trusts the owner of a peer that has sent a signed message. Returns false if it was trusted.
  boolean trust(Peer peer) {
    return !isTrusted(peer) && proven.add(peer.owner);
  }

  int maxMessageBytes(Peer peer) {
    return isTrusted(peer) ? Message.MAX_BYTES : MAX_STRANGERS_MESSAGE_BYTES;
  }

  /// Returns the bytes that may be read from a peer in one turn.
  int turnBytes(Peer peer) {
    return isTrusted(peer) ? TURN_BYTES : Math.min(READ_BYTES, WINDOW_BYTES - windowBytes);
  }

  void countRead(Peer peer, int bytes) {
    windowBytes += isTrusted(peer) ? 0 : bytes;
  }

  boolean mayRead(Peer peer) {
    return windowBytes < WINDOW_BYTES || isTrusted(peer);
  }

  boolean mayAccept() {
    return windowAccepts < WINDOW_ACCEPTS;
  }

  void countAccepted() {
    windowAccepts++;
  }

  /// Accepts nobody until the window ends.
  void acceptNoMore() {
    windowAccepts = WINDOW_ACCEPTS;
  }

  /// Refuses a connection when there are too many.
  void checkRoom(int peers) throws IOException {
    if (peers >= maxPeers) {
      throw new IOException("there are %d already".formatted(maxPeers));
    }
  }

  /// Begins the next window if this one has ended. Returns false while it lasts.
  boolean renewWindow() {
    long now = System.nanoTime();
    if (now - windowStartNanos < WINDOW_NANOS) {
      return false;
    }
    windowStartNanos = now;
    windowBytes = 0;
    windowAccepts = now - acceptAgainNanos >= 0 ? 0 : WINDOW_ACCEPTS;
    return true;
  }

  long windowMillisLeft() {
    return Math.max(1, (WINDOW_NANOS - (System.nanoTime() - windowStartNanos)) / 1_000_000);
  }

  /// Reads the table of sockets, which is slow while strangers leave thousands there. So it may
  /// take one part of the time.
  SocketOwner.Sockets lookUp() {
    long start = System.nanoTime();
    var sockets = SocketOwner.Sockets.now();
    long end = System.nanoTime();
    acceptAgainNanos = end + LOOK_UP_PARTS * (end - start);
    return sockets;
  }

  /// Returns the strangers' connection to close because they have too many.
  Optional<Peer> excessConnection(Collection<Peer> peers) {
    var strangers = strangers(peers);
    return strangers.size() <= Math.min(MAX_STRANGERS, maxPeers / 2)
        ? Optional.empty()
        : strangers.stream().collect(Collectors.groupingBy(peer -> peer.owner)).values().stream()
            .max(Comparator.comparingInt(List::size))
            .map(List::getFirst);
  }

  /// Returns the stranger to close because unfinished messages take too much memory.
  Optional<Peer> excessMemory(Collection<Peer> peers) {
    var strangers = strangers(peers);
    return strangers.stream().mapToLong(Peer::held).sum() <= MAX_STRANGERS_BYTES
        ? Optional.empty()
        : strangers.stream().max(Comparator.comparingLong(Peer::held));
  }

  private List<Peer> strangers(Collection<Peer> peers) {
    return peers.stream().filter(peer -> !isTrusted(peer)).toList();
  }
}
