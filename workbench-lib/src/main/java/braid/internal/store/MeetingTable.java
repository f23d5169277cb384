package braid.internal.store;

import braid.internal.rank.BlockedWait;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The open meetings. A meeting is removed as soon as all its members have their reply, so the
/// table is empty whenever no rank waits.
///
/// A meeting that failed (its members made different calls, or one gave up) stays until every
/// member has its reply; a new epoch drops the remaining ones.
public final class MeetingTable {
  private final Map<String, OpenMeeting> open = new HashMap<>();
  private final TreeSet<Integer> disconnected = new TreeSet<>();
  private final WaitGraph waits = new WaitGraph();
  private int epoch;
  private @Nullable String aborted;

  private static final class OpenMeeting {
    final Meeting meeting;
    final int firstRank;
    final Map<Integer, byte[]> values = new TreeMap<>();
    final Map<Integer, Consumer<Reply>> waiting = new TreeMap<>();
    final TreeSet<Integer> replied = new TreeSet<>();
    @Nullable Reply failure;

    OpenMeeting(Meeting meeting, int firstRank) {
      this.meeting = meeting;
      this.firstRank = firstRank;
    }

    List<Integer> missing() {
      return meeting.members().stream()
          .filter(rank -> !values.containsKey(rank) && !replied.contains(rank))
          .toList();
    }

    boolean isDone() {
      return replied.containsAll(meeting.members());
    }
  }

  /// Replies to be delivered after the lock is released, so that a slow receiver does not delay
  /// other meetings.
  private final class Deliveries {
    private final List<Runnable> pending = new ArrayList<>();

    void reply(OpenMeeting current, Reply reply) {
      current.waiting.forEach(
          (rank, receiver) -> {
            current.replied.add(rank);
            pending.add(() -> receiver.accept(reply));
          });
      current.waiting.clear();
      if (current.isDone()) {
        open.remove(current.meeting.key(), current);
      }
    }

    void deliver() {
      pending.forEach(Runnable::run);
    }
  }

  /// Adds `rank`'s value. `receiver` gets the reply, at once or when the last member has joined.
  void join(Meeting meeting, int rank, byte[] value, Consumer<Reply> receiver) {
    var deliveries = new Deliveries();
    synchronized (this) {
      var refusal = admit(meeting, rank, deliveries);
      if (refusal != null) {
        deliveries.pending.add(() -> receiver.accept(refusal));
      } else {
        add(meeting, rank, value, receiver, deliveries);
      }
    }
    deliveries.deliver();
  }

  private @Nullable Reply admit(Meeting meeting, int rank, Deliveries deliveries) {
    if (!meeting.members().contains(rank)) {
      return new Reply.Failed(
          "%s is for ranks %s but rank %d called it; call it on members only"
              .formatted(meeting.label(), names(meeting.members()), rank));
    }
    if (meeting.epoch() < epoch) {
      return new Reply.Aborted("the other ranks have gone on to a later cell");
    }
    if (meeting.epoch() > epoch) {
      epoch = meeting.epoch();
      aborted = null;
      failAll(new Reply.Aborted("the other ranks have gone on to a later cell"), deliveries);
      open.clear();
    }
    return aborted == null ? null : new Reply.Aborted(aborted);
  }

  private void add(
      Meeting meeting, int rank, byte[] value, Consumer<Reply> receiver, Deliveries deliveries) {
    var current = open.computeIfAbsent(meeting.key(), key -> new OpenMeeting(meeting, rank));
    if (current.values.containsKey(rank)) {
      deliveries.pending.add(
          () ->
              receiver.accept(
                  new Reply.Failed(
                      "rank %d joined %s twice; use a group on one thread of a rank only"
                          .formatted(rank, meeting.label()))));
      return;
    }
    current.values.put(rank, value);
    current.waiting.put(rank, receiver);
    if (current.failure == null) {
      current.failure = mismatch(current, meeting, rank);
    }
    if (current.failure == null) {
      current.failure = disconnection(current);
    }
    if (current.failure != null) {
      deliveries.reply(current, current.failure);
    } else if (current.values.size() == meeting.members().size()) {
      deliveries.reply(
          current, new Reply.Values(meeting.members().stream().map(current.values::get).toList()));
    }
  }

  private static @Nullable Reply mismatch(OpenMeeting current, Meeting meeting, int rank) {
    var first = current.meeting;
    if (first.label().equals(meeting.label()) && first.members().equals(meeting.members())) {
      return null;
    }
    boolean sameRanks = first.members().equals(meeting.members());
    return new Reply.Different(
        "all ranks of a group must make the same calls in the same order but rank %d called %s"
                .formatted(current.firstRank, described(first, sameRanks))
            + " where rank %d called %s".formatted(rank, described(meeting, sameRanks)));
  }

  private static String described(Meeting meeting, boolean sameRanks) {
    return sameRanks ? meeting.label() : meeting.label() + " of ranks " + names(meeting.members());
  }

  private @Nullable Reply disconnection(OpenMeeting current) {
    var absent = current.missing().stream().filter(disconnected::contains).toList();
    return absent.isEmpty()
        ? null
        : new Reply.Aborted("%s disconnected before joining".formatted(ranks(absent)));
  }

  /// Stops `rank`'s wait. Its reply names the missing ranks; all other members, also those that
  /// join later, get a reply that names this rank as the cause.
  void giveUp(Meeting meeting, int rank) {
    var deliveries = new Deliveries();
    synchronized (this) {
      var current = open.get(meeting.key());
      if (current != null && meeting.epoch() == epoch && current.waiting.containsKey(rank)) {
        var missing = ranks(current.missing());
        var receiver = current.waiting.remove(rank);
        current.replied.add(rank);
        current.failure =
            new Reply.Aborted("rank %d gave up waiting for %s".formatted(rank, missing));
        deliveries.pending.add(
            () ->
                receiver.accept(
                    new Reply.Failed(
                        "%s did not join %s and rank %d gave up; check what delayed them, or raise"
                                .formatted(missing, meeting.label(), rank)
                            + " BRAID_TIMEOUT_SECONDS")));
        deliveries.reply(current, current.failure);
      }
    }
    deliveries.deliver();
  }

  /// Ends the meeting for all waiting members if all missing ones have departed: they have ended
  /// the cell in which the others wait. Does nothing if a missing rank may still join.
  void departed(Meeting meeting, Set<Integer> departed) {
    var deliveries = new Deliveries();
    synchronized (this) {
      var current = open.get(meeting.key());
      if (current != null && meeting.epoch() == epoch && current.failure == null) {
        var missing = current.missing();
        if (!missing.isEmpty() && departed.containsAll(missing)) {
          current.failure = new Reply.Departed(missing);
          deliveries.reply(current, current.failure);
        }
      }
    }
    deliveries.deliver();
  }

  /// Takes a report on a wait of `rank` that lasts, in a meeting or elsewhere.
  synchronized BlockedWait.Answer report(int rank, BlockedWait wait) {
    return waits.report(rank, wait, this::missing);
  }

  private List<Integer> missing(int rank, BlockedWait wait) {
    var current = open.get(wait.meeting());
    return current == null
        ? wait.missing()
        : current.waiting.containsKey(rank) ? current.missing() : List.of();
  }

  /// Notes that `rank` has disconnected. Meetings that it is missing from fail.
  void disconnected(int rank) {
    var deliveries = new Deliveries();
    synchronized (this) {
      disconnected.add(rank);
      for (var current : List.copyOf(open.values())) {
        if (current.failure == null) {
          current.failure = disconnection(current);
        }
        current.waiting.remove(rank);
        current.replied.add(rank);
        if (current.failure != null) {
          deliveries.reply(current, current.failure);
        }
      }
    }
    deliveries.deliver();
  }

  /// Notes that `rank` is connected, possibly again after a restart.
  void connected(int rank) {
    synchronized (this) {
      disconnected.remove(rank);
    }
  }

  /// Ends all meetings, and all that begin before the next epoch.
  public void abort(String reason) {
    var deliveries = new Deliveries();
    synchronized (this) {
      aborted = reason;
      failAll(new Reply.Aborted(reason), deliveries);
      open.clear();
    }
    deliveries.deliver();
  }

  private void failAll(Reply reply, Deliveries deliveries) {
    for (var current : List.copyOf(open.values())) {
      deliveries.reply(current, reply);
    }
  }

  /// Number of meetings in which a rank waits or is owed a reply.
  public synchronized int pending() {
    return open.size();
  }

  private static String ranks(List<Integer> ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + names(ranks);
  }

  private static String names(List<Integer> ranks) {
    return ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }
}
