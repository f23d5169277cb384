package braid.internal.collective;

import braid.model.Place;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;

/// Detects cycles of ranks that wait for each other, this rank among them. Such a wait never ends,
/// so it fails at once.
///
/// Each rank publishes its [WaitState], and the mailbox shows whether the wait is over. A cycle is
/// read twice. A rank with the same state in both reads, not fulfilled in either, waited without a
/// break in between. So all ranks of the cycle waited at the same time, and none of them can
/// continue.
final class WaitCycle {
  private final Mailbox mailbox;
  private final Place place;

  WaitCycle(Mailbox mailbox, Place place) {
    this.mailbox = mailbox;
    this.place = place;
  }

  /// Describes the cycle that this rank is in, with the remedy; empty if it is in none.
  ///
  /// @param collectives number of collectives that this rank has reached in this epoch
  Optional<String> find(int epoch, int collectives) {
    var first = cycle(epoch, collectives);
    return first.isEmpty() || !first.equals(cycle(epoch, collectives))
        ? Optional.empty()
        : Optional.of(describe(first));
  }

  /// Returns the states of the cycle by rank, starting with this rank; empty if there is no cycle.
  private SequencedMap<Integer, WaitState> cycle(int epoch, int collectives) {
    var cycle = new LinkedHashMap<Integer, WaitState>();
    int rank = place.rank();
    while (!cycle.containsKey(rank)) {
      var state = mailbox.state(rank);
      if (!waits(rank, state, epoch, collectives)) {
        return new LinkedHashMap<>();
      }
      cycle.put(rank, state);
      rank = state.operation() == WaitState.Operation.COLLECTIVE ? place.rank() : state.peer();
    }
    // Ranks that wait for each other without this one detect their own cycle.
    return rank == place.rank() ? cycle : new LinkedHashMap<>();
  }

  private boolean waits(int rank, WaitState state, int epoch, int collectives) {
    int number = state.number();
    int peer = state.peer();
    return switch (state.operation()) {
      case NONE -> false;
      case SEND -> state.isOf(epoch) && !mailbox.isRead(rank, peer, epoch, number);
      case RECEIVE -> state.isOf(epoch) && !mailbox.isPosted(rank, peer, epoch, number);
      // The peer waits for this rank only if this rank has not reached that collective.
      case COLLECTIVE -> state.isOf(epoch) && number > collectives;
    };
  }

  private static String describe(SequencedMap<Integer, WaitState> cycle) {
    var waits =
        cycle.entrySet().stream()
            .map(each -> each.getValue().text(each.getKey()))
            .collect(Collectors.joining(", "));
    return "ranks wait for each other: %s; %s".formatted(waits, remedy(cycle));
  }

  private static String remedy(SequencedMap<Integer, WaitState> cycle) {
    return cycle.values().stream()
            .anyMatch(each -> each.operation() == WaitState.Operation.COLLECTIVE)
        ? "receive every message before the next collective"
        : "call sendReceive(x, to, y, from) on every rank";
  }
}
