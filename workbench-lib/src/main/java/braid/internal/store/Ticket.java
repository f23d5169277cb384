package braid.internal.store;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/// A rank's part in a meeting. `values` holds every member's value once all have come, or the
/// reason why it will not be so: a [braid.GroupAborted] or another [braid.BraidException]. `giveUp`
/// leaves the meeting; `values` then fails with the names of those who had not come.
public record Ticket(CompletableFuture<List<byte[]>> values, Runnable giveUp) {}
