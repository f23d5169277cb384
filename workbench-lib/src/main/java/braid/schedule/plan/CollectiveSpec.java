package braid.schedule.plan;

import braid.model.AllReduce;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.model.Transport;
import braid.schedule.Lane;
import java.util.List;

/// A standalone collective: its problem and its mechanism.
///
/// @param elements number of elements of `x` per rank
/// @param root rank of a broadcast; 0 for other collectives
/// @param inPlace true if `y` is `x`
/// @param algorithm for an all-reduce by copies; ignored otherwise
/// @param way mechanism: copies that fetch, copies that write, or a library
/// @param workers compute units that copy; 0 for copy engines
/// @param needs synchronization around a library call; [LibraryNeeds#NONE] for copies
public record CollectiveSpec(
    Collective collective,
    DType dtype,
    long elements,
    int root,
    boolean inPlace,
    AllReduce algorithm,
    CollectiveWay way,
    int workers,
    LibraryNeeds needs) {
  /// Chunk size of sums: the next chunk is fetched while the current one is added, and the inbox
  /// does not grow with the tensor.
  static final long CHUNK_BYTES = 1 << 20;

  /// Number of chunks that the inbox holds: one is fetched while the other is added.
  static final int ROOMS = 2;

  /// Synchronization around a library call.
  ///
  /// @param meetsBefore true if ranks wait for all others before the call
  /// @param hostWaits true if the host waits for them too
  /// @param meetsAfter true if ranks wait for all others after the call
  public record LibraryNeeds(boolean meetsBefore, boolean hostWaits, boolean meetsAfter) {
    public static final LibraryNeeds NONE = new LibraryNeeds(false, false, false);

    /// Returns the needs of calls by a library that has connected the ranks. Copy engines,
    /// symmetric kernels, cuBLASMp and puts wait for late ranks in ways that nothing can abort, and
    /// puts do not tell the ranks that they have arrived.
    static LibraryNeeds connected(Transport transport) {
      return switch (transport) {
        case COPY_ENGINE, WORKERS, ONE_KERNEL, NCCL_KERNELS -> NONE;
        case NCCL_COPY_ENGINE, NCCL_SYMMETRIC, CUBLASMP -> new LibraryNeeds(true, false, false);
        case NVSHMEM_PUTS -> new LibraryNeeds(true, false, true);
      };
    }
  }

  /// Returns the number of signal words per rank, enough for any collective.
  public static int words(int ranks) {
    return Ordering.FLAGS.stream().mapToInt(CollectiveSpec::words).sum() * ranks;
  }

  /// Returns the number of words of a flag for each rank that raises it: a sum in place frees its
  /// chunks one by one.
  static int words(String flag) {
    return flag.equals(Ordering.FREE) ? ROOMS : 1;
  }

  /// Returns the lanes of a mechanism, the same for all collectives.
  public static List<Lane> lanes(CollectiveWay way, int workers) {
    var comm = new Lane("comm", Lane.Role.COMMUNICATION, false, way.transport(), workers, 0);
    return way == CollectiveWay.ONE_KERNEL
        ? List.of(comm)
        : List.of(comm, Lane.of("reduce", Lane.Role.COMPLETION));
  }

  /// Returns the largest `x` of a one-shot all-reduce in place, in bytes: the parts of all ranks
  /// are fetched before any is overwritten.
  public static long largestOneShotInPlace() {
    return CHUNK_BYTES * ROOMS;
  }

  /// Returns the bytes of the memory in which a rank computes sums.
  public static long inboxBytes(int ranks) {
    return CHUNK_BYTES * ROOMS * ranks;
  }
}
