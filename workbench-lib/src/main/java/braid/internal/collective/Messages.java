package braid.internal.collective;

import braid.internal.rank.Waits;
import braid.model.BraidException;
import braid.model.Place;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// This rank's messages to and from others, one at a time. Nothing is buffered: the receiver copies
/// out of the sender's tensor, and the sender goes on when it has.
///
/// ```
/// sender     post ─────────────────────────── await read ─ goes on
/// receiver        await posted ─ copy ─ read ─┘
/// ```
final class Messages {
  /// Copies what was sent, or says why it cannot.
  @FunctionalInterface
  interface Receipt {
    Optional<String> take(MessageHeader sent);
  }

  /// How a message ended that was not taken.
  record Refusal(String why) {}

  private final Mailbox mailbox;
  private final WaitCycle standstill;
  private final Waits waits;
  private final Place place;
  private final List<Integer> ranks;
  private final int[] sent;
  private final int[] received;
  private int epoch;

  /// @param ranks the members' ranks in the world
  Messages(Mailbox mailbox, Place place, List<Integer> ranks, Waits waits) {
    this.mailbox = mailbox;
    this.standstill = new WaitCycle(mailbox, place);
    this.waits = waits;
    this.place = place;
    this.ranks = ranks;
    this.sent = new int[place.size()];
    this.received = new int[place.size()];
  }

  /// Messages are numbered from 1 in each epoch.
  void beginEpoch(int current) {
    epoch = current;
    Arrays.fill(sent, 0);
    Arrays.fill(received, 0);
  }

  /// Lets a rank see what lies here for it.
  void post(MessageHeader letter, int to) {
    mailbox.post(to, epoch, ++sent[to], letter);
  }

  /// Waits until what was posted last is read.
  Optional<Refusal> awaitRead(MessageHeader letter, int to, int collectives) {
    int number = sent[to];
    await(
        new WaitState(WaitState.Kind.SENDS, epoch, to, number),
        () -> "rank %d to receive %s".formatted(to, letter),
        nanos -> mailbox.awaitRead(to, epoch, number, nanos),
        collectives);
    return mailbox.isRefused(to, epoch, number)
        ? Optional.of(new Refusal(mailbox.refusal(to)))
        : Optional.empty();
  }

  /// Waits for the next message of that rank and takes it; one that does not fit is gone too, and
  /// its sender is told.
  Optional<Refusal> receive(MessageHeader into, int from, int collectives, Receipt receipt) {
    int number = ++received[from];
    await(
        new WaitState(WaitState.Kind.RECEIVES, epoch, from, number),
        () -> "rank %d to send %s".formatted(from, into),
        nanos -> mailbox.awaitPosted(from, epoch, number, nanos),
        collectives);
    var letter = mailbox.letter(from);
    if (!letter.fits(into)) {
      mailbox.refuse(from, epoch, number, "rank %d receives into %s".formatted(place.rank(), into));
      return Optional.of(misfit(from, letter));
    }
    var trouble = receipt.take(letter);
    if (trouble.isPresent()) {
      mailbox.refuse(from, epoch, number, trouble.get());
      return Optional.of(new Refusal(trouble.get()));
    }
    mailbox.acknowledge(from, epoch, number);
    return Optional.empty();
  }

  /// What was sent has another shape or type than what it is received into.
  static Refusal misfit(int from, MessageHeader sent) {
    return new Refusal("rank %d sent %s; receive into %s".formatted(from, sent, sent.type()));
  }

  @FunctionalInterface
  private interface Look {
    boolean within(long nanos);
  }

  private void await(WaitState standing, Supplier<String> what, Look look, int collectives) {
    mailbox.stand(standing);
    var _ =
        waits.<Boolean>until(
            what,
            () -> List.of(ranks.get(standing.peer())),
            nanos -> {
              if (look.within(nanos)) {
                return Boolean.TRUE;
              }
              var circle = standstill.found(epoch, collectives);
              if (circle.isPresent()) {
                throw new BraidException(circle.get());
              }
              return null;
            });
    // Where the wait failed this rank goes on standing there: the others of the circle see it too.
    mailbox.stand(WaitState.NOWHERE);
  }
}
