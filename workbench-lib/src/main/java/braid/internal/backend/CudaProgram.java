package braid.internal.backend;

import java.util.ArrayList;
import java.util.List;

/// Work for a GPU's streams of which everything is decided, down to addresses and algorithms:
/// giving it out is a call of the driver for each piece and little else.
final class CudaProgram implements Replay {
  /// The driver holds the host up in a call that cannot be aborted when a stream has about 1,000
  /// pieces of work queued.
  private static final int MOST_QUEUED = 800;

  private final List<CudaStream> streams;
  private final List<Runnable> pieces = new ArrayList<>();

  private CudaProgram(List<CudaStream> streams) {
    this.streams = List.copyOf(streams);
  }

  /// What that lays out on those streams.
  static CudaProgram of(List<CudaStream> streams, Runnable layOut) {
    var program = new CudaProgram(streams);
    streams.forEach(stream -> stream.layOutInto(program));
    try {
      layOut.run();
    } finally {
      streams.forEach(stream -> stream.layOutInto(null));
    }
    return program;
  }

  void add(Runnable piece) {
    pieces.add(piece);
  }

  @Override
  public void launch() {
    for (var piece : pieces) {
      piece.run();
    }
    // Others wait for what a stream signals last, and so may another stream of this rank.
    streams.forEach(CudaStream::flush);
  }

  @Override
  public int mostInFlight() {
    return Math.clamp(MOST_QUEUED / Math.max(pieces.size(), 1), 2, MOST_IN_FLIGHT);
  }

  @Override
  public void close() {}
}
