package braid.launcher.notebook.run;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/// Request from another thread to end the run. Only the first reason counts.
public final class StopRequest {
  private final CompletableFuture<String> reason = new CompletableFuture<>();

  public void request(String why) {
    reason.complete(why);
  }

  Optional<String> reason() {
    return Optional.ofNullable(reason.getNow(null));
  }

  /// Completes with the reason.
  CompletableFuture<String> whenRequested() {
    return reason;
  }
}
