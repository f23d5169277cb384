package braid.internal.store;

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

/// The meetings going on. One is gone from the table as soon as all its members have their reply,
/// so the table is empty whenever nobody waits.
///
/// A meeting that failed (its members call different things, or one gave up) stays until every
/// member has been told; what is still there when a new epoch begins is dropped then.
public final class MeetingTable {
  private final Map<String, Entry> entries = new HashMap<>();
  private final TreeSet<Integer> left = new TreeSet<>();
  private int epoch;
  private @Nullable String aborted;

  private static final class Entry {
    final Meeting meeting;
    final int firstRank;
    final Map<Integer, byte[]> values = new TreeMap<>();
    final Map<Integer, Consumer<Reply>> waiting = new TreeMap<>();
    final TreeSet<Integer> told = new TreeSet<>();
    @Nullable Reply failure;

    Entry(Meeting meeting, int firstRank) {
      this.meeting = meeting;
      this.firstRank = firstRank;
    }

    List<Integer> missing() {
      return meeting.members().stream()
          .filter(rank -> !values.containsKey(rank) && !told.contains(rank))
          .toList();
    }

    boolean over() {
      return told.containsAll(meeting.members());
    }
  }

  /// Replies are handed out after the lock is left: one that is slow to take its reply holds up
  /// nobody else's meeting.
  private final class Deliveries {
    private final List<Runnable> pending = new ArrayList<>();

    void tell(Entry entry, Reply reply) {
      entry.waiting.forEach(
          (rank, taker) -> {
            entry.told.add(rank);
            pending.add(() -> taker.accept(reply));
          });
      entry.waiting.clear();
      if (entry.over()) {
        entries.remove(entry.meeting.key(), entry);
      }
    }

    void deliver() {
      pending.forEach(Runnable::run);
    }
  }

  /// Brings `rank`'s value; `taker` gets the reply, at once or when the last member comes.
  void join(Meeting meeting, int rank, byte[] value, Consumer<Reply> taker) {
    var deliveries = new Deliveries();
    synchronized (this) {
      var refusal = enter(meeting, rank, deliveries);
      if (refusal != null) {
        deliveries.pending.add(() -> taker.accept(refusal));
      } else {
        seat(meeting, rank, value, taker, deliveries);
      }
    }
    deliveries.deliver();
  }

  private @Nullable Reply enter(Meeting meeting, int rank, Deliveries deliveries) {
    if (!meeting.members().contains(rank)) {
      return new Reply.Failed(
          "%s is for ranks %s but rank %d came; call it on members only"
              .formatted(meeting.label(), names(meeting.members()), rank));
    }
    if (meeting.epoch() < epoch) {
      return new Reply.Aborted("the other ranks have gone on to a later cell");
    }
    if (meeting.epoch() > epoch) {
      epoch = meeting.epoch();
      aborted = null;
      failAll(new Reply.Aborted("the other ranks have gone on to a later cell"), deliveries);
      entries.clear();
    }
    return aborted == null ? null : new Reply.Aborted(aborted);
  }

  private void seat(
      Meeting meeting, int rank, byte[] value, Consumer<Reply> taker, Deliveries deliveries) {
    var entry = entries.computeIfAbsent(meeting.key(), key -> new Entry(meeting, rank));
    if (entry.values.containsKey(rank)) {
      deliveries.pending.add(
          () ->
              taker.accept(
                  new Reply.Failed(
                      "rank %d came to %s twice; two of its threads use one group"
                          .formatted(rank, meeting.label()))));
      return;
    }
    entry.values.put(rank, value);
    entry.waiting.put(rank, taker);
    if (entry.failure == null) {
      entry.failure = mismatch(entry, meeting, rank);
    }
    if (entry.failure == null) {
      entry.failure = absence(entry);
    }
    if (entry.failure != null) {
      deliveries.tell(entry, entry.failure);
    } else if (entry.values.size() == meeting.members().size()) {
      deliveries.tell(
          entry, new Reply.Values(meeting.members().stream().map(entry.values::get).toList()));
    }
  }

  private static @Nullable Reply mismatch(Entry entry, Meeting meeting, int rank) {
    var first = entry.meeting;
    if (first.label().equals(meeting.label()) && first.members().equals(meeting.members())) {
      return null;
    }
    boolean sameRanks = first.members().equals(meeting.members());
    return new Reply.Failed(
        "all ranks of a group must make the same calls in the same order but rank %d called %s"
                .formatted(entry.firstRank, described(first, sameRanks))
            + " where rank %d called %s".formatted(rank, described(meeting, sameRanks)));
  }

  private static String described(Meeting meeting, boolean sameRanks) {
    return sameRanks ? meeting.label() : meeting.label() + " of ranks " + names(meeting.members());
  }

  private @Nullable Reply absence(Entry entry) {
    var gone = entry.missing().stream().filter(left::contains).toList();
    return gone.isEmpty()
        ? null
        : new Reply.Aborted("%s left before it came".formatted(ranks(gone)));
  }

  /// `rank` waits no longer: it is told who had not come. For all others of that meeting, those who
  /// come later included, that is a consequence.
  void giveUp(Meeting meeting, int rank) {
    var deliveries = new Deliveries();
    synchronized (this) {
      var entry = entries.get(meeting.key());
      if (entry != null && meeting.epoch() == epoch && entry.waiting.containsKey(rank)) {
        var missing = ranks(entry.missing());
        var taker = entry.waiting.remove(rank);
        entry.told.add(rank);
        entry.failure =
            new Reply.Aborted("rank %d gave up waiting for %s".formatted(rank, missing));
        deliveries.pending.add(
            () ->
                taker.accept(
                    new Reply.Failed(
                        "%s did not come to %s and rank %d gave up; see what kept them, or raise"
                                .formatted(missing, meeting.label(), rank)
                            + " BRAID_TIMEOUT_SECONDS")));
        deliveries.tell(entry, entry.failure);
      }
    }
    deliveries.deliver();
  }

  /// Ends that meeting for all who wait in it, if all who are missing have departed: they have
  /// ended the cell in which the others wait. Does nothing if one of the missing may still come.
  void departed(Meeting meeting, Set<Integer> gone) {
    var deliveries = new Deliveries();
    synchronized (this) {
      var entry = entries.get(meeting.key());
      if (entry != null && meeting.epoch() == epoch && entry.failure == null) {
        var missing = entry.missing();
        if (!missing.isEmpty() && gone.containsAll(missing)) {
          entry.failure = new Reply.Departed(missing);
          deliveries.tell(entry, entry.failure);
        }
      }
    }
    deliveries.deliver();
  }

  /// `rank` will come to no meeting any more. Those it is missing from fail now.
  void leave(int rank) {
    var deliveries = new Deliveries();
    synchronized (this) {
      left.add(rank);
      for (var entry : List.copyOf(entries.values())) {
        if (entry.failure == null) {
          entry.failure = absence(entry);
        }
        entry.waiting.remove(rank);
        entry.told.add(rank);
        if (entry.failure != null) {
          deliveries.tell(entry, entry.failure);
        }
      }
    }
    deliveries.deliver();
  }

  /// `rank` is there, perhaps again after a restart.
  void arrive(int rank) {
    synchronized (this) {
      left.remove(rank);
    }
  }

  /// Ends every meeting, and every one that is begun before the next epoch.
  public void abort(String reason) {
    var deliveries = new Deliveries();
    synchronized (this) {
      aborted = reason;
      failAll(new Reply.Aborted(reason), deliveries);
      entries.clear();
    }
    deliveries.deliver();
  }

  private void failAll(Reply reply, Deliveries deliveries) {
    for (var entry : List.copyOf(entries.values())) {
      deliveries.tell(entry, reply);
    }
  }

  /// Meetings that somebody waits in or has still to be told about.
  public synchronized int pending() {
    return entries.size();
  }

  private static String ranks(List<Integer> ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + names(ranks);
  }

  private static String names(List<Integer> ranks) {
    return ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }
}
