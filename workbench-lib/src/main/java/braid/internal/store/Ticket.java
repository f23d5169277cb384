package braid.internal.store;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/// A rank's part in a meeting. `reply` completes once all members have joined, or cannot any more.
/// `giveUp` leaves the meeting; the reply then names the missing members. `departed` ends the
/// meeting for all waiting members if only ranks of the set are missing.
public record Ticket(
    CompletableFuture<Reply> reply, Runnable giveUp, Consumer<Set<Integer>> departed) {}
