package braid.internal.store;

import braid.internal.rank.BlockedWait;
import java.util.concurrent.CompletableFuture;

/// A rank's access to a meeting table in its own process: for ranks that are threads, and for a
/// single rank.
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
    var reply = new CompletableFuture<Reply>();
    // Copied, so that threads share no arrays.
    table.join(meeting, rank, value.clone(), each -> reply.complete(copy(each)));
    return new Ticket(
        reply, () -> table.giveUp(meeting, rank), departed -> table.departed(meeting, departed));
  }

  private static Reply copy(Reply reply) {
    return reply instanceof Reply.Values(var all)
        ? new Reply.Values(all.stream().map(byte[]::clone).toList())
        : reply;
  }

  @Override
  public CompletableFuture<BlockedWait.Answer> report(BlockedWait wait) {
    return CompletableFuture.completedFuture(table.report(rank, wait));
  }

  @Override
  public void close() {}
}
