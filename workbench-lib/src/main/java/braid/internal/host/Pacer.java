package braid.internal.host;

import braid.model.Link;

/// Computes when a link would have delivered each copy. Based on the times at which copies were
/// ready, not on those at which a thread woke up to make them: oversleeping delays one copy but not
/// the following ones, so that the mean speed is the link's.
final class Pacer {
  private final Link link;
  private long freeNanos = Long.MIN_VALUE;

  Pacer(Link link) {
    this.link = link;
  }

  /// Reserves the link for one copy that was ready at a time, and returns the time at which it is
  /// delivered. Copies that are ready together are delivered one by one.
  synchronized long reserve(long readyNanos, long bytes) {
    if (freeNanos == Long.MIN_VALUE || readyNanos - freeNanos > 0) {
      freeNanos = readyNanos;
    }
    freeNanos += link.nanos(bytes);
    return freeNanos;
  }
}
