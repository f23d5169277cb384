package braid.internal.backend;

import braid.internal.work.Work;

/// Holds a stream of the host back until a test lets it go on, or fails it.
public final class HostGate {
  private final Event.OfHost event = new Event.OfHost();

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
