package braid.internal.backend;

/// Work that was laid out once and can be given to its streams again and again.
public sealed interface Replay extends AutoCloseable
    permits HostReplay, HostLayout, CudaProgram, CudaGraphs {
  /// Gives all of it to its streams, for the turn they are at. It must be done before the next.
  void launch();

  @Override
  void close();
}
