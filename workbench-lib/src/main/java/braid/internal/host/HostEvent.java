package braid.internal.host;

import braid.internal.backend.Event;
import java.util.concurrent.CompletableFuture;

/// An event of the host backend.
///
/// @param reached time at which the stream reached it; fails if the stream fails
record HostEvent(CompletableFuture<Long> reached) implements Event {
  HostEvent() {
    this(new CompletableFuture<>());
  }
}
