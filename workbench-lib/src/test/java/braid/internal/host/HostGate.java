package braid.internal.host;

import braid.internal.backend.Stream;
import braid.internal.work.Work;

/// Holds a stream of the host back until a test lets it go on, or fails it.
public final class HostGate {
  private final HostEvent event = new HostEvent();

  /// What the stream is given from here on waits for the gate.
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
