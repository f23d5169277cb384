package braid.internal.host;

import braid.internal.backend.Event;
import java.util.concurrent.CompletableFuture;

/// A point in the work of a stream of the host.
///
/// @param reached the time at which the stream was there; fails where the stream does
record HostEvent(CompletableFuture<Long> reached) implements Event {
  HostEvent() {
    this(new CompletableFuture<>());
  }
}
