package braid.internal.store;

import braid.BraidException;
import braid.GroupAborted;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/// A rank's seat at a table in its own process: for ranks that are threads, and for a rank alone.
public final class LocalStore implements Store {
  private final MeetingTable table;
  private final int rank;

  public LocalStore(MeetingTable table, int rank) {
    this.table = table;
    this.rank = rank;
  }

  @Override
  public Ticket join(Meeting meeting, byte[] value) {
    Meeting.checkValue(meeting.label(), value);
    var values = new CompletableFuture<List<byte[]>>();
    // A thread's values must not be another thread's arrays.
    table.join(meeting, rank, value.clone(), reply -> complete(values, meeting.label(), reply));
    return new Ticket(values, () -> table.giveUp(meeting, rank));
  }

  static void complete(CompletableFuture<List<byte[]>> values, String label, Reply reply) {
    switch (reply) {
      case Reply.Values(var all) -> values.complete(all.stream().map(byte[]::clone).toList());
      case Reply.Failed(var message) -> values.completeExceptionally(new BraidException(message));
      case Reply.Aborted(var reason) ->
          values.completeExceptionally(new GroupAborted(label, reason));
    }
  }

  @Override
  public void close() {}
}
