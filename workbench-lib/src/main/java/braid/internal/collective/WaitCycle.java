package braid.internal.collective;

import braid.model.Place;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;

/// Finds ranks that wait for each other in a circle, this one among them: such a wait never ends,
/// and there is no reason to sit it out.
///
/// Each rank says what it waits for, and whether that has come is seen from the mailbox. A circle
/// is looked at twice. What a rank said twice the same, and had not come either time, it waited for
/// in between without a break; so between the two looks all of the circle stood at once, and then
/// nobody in it can go on.
final class WaitCycle {
  private final Mailbox mailbox;
  private final Place place;

  WaitCycle(Mailbox mailbox, Place place) {
    this.mailbox = mailbox;
    this.place = place;
  }

  /// What is wrong and what to do; nothing where this rank is in no circle.
  ///
  /// @param collectives that this rank has come to in this epoch
  Optional<String> found(int epoch, int collectives) {
    var first = circle(epoch, collectives);
    return first.isEmpty() || !first.equals(circle(epoch, collectives))
        ? Optional.empty()
        : Optional.of(described(first));
  }

  /// By rank, from this one on, where each waits for the next and the last for this; empty where
  /// somebody does not.
  private SequencedMap<Integer, WaitState> circle(int epoch, int collectives) {
    var circle = new LinkedHashMap<Integer, WaitState>();
    int rank = place.rank();
    while (!circle.containsKey(rank)) {
      var standing = mailbox.standing(rank);
      if (!waits(rank, standing, epoch, collectives)) {
        return new LinkedHashMap<>();
      }
      circle.put(rank, standing);
      rank = standing.kind() == WaitState.Kind.COLLECTIVE ? place.rank() : standing.peer();
    }
    // Others may wait for each other without this rank: they find it out themselves.
    return rank == place.rank() ? circle : new LinkedHashMap<>();
  }

  private boolean waits(int rank, WaitState standing, int epoch, int collectives) {
    int number = standing.number();
    int peer = standing.peer();
    return switch (standing.kind()) {
      case NOWHERE -> false;
      case SENDS -> standing.isOf(epoch) && !mailbox.isRead(rank, peer, epoch, number);
      case RECEIVES -> standing.isOf(epoch) && !mailbox.isPosted(rank, peer, epoch, number);
      // It waits for this rank where this rank has not come to it.
      case COLLECTIVE -> standing.isOf(epoch) && number > collectives;
    };
  }

  private static String described(SequencedMap<Integer, WaitState> circle) {
    var waits =
        circle.entrySet().stream()
            .map(each -> each.getValue().text(each.getKey()))
            .collect(Collectors.joining(", "));
    return "ranks wait for each other: %s; %s".formatted(waits, remedy(circle));
  }

  private static String remedy(SequencedMap<Integer, WaitState> circle) {
    return circle.values().stream().anyMatch(each -> each.kind() == WaitState.Kind.COLLECTIVE)
        ? "receive every message before the next collective"
        : "let every rank say sendReceive(x, to, y, from)";
  }
}
