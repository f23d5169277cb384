package braid.internal.backend;

import java.util.concurrent.CompletableFuture;

/// A point in a stream's work that other streams of this rank can wait for.
public sealed interface Event {
  /// The host's: a future that fails where the stream does.
  record OfHost(CompletableFuture<Boolean> reached) implements Event {}
}
