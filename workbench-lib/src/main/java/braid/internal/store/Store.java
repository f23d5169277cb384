package braid.internal.store;

/// The place where ranks meet before they share memory.
public sealed interface Store extends AutoCloseable permits LocalStore, StoreClient {
  /// Joins the meeting with this rank's value, without waiting.
  Ticket join(Meeting meeting, byte[] value);

  @Override
  void close();
}
