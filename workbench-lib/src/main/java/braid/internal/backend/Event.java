package braid.internal.backend;

import braid.natives.cuda.GpuEvent;
import java.util.concurrent.CompletableFuture;

/// A point in a stream's work that other streams of this rank can wait for.
public sealed interface Event {
  /// The host's: a future of the time at which it was reached, which fails where the stream does.
  record OfHost(CompletableFuture<Long> reached) implements Event {
    OfHost() {
      this(new CompletableFuture<>());
    }
  }

  /// A GPU's.
  record OfCuda(GpuEvent event) implements Event {}
}
