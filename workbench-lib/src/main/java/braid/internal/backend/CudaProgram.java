package braid.internal.backend;

import java.util.ArrayList;
import java.util.List;

/// Work for a GPU's streams of which everything is decided, down to addresses and algorithms:
/// giving it out is a call of the driver for each piece and little else.
final class CudaProgram implements Replay {
  private final List<Runnable> pieces = new ArrayList<>();

  private CudaProgram() {}

  /// What that lays out on those streams.
  static CudaProgram of(List<CudaStream> streams, Runnable layOut) {
    var program = new CudaProgram();
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
  }

  @Override
  public void close() {}
}
