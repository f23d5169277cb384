package braid.internal.library;

/// A library's collectives for one group. All ranks make the same calls in the same order.
public interface LibraryCollectives extends AutoCloseable {
  /// Condition that ranks must establish among themselves before a call.
  enum Precondition {
    /// None: the library waits for late ranks and can be aborted meanwhile.
    NONE,
    /// All ranks have arrived by the time the GPU reaches the call: the library either does not
    /// check or cannot be aborted while it waits.
    ARRIVAL_ON_STREAM,
    /// All ranks have arrived before the host makes the call: it connects ranks on the caller's
    /// thread, without a time limit.
    ARRIVAL_ON_HOST
  }

  /// Returns the precondition of the call. May meet the other ranks, after a failure.
  Precondition precondition(LibraryRequest request);

  /// Returns true if ranks must signal each other that their part is done.
  boolean needsCompletionSignal();

  /// Returns the work to enqueue. Throws if the library does not have the collective.
  LibraryCall call(LibraryRequest request);

  /// Returns the work of a multiplication with its collective. Only a library that multiplies has
  /// it ([braid.model.Transport#multiplies]).
  default LibraryCall call(LibraryProduct product) {
    throw new IllegalArgumentException("this library multiplies nothing: " + product);
  }

  /// Aborts calls in flight, because ranks may be at different calls. Not usable afterwards.
  void abort();

  /// Ends this rank's use of the library, without waiting for other ranks. Not usable afterwards.
  @Override
  void close();
}
