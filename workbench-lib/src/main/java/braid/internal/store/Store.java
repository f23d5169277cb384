package braid.internal.store;

/// The one thing ranks share before they share memory.
public sealed interface Store extends AutoCloseable permits LocalStore, StoreClient {
  /// Brings this rank's value to the meeting, and does not wait.
  Ticket join(Meeting meeting, byte[] value);

  @Override
  void close();
}
