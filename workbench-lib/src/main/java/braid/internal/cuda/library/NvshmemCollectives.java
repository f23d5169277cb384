package braid.internal.cuda.library;

import braid.internal.library.LibraryCall;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.model.Place;
import braid.natives.cuda.GpuStream;
import braid.natives.nvshmem.Nvshmem;
import java.util.List;

/// Collectives by NVSHMEM's puts: each rank writes its part into the others' heap and then waits
/// until it has been delivered. Ranks wait for each other by the group's own signals, since a
/// stream that waits inside NVSHMEM for a lost rank cannot be aborted.
public final class NvshmemCollectives implements LibraryCollectives {
  private final Nvshmem nvshmem;
  private final Place place;
  private final List<Integer> ranks;

  /// @param ranks the members' ranks in the world, which are NVSHMEM's processing elements
  public NvshmemCollectives(Nvshmem nvshmem, Place place, List<Integer> ranks) {
    this.nvshmem = nvshmem;
    this.place = place;
    this.ranks = List.copyOf(ranks);
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
      case REDUCE_SCATTER, ALL_REDUCE, SEND, RECEIVE, BARRIER ->
          throw new IllegalArgumentException("NVSHMEM has no " + request.collective());
    };
  }

  /// Writes bytes to the address `to` of every rank, including this one.
  ///
  /// @param stride distance in bytes between the data for successive ranks
  private LibraryCall puts(long to, long from, long stride, long bytes) {
    return stream -> {
      for (int i = 1; i < place.size(); i++) {
        int peer = (place.rank() + i) % place.size();
        // NVSHMEM takes this rank's own address for a peer's memory.
        nvshmem.putOnStream(to, from + peer * stride, bytes, ranks.get(peer), stream);
      }
      nvshmem.quietOnStream(stream);
      keepOwn(to, from + place.rank() * stride, bytes, stream);
    };
  }

  private static void keepOwn(long to, long from, long bytes, GpuStream stream) {
    if (to != from) {
      stream.copy(to, from, bytes);
    }
  }

  /// Does nothing: puts wait for no rank, so they always end.
  @Override
  public void abort() {}

  /// Does nothing: the rank stays in NVSHMEM until it ends.
  @Override
  public void close() {}
}
