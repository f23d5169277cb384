package braid.internal.store;

import braid.internal.rank.BlockedWait;
import java.util.concurrent.CompletableFuture;

/// The place where ranks meet before they share memory.
public sealed interface Store extends AutoCloseable permits LocalStore, StoreClient {
  /// Joins the meeting with this rank's value, without waiting.
  Ticket join(Meeting meeting, byte[] value);

  /// Reports a wait of this rank that lasts.
  CompletableFuture<BlockedWait.Answer> report(BlockedWait wait);

  @Override
  void close();
}
