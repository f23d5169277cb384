package braid.internal.host;

import braid.internal.backend.Stream;
import braid.internal.work.Work;

/// Blocks a stream of the host until a test opens the gate or fails it.
public final class HostGate {
  private final HostEvent event = new HostEvent();

  /// Blocks work that is enqueued on the stream from now on.
  public HostGate(Stream stream) {
    stream.await(Work.of(() -> "a gate on " + stream.name()), event);
  }

  public void open() {
    event.reached().complete(0L);
  }

  public void fail(RuntimeException failure) {
    event.reached().completeExceptionally(failure);
  }
}
