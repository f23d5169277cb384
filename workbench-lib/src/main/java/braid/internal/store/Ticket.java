package braid.internal.store;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/// A rank's part in a meeting. `reply` comes once all members have come, or when that cannot be any
/// more. `giveUp` leaves the meeting; the reply then names those who had not come. `departed` ends
/// the meeting for all who wait in it, if only ranks of that set are missing.
public record Ticket(
    CompletableFuture<Reply> reply, Runnable giveUp, Consumer<Set<Integer>> departed) {}
