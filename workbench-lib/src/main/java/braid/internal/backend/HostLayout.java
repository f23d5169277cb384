package braid.internal.backend;

/// The host's work, laid out anew each time.
record HostLayout(Runnable layOut) implements Replay {
  @Override
  public void launch() {
    layOut.run();
  }

  @Override
  public void close() {}
}
