package braid.internal.collective;

import braid.internal.rank.Need;
import braid.internal.rank.Waits;
import braid.model.Place;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Sends and receives messages of this rank, one at a time. Messages are not buffered: the receiver
/// copies from the sender's tensor, and the sender continues after that.
///
/// ```
/// sender     post ─────────────────────────── await read ─ goes on
/// receiver        await posted ─ copy ─ read ─┘
/// ```
final class Messages {
  /// Copies a message out of the sender's tensor; returns the reason if it cannot.
  @FunctionalInterface
  interface Receipt {
    Optional<String> take(MessageHeader sent);
  }

  /// The outcome of a message that was refused.
  record Refusal(String reason) {}

  private final Mailbox mailbox;
  private final Waits waits;
  private final Place place;
  private final List<Integer> ranks;
  private final String scope;
  private final int[] sent;
  private final int[] received;
  private int epoch;

  /// @param ranks the members' ranks in the world
  /// @param scope name of the group's collectives; see [Need]
  Messages(Mailbox mailbox, Place place, List<Integer> ranks, String scope, Waits waits) {
    this.mailbox = mailbox;
    this.waits = waits;
    this.place = place;
    this.ranks = ranks;
    this.scope = scope;
    this.sent = new int[place.size()];
    this.received = new int[place.size()];
  }

  /// Restarts the message numbers: they begin with 1 in each epoch.
  void beginEpoch(int current) {
    epoch = current;
    Arrays.fill(sent, 0);
    Arrays.fill(received, 0);
  }

  /// Posts a message to a rank.
  void post(MessageHeader header, int to) {
    mailbox.post(to, epoch, ++sent[to], header);
  }

  /// Waits until the latest message to a rank is read. Returns the refusal, if any.
  Optional<Refusal> awaitRead(MessageHeader header, int to) {
    int number = sent[to];
    await(to, () -> "to receive " + header, nanos -> mailbox.awaitRead(to, epoch, number, nanos));
    return mailbox.isRefused(to, epoch, number)
        ? Optional.of(new Refusal(mailbox.refusal(to)))
        : Optional.empty();
  }

  /// Waits for the next message from a rank and copies it. A message that does not fit is refused:
  /// it is consumed, and its sender gets the refusal.
  Optional<Refusal> receive(MessageHeader target, int from, Receipt receipt) {
    int number = ++received[from];
    await(
        from, () -> "to send " + target, nanos -> mailbox.awaitPosted(from, epoch, number, nanos));
    var header = mailbox.header(from);
    if (!header.fits(target)) {
      mailbox.refuse(
          from, epoch, number, "rank %d receives into %s".formatted(place.rank(), target));
      return Optional.of(mismatch(from, header));
    }
    var problem = receipt.take(header);
    if (problem.isPresent()) {
      mailbox.refuse(from, epoch, number, problem.get());
      return Optional.of(new Refusal(problem.get()));
    }
    mailbox.acknowledge(from, epoch, number);
    return Optional.empty();
  }

  /// Returns the refusal of a message whose shape or type differs from the receiving tensor's.
  static Refusal mismatch(int from, MessageHeader sent) {
    return new Refusal("rank %d sent %s; receive into %s".formatted(from, sent, sent.type()));
  }

  @FunctionalInterface
  private interface Attempt {
    boolean within(long nanos);
  }

  private void await(int peer, Supplier<String> purpose, Attempt attempt) {
    var need = new Need(purpose, true, scope, "", () -> List.of(ranks.get(peer)));
    var _ =
        waits.<Boolean>until(
            () -> "rank %d %s".formatted(peer, purpose.get()),
            need,
            nanos -> attempt.within(nanos) ? Boolean.TRUE : null);
  }
}
