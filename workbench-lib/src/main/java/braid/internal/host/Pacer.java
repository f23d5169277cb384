package braid.internal.host;

import braid.model.Link;

/// When a link would be done with each copy. It works with the times at which copies were ready,
/// not at which a thread woke up to make them: an overslept deadline delays one copy and not all
/// that follow, so that the mean speed is the link's.
final class Pacer {
  private final Link link;
  private long freeNanos = Long.MIN_VALUE;

  Pacer(Link link) {
    this.link = link;
  }

  /// Takes the link for one copy that was ready at that time, and says when it is through. Copies
  /// that are ready together share the link by taking turns.
  synchronized long reserve(long readyNanos, long bytes) {
    if (freeNanos == Long.MIN_VALUE || readyNanos - freeNanos > 0) {
      freeNanos = readyNanos;
    }
    freeNanos += link.nanos(bytes);
    return freeNanos;
  }
}
