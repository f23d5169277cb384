package braid.schedule;

import braid.model.AllReduce;
import braid.model.CollectiveWay;
import braid.model.DType;
import java.util.List;

/// A collective by itself, and how it is made.
///
/// @param elements of `x` on each rank
/// @param root of a broadcast; 0 for others
/// @param inPlace whether `y` is `x`
/// @param algorithm of an all-reduce by copies; ignored otherwise
/// @param way copies that fetch, copies that write, or a library
/// @param workers compute units that copy; 0 for copy engines
/// @param library needs of a library's call; [Library#NONE] for copies
public record CollectiveSpec(
    Collective collective,
    DType dtype,
    long elements,
    int root,
    boolean inPlace,
    AllReduce algorithm,
    CollectiveWay way,
    int workers,
    Library library) {
  /// Signals around a library's call.
  ///
  /// @param meetsBefore whether ranks wait for all others before the call
  /// @param hostWaits whether the host waits until they have come
  /// @param meetsAfter whether ranks wait for all others behind the call
  public record Library(boolean meetsBefore, boolean hostWaits, boolean meetsAfter) {
    public static final Library NONE = new Library(false, false, false);
  }

  /// Words that every rank needs for the signals of any collective.
  public static int words(int ranks) {
    return CollectivePlanner.FLAGS.size() * ranks;
  }

  /// Lanes of collectives made in that way, the same for all of them.
  public static List<Lane> lanes(CollectiveWay way, int workers) {
    return List.of(
        new Lane("comm", Lane.Role.COMMUNICATION, false, way.transport(), workers, 0),
        Lane.of("reduce", Lane.Role.COMPLETION));
  }

  /// The largest `x` of a one-shot all-reduce in place, in bytes: all ranks' must be fetched before
  /// any is overwritten.
  public static long largestOneShotInPlace() {
    return CollectivePlanner.CHUNK_BYTES * CollectivePlanner.ROOMS;
  }

  /// Bytes of the memory in which a rank adds up.
  public static long inboxBytes(int ranks) {
    return CollectivePlanner.CHUNK_BYTES * CollectivePlanner.ROOMS * ranks;
  }
}
