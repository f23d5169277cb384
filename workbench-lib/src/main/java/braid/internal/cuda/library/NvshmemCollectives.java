package braid.internal.cuda.library;

import braid.internal.library.LibraryCall;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.model.Place;
import braid.natives.cuda.GpuStream;
import braid.natives.nvshmem.Nvshmem;

/// Collectives by NVSHMEM's puts: each rank writes its part into the others' heap and then makes
/// sure that it is there. Waiting is left to the group's own signals, since a stream that waits
/// inside NVSHMEM for a rank that is lost cannot be stopped.
public final class NvshmemCollectives implements LibraryCollectives {
  private final Nvshmem nvshmem;
  private final Place place;

  public NvshmemCollectives(Nvshmem nvshmem, Place place) {
    this.nvshmem = nvshmem;
    this.place = place;
  }

  @Override
  public Precondition precondition(LibraryRequest request) {
    return Precondition.ARRIVAL_ON_STREAM;
  }

  @Override
  public boolean needsCompletionSignal() {
    return true;
  }

  @Override
  public LibraryCall call(LibraryRequest request) {
    long x = request.x().address();
    long y = request.y().address();
    long bytes = request.x().bytes();
    long part = bytes / place.size();
    int rank = place.rank();
    return switch (request.collective()) {
      case ALL_GATHER -> puts(y + rank * bytes, x, 0, bytes);
      case ALL_TO_ALL -> puts(y + rank * part, x, part, part);
      case BROADCAST -> rank == request.root() ? puts(x, x, 0, bytes) : _ -> {};
      case REDUCE_SCATTER, ALL_REDUCE, BARRIER ->
          throw new IllegalArgumentException("NVSHMEM was asked for " + request.collective());
    };
  }

  /// Writes so many bytes to that place of every rank, its own among them.
  ///
  /// @param stride how far what is for one rank lies from what is for the next
  private LibraryCall puts(long to, long from, long stride, long bytes) {
    return on -> {
      for (int i = 1; i < place.size(); i++) {
        int peer = (place.rank() + i) % place.size();
        // A peer's memory goes by this rank's address of its own.
        nvshmem.putOnStream(to, from + peer * stride, bytes, peer, on);
      }
      nvshmem.quietOnStream(on);
      keepOwn(to, from + place.rank() * stride, bytes, on);
    };
  }

  private static void keepOwn(long to, long from, long bytes, GpuStream on) {
    if (to != from) {
      on.copy(to, from, bytes);
    }
  }

  /// Puts wait for nobody, so they end by themselves.
  @Override
  public void abort() {}
}
