package braid.internal.backend;

import braid.natives.cuda.GpuEvent;
import java.util.concurrent.CompletableFuture;

/// A point in a stream's work that other streams of this rank can wait for.
public sealed interface Event {
  /// The host's: a future of the time at which it was reached, which fails where the stream does. A
  /// replay has the same points again, so each launch renews their futures; what was launched
  /// before keeps its own.
  final class OfHost implements Event {
    private volatile CompletableFuture<Long> reached = new CompletableFuture<>();

    CompletableFuture<Long> reached() {
      return reached;
    }

    void renew() {
      reached = new CompletableFuture<>();
    }
  }

  /// A GPU's.
  record OfCuda(GpuEvent event) implements Event {}
}
