package braid.launcher.kernel.channels;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

/// The kernel's output on its way to the subscribers of [Channel#IOPUB].
///
/// Producers wait while much is queued because a subscriber reads slowly. A subscriber that reads
/// nothing for long is skipped until it reads again, so nobody waits forever.
final class Publications {
  /// Messages that may wait in the queue of a slow subscriber.
  private static final int MAX_QUEUED = 128;

  /// Messages that may wait for that queue before producers block.
  private static final int MAX_UNSENT = 16;

  private final Object room = new Object();
  private int announced;
  private boolean ended;

  // Used by the thread of the sockets only.
  private final Collection<Peer> peers;
  private final Predicate<Peer> isTrusted;
  private final Consumer<Peer> flush;
  private final Duration stalledAfter;
  private final ArrayDeque<List<byte[]>> unsent = new ArrayDeque<>();

  Publications(
      Collection<Peer> peers,
      Predicate<Peer> isTrusted,
      Consumer<Peer> flush,
      Duration stalledAfter) {
    this.peers = peers;
    this.isTrusted = isTrusted;
    this.flush = flush;
    this.stalledAfter = stalledAfter;
  }

  /// Blocks while many publications are queued.
  void awaitRoom() {
    synchronized (room) {
      try {
        while (announced > MAX_UNSENT && !ended) {
          room.wait();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// Counts a publication that the thread of the sockets will receive.
  void announce() {
    count(1);
  }

  private void count(int more) {
    synchronized (room) {
      announced += more;
      room.notifyAll();
    }
  }

  /// Lets nobody wait any more.
  void end() {
    synchronized (room) {
      ended = true;
      room.notifyAll();
    }
  }

  boolean isEmpty() {
    return unsent.isEmpty();
  }

  void add(List<byte[]> frames) {
    unsent.add(frames);
    send(false);
  }

  /// Sends publications in order while every subscriber has room. A subscriber that has had no room
  /// for long misses them until it has room again.
  ///
  /// @param all sends also while a subscriber has no room
  void send(boolean all) {
    while (!unsent.isEmpty()) {
      var frames = unsent.getFirst();
      var subscribers =
          peers.stream()
              .filter(peer -> peer.channel == Channel.IOPUB && isTrusted.test(peer))
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
          flush.accept(peer);
        }
      }
      unsent.removeFirst();
      count(-1);
    }
  }

  /// Returns true if a subscriber has no room, and notes since when.
  private boolean isFull(Peer peer) {
    if (peer.queued() < MAX_QUEUED && peer.queuedBytes() < Peer.MAX_QUEUED_BYTES) {
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
}
