package braid.internal.backend;

import braid.internal.library.LibraryCollectives;
import braid.internal.resource.Inspection;
import braid.internal.resource.PrivateMemory;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Precision;
import braid.model.DType;
import braid.model.Library;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Reading;
import braid.model.SelfCheck;
import braid.model.Timing;
import braid.schedule.Lane;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Supplier;

/// Runs a rank's work: on threads and shared memory of the host, or on a GPU. Streams, events and
/// executables may be passed only to the backend that created them.
public interface Backend extends SymmetricMemory.Allocator {
  /// Name of the backend, as in `BRAID_BACKEND`.
  String name();

  /// Default timing of iterations.
  Timing timing();

  /// Speed of the links for tables, or their name.
  String link();

  /// Simulates the link from the next copy on. Throws where links are real.
  void playLink(Link link);

  /// Returns the kind that is allocated for the requested one. Throws with the reason if an
  /// explicit kind is not available.
  MemoryKind resolve(MemoryKind requested);

  /// Reason why the library is not available; empty if it is.
  Optional<String> missing(Library library);

  /// Returns the library's collectives for a group. Collective: all members call it together.
  /// Throws with the reason if the library is not available.
  ///
  /// @param rendezvous supplies a new rendezvous at every call
  LibraryCollectives library(Library library, Supplier<Rendezvous> rendezvous);

  /// Creates a stream: a queue of work that runs asynchronously, also beside other streams.
  Stream stream(Lane lane);

  /// Brings the streams of one plan to rest: drops work that has not begun and waits for work that
  /// has, ending its waits for other ranks. Afterwards the streams are as new. Takes all of them
  /// together, since streams of a plan wait for each other.
  void rest(List<Stream> streams);

  /// Compiles the work that `enqueue` puts on the streams, without running it: algorithms are
  /// chosen, and memory and time of a first use are spent. Choosing reads the inputs, so they
  /// should hold their values.
  ///
  /// @param recorded true if a launch submits all work at once, as a graph where the backend has
  ///   them; false if it submits call by call
  Executable compile(List<Stream> streams, Runnable enqueue, boolean recorded);

  /// Allocates zeroed host memory on every member, mapped into each, for words that ranks signal
  /// by. Collective: all members call it together.
  SymmetricMemory control(String label, long bytesPerRank, Rendezvous rendezvous);

  /// Allocates memory of this rank alone, with undefined contents. Lives until it is closed.
  PrivateMemory allocate(long bytes);

  /// Access of the host to this backend's memory, except that of [#control].
  Inspection access();

  /// Allocates page-locked host memory for this rank alone, which the device copies directly. Lives
  /// until it is closed.
  PrivateMemory pinned(long bytes);

  /// Returns the right side in the form in which multiplications with left sides of type `left`
  /// read it.
  Operand operand(Matrix source, DType left);

  /// Precision of multiplications of these types.
  Precision precision(DType input, DType weight);

  /// Current readings by name: clocks, power, temperature, throttle reasons, and the backend's
  /// counters. Empty if none are available.
  SequencedMap<String, Long> readings();

  /// Current state of the hardware, to be kept beside a measurement that has just ended.
  Reading reading();

  /// Largest error of the last recorded spans' times against the process's clock.
  long clockErrorNanos();

  /// Further checks that a self-test runs on this machine.
  List<SelfCheck> selfChecks();

  /// Returns true if no stream has work. May be called from any thread.
  boolean atRest();

  /// Drops work that streams have not begun and waits for work that they have.
  void quiesce();

  /// Frees everything that this backend allocated. Idempotent.
  void close();
}
