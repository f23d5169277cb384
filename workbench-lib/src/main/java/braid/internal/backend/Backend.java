package braid.internal.backend;

import braid.internal.backend.Channels.Channel;
import braid.internal.library.LibraryCollectives;
import braid.internal.resource.Inspection;
import braid.internal.resource.PrivateMemory;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.ControlMemory;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Precision;
import braid.model.Activity;
import braid.model.BackendKind;
import braid.model.DType;
import braid.model.HardwareReading;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Timing;
import braid.model.Transport;
import braid.schedule.Lane;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.SortedSet;
import java.util.function.Supplier;

/// Runs a rank's work: on threads and shared memory of the host, or on a GPU. Streams, events and
/// executables may be passed only to the backend that created them.
public interface Backend extends SymmetricMemory.Allocator {
  /// Name of the backend, as in `BRAID_BACKEND`.
  BackendKind kind();

  /// Default timing of iterations.
  Timing timing();

  /// Returns the largest number of ranks on a device of this machine. If it is not 1, times are no
  /// evidence.
  int ranksPerDevice();

  /// Name of this rank's device: "NVIDIA H200"; of the host, its processor and cores.
  String deviceName();

  /// Link between the ranks, as tables show it: bandwidth and latency if simulated, else its name.
  String link();

  /// Simulates this link, beginning with the next copy. Throws if the backend's links are real.
  void playLink(Link link);

  /// Returns the kind to allocate for the requested one: `AUTO` becomes an available kind. Throws,
  /// with the reason, if any other kind is not available.
  MemoryKind resolve(MemoryKind requested);

  /// Reason why the library that a transport is by is not available; empty if it is, and for
  /// Braid's own transports.
  Optional<String> missing(Transport transport);

  /// Returns the library's collectives for a group. Collective: all members call it together.
  /// Throws with the reason if the library is not available.
  ///
  /// @param rendezvous supplies a new rendezvous at every call
  LibraryCollectives library(Transport library, Supplier<Rendezvous> rendezvous);

  /// Returns the number of each member's host, if members of different hosts have no address of
  /// each other's memory and exchange messages instead; empty if they have one, or are on one host.
  ///
  /// @param ranks the members' ranks in the world
  default Optional<List<Integer>> separateHosts(List<Integer> ranks) {
    return Optional.empty();
  }

  /// Connects ranks of different hosts. Collective: all members call it together, with all of their
  /// channels.
  ///
  /// @param rendezvous supplies a new rendezvous at every call
  default Channels channels(SortedSet<Channel> channels, Supplier<Rendezvous> rendezvous) {
    throw new IllegalStateException("ranks of this backend have addresses of all memory");
  }

  /// Creates a stream: a queue of work that runs asynchronously and concurrently with other
  /// streams.
  Stream stream(Lane lane);

  /// Resets the streams of one plan: drops work that has not started, ends waits for other ranks,
  /// and waits until the work that has started is done. Afterwards the streams are as new. Takes
  /// all streams of the plan in one call, because they wait for each other.
  void quiesce(List<Stream> streams);

  /// Compiles the work that `enqueue` puts on the streams, without running it: chooses algorithms,
  /// allocates memory and does other first-use work. The choice of algorithms reads the inputs, so
  /// they should already hold their values.
  ///
  /// @param recorded true if a launch submits all work at once, as a graph if the backend has
  ///   graphs; false if it submits call by call
  Executable compile(List<Stream> streams, Runnable enqueue, boolean recorded);

  /// Allocates zeroed host memory for the words by which ranks signal each other: one part per
  /// member, all readable by every member. Collective: all members call it together.
  ControlMemory control(String label, long bytesPerRank, Rendezvous rendezvous);

  /// Allocates rank-local memory with undefined contents, which lives until it is closed.
  PrivateMemory allocate(long bytes);

  /// Returns the host's access to this backend's memory, except memory of [#control].
  Inspection access();

  /// Allocates rank-local, page-locked host memory, which the device can copy directly. It lives
  /// until it is closed.
  PrivateMemory pinned(long bytes);

  /// Returns the right operand of multiplications whose left operand has type `left`, with memory
  /// for the widened form that they read, if they need one.
  Operand operand(Matrix source, DType left);

  /// Returns the precision in which a GEMM of these types multiplies.
  Precision precision(DType input, DType weight);

  /// Current readings by name: clocks, power, temperature, throttle reasons, and the backend's
  /// counters. Empty if none are available.
  SequencedMap<String, Long> readings();

  /// Returns the hardware's current state, to be stored with a measurement that has just ended.
  HardwareReading reading();

  /// Returns the largest error of the last recorded times, relative to the process's clock.
  long clockErrorNanos();

  /// Returns the activities of the last profile that belong to no step of any stream.
  List<Activity> unowned();

  /// Returns true if no stream has work. May be called from any thread.
  boolean isIdle();

  /// Returns true if a stream waits for a signal of that rank of the world.
  boolean awaits(int rank);

  /// Drops work that the streams have not started, and waits for work that they have started.
  void quiesce();

  /// Frees everything that this backend allocated. Idempotent.
  void close();
}
