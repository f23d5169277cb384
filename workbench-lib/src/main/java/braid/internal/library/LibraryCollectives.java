package braid.internal.library;

/// A library's collectives for one group. All ranks ask it for the same in the same order.
public interface LibraryCollectives {
  /// What ranks must know of each other before a call.
  enum Precondition {
    /// Nothing: the library waits for those that come late, and can be stopped.
    NONE,
    /// That all have come, by the time the GPU comes to the call: the library either does not look
    /// or cannot be stopped while it waits.
    ARRIVAL_ON_STREAM,
    /// That all have come, before the call is made: it sets up something between ranks on the
    /// caller's thread, and has no time limit.
    ARRIVAL_ON_HOST
  }

  /// What is needed before that call. It may meet the other ranks, after a failure.
  Precondition precondition(LibraryRequest request);

  /// Whether ranks must tell each other when their part of it is done.
  boolean needsCompletionSignal();

  /// What to put on a stream. What the library cannot make is an error.
  LibraryCall call(LibraryRequest request);

  /// Stops what is on its way, because ranks may be at different calls. It is of no use after that.
  void abort();
}
