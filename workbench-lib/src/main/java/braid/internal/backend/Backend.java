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

/// The place of a rank's work: threads and shared memory of the host, or a GPU. Streams, events and
/// executables of a backend are given back to that backend only.
public interface Backend extends SymmetricMemory.Allocator {
  /// Its name as `BRAID_BACKEND` knows it.
  String name();

  /// How iterations are timed by default.
  Timing timing();

  /// The speed of the links as it goes into tables, or the links' name.
  String link();

  /// Plays that link from the next copy on; where links are real it is an error that says so.
  void playLink(Link link);

  /// The kind that is made where that one is asked for; an explicit kind that cannot be had is an
  /// error that says why.
  MemoryKind resolve(MemoryKind requested);

  /// Why that library cannot be had here; empty where it can.
  Optional<String> missing(Library library);

  /// That library's collectives for a group. All members ask together, and meet; one that cannot be
  /// had is an error that says why.
  ///
  /// @param rendezvous a new one each time it is asked
  LibraryCollectives library(Library library, Supplier<Rendezvous> rendezvous);

  /// A queue of work that goes on beside the caller. Several may run at once.
  Stream stream(Lane lane);

  /// Brings the streams of one plan to rest: drops what has not begun, and waits for what has,
  /// ending its waits for other ranks where they do not end by themselves. Streams of a plan wait
  /// for each other, so none comes to rest alone. Then they are as new.
  void rest(List<Stream> streams);

  /// Compiles what that lays out on those streams, without doing it: everything is decided, and
  /// memory or time of a first use is spent. The numbers it will work on should be there.
  ///
  /// @param recorded whether a launch gives out the whole at once, as a graph where the backend has
  ///   them; else it gives out piece by piece
  Executable compile(List<Stream> streams, Runnable enqueue, boolean recorded);

  /// Memory of the host on every member, mapped into each, for words by which ranks tell each other
  /// where they are; zeroed. All members call it together.
  SymmetricMemory control(String label, long bytesPerRank, Rendezvous rendezvous);

  /// Memory of this rank alone; what is in it at first is not defined. It lives until it is closed.
  PrivateMemory allocate(long bytes);

  /// How the host gets at numbers in this backend's memory, all of it but [#control].
  Inspection access();

  /// Memory of the host for this rank alone, which does not move, so that the device copies it
  /// without a detour. It lives until it is closed.
  PrivateMemory pinned(long bytes);

  /// The form in which multiplications of left sides of that type read their right side.
  Operand operand(Matrix source, DType left);

  /// How exactly numbers of that type are multiplied.
  Precision precision(DType input, DType weight);

  /// What the hardware is at just now, by name: clocks, power, temperature, and what holds it back;
  /// and what the backend counts. Nothing where there is nothing of the kind.
  SequencedMap<String, Long> readings();

  /// What the hardware is at just now, to stand beside what was measured just before.
  Reading reading();

  /// How far the times of the spans that were recorded last may be from the process's clock.
  long clockErrorNanos();

  /// What else a self-test is to hold this machine to.
  List<SelfCheck> selfChecks();

  /// Whether no stream has anything to do. Asked from any thread.
  boolean atRest();

  /// Drops what streams have not begun and waits for what they have.
  void quiesce();

  /// Frees everything made here. Twice is harmless.
  void close();
}
