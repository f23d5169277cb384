package braid.schedule.plan;

import braid.model.BraidException;
import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.lang.ref.SoftReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.IntFunction;

/// Adds the signals, waits and marks that the accesses of a schedule's steps require, and no more:
/// an order that lanes or other waits imply needs none.
///
/// An order between two ranks becomes a signal after the earlier step, on its lane, and a wait
/// before the later one. An order between two lanes of a rank becomes a mark and an after. Each
/// signal raises a word of the rank that waits for it:
///
/// | flag | raised | meaning |
/// |---|---|---|
/// | begun | as the iteration begins | the caller's memory may be used |
/// | landed | after a write | the rows may be read |
/// | free | after a read | the rows may be overwritten |
/// | read | after the last use of the rank's memory | the iteration may end |
///
/// The words are numbered by the rank that raises them, then by its steps. All ranks plan the same
/// steps, hence number alike.
public final class Ordering {
  static final String FREE = Kind.FREE.toString();

  /// Names of the flags.
  static final List<String> FLAGS = Arrays.stream(Kind.values()).map(Kind::toString).toList();

  private enum Kind {
    BEGUN,
    LANDED,
    FREE,
    READ;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final Schedule.Builder builder;
  private final IntFunction<Program> programs;

  /// Steps of programs that were read for their conflicts, by rank, until they are needed again.
  private final SoftReference<Map<Integer, List<Step>>> read;

  private final int ranks;
  private final Events events;
  private final Lane edge;

  /// By event, the links to the events that it waits for.
  private final int[][] waits;

  /// By event, the signals after it by the distance of their receivers.
  private final Map<Integer, SortedMap<Integer, Raised>> raised = new TreeMap<>();

  /// Events that other lanes of the rank wait for.
  private final BitSet marked = new BitSet();

  private final Map<Kind, Flag> flags = new EnumMap<>(Kind.class);

  /// A signal to a rank.
  ///
  /// @param number number among those of the kind that its rank sends to the receiver
  /// @param last true if only the end of the receiver's iteration waits for it
  private record Raised(Kind kind, int number, boolean last) {
    private Raised and(Raised more) {
      var first = kind.compareTo(more.kind) < 0 ? kind : more.kind;
      return new Raised(first, number, last && more.last);
    }
  }

  private Ordering(Schedule.Builder builder, int ranks, IntFunction<Program> programs) {
    this.builder = builder;
    this.programs = programs;
    this.ranks = ranks;
    this.events = new Events(builder.lanes(), ranks);
    var conflicts = new Conflicts(events, programs, builder.rotated());
    this.read = new SoftReference<>(conflicts.steps());
    this.waits = new Reduction(events, conflicts).kept();
    this.edge = events.edge();
    number();
  }

  /// Returns a schedule with the steps of some programs, in their order.
  public static Schedule of(Schedule.Builder builder, int ranks, IntFunction<Program> programs) {
    return builder.stepsByRank(new Ordering(builder, ranks, programs)::steps);
  }

  private void number() {
    for (int event = 0; event < events.size(); event++) {
      for (int link : waits[event]) {
        int earlier = EventPairs.earlier(link);
        int distance = distance(events.rank(earlier), events.rank(event));
        int from = events.representative(earlier);
        if (distance == 0) {
          marked.set(from);
        } else {
          var signal = new Raised(kind(link, event), 0, events.isEnd(event));
          raised.computeIfAbsent(from, _ -> new TreeMap<>()).merge(distance, signal, Raised::and);
        }
      }
    }
    var counts = new HashMap<Integer, EnumMap<Kind, int[]>>();
    var most = new EnumMap<Kind, Integer>(Kind.class);
    raised.forEach(
        (event, signals) -> {
          var ofRank = counts.computeIfAbsent(events.rank(event), _ -> new EnumMap<>(Kind.class));
          signals.replaceAll(
              (distance, signal) -> {
                var kind = signal.kind();
                var count = ofRank.computeIfAbsent(kind, _ -> new int[ranks]);
                int number = count[distance]++;
                most.merge(kind, number + 1, Math::max);
                return new Raised(kind, number, signal.last());
              });
        });
    most.forEach((kind, words) -> flags.put(kind, flag(kind.toString(), words * ranks)));
  }

  private int distance(int from, int to) {
    return Math.floorMod(to - from, ranks);
  }

  /// Returns a flag of the builder that is large enough, or a new one.
  private Flag flag(String name, int words) {
    return builder.flags().stream()
        .filter(flag -> flag.name().equals(name) && flag.words() >= words)
        .findFirst()
        .orElseGet(() -> builder.flag(name, words));
  }

  private Kind kind(int link, int event) {
    return events.isBegin(EventPairs.earlier(link))
        ? Kind.BEGUN
        : EventPairs.hasData(link) ? Kind.LANDED : events.isEnd(event) ? Kind.READ : Kind.FREE;
  }

  private List<Step> steps(int rank) {
    var all = read.get();
    var own = all == null ? null : all.remove(rank);
    if (own == null) {
      own = programs.apply(rank).steps();
    }
    if (own.size() != events.steps(rank)) {
      throw new BraidException(
          "rank %d must have %d steps as rank 0 has, since rotates() states that all ranks do the same, but has %d; leave rotates() out"
              .formatted(rank, events.steps(rank), own.size()));
    }
    return new OfRank(rank, own).write();
  }

  /// The steps of one rank.
  private final class OfRank {
    private final int rank;
    private final List<Step> own;

    /// Number of marks that the program sets itself.
    private final int marks;

    private final List<Step> all = new ArrayList<>();

    /// By lane, signals for which only the end of an iteration waits. The lane first goes on with
    /// what other ranks wait for, or need no more.
    private final Map<Lane, List<Step>> last = new LinkedHashMap<>();

    /// Signals that a lane raises for another one, in the order of their chunks. The next steps of
    /// that lane come first.
    private final Deque<Step> announced = new ArrayDeque<>();

    private Lane announcing = edge;

    OfRank(int rank, List<Step> own) {
      this.rank = rank;
      this.own = own;
      this.marks = (int) own.stream().filter(Mark.class::isInstance).count();
    }

    List<Step> write() {
      all.addAll(signals(events.begin(rank), edge, Step.NO_CHUNK, false));
      for (int first = 0; first < own.size(); ) {
        int working = LibraryLane.afterMeeting(own, first);
        int end = LibraryLane.end(own, working);
        write(events.first(rank) + working, own.subList(first, end));
        first = end;
      }
      all.addAll(announced);
      last.values().forEach(all::addAll);
      all.addAll(waits(events.end(rank), edge, Step.NO_CHUNK));
      return Program.numbered(all);
    }

    /// @param event event of the step that accesses memory
    /// @param together that step, or a library call between its meetings
    private void write(int event, List<Step> together) {
      var step = own.get(event - events.first(rank));
      var lane = step.lane();
      while (!lane.equals(announcing)
          && !announced.isEmpty()
          && announced.peek().chunk() <= step.chunk()) {
        all.add(announced.remove());
      }
      var waits = waits(event, lane, step.chunk());
      if (isLocal(step) || waits.stream().anyMatch(After.class::isInstance)) {
        all.addAll(last.getOrDefault(lane, List.of()));
        last.remove(lane);
      }
      all.addAll(waits);
      all.addAll(together);
      var announcer = builder.announcer(lane);
      var signals = signals(event, announcer, step.chunk(), false);
      boolean isAnnounced = !signals.isEmpty() && !announcer.equals(lane);
      if (marked.get(events.representative(event)) || isAnnounced) {
        all.add(new Mark(lane, step.chunk(), mark(event)));
      }
      if (isAnnounced) {
        announcing = lane;
        announced.add(new After(announcer, step.chunk(), mark(event)));
        announced.addAll(signals);
      } else {
        all.addAll(signals);
      }
      last.computeIfAbsent(lane, _ -> new ArrayList<>())
          .addAll(signals(event, lane, Step.NO_CHUNK, true));
    }

    private boolean isLocal(Step step) {
      return step.accesses(rank).stream().allMatch(access -> access.region().rank() == rank);
    }

    private int mark(int event) {
      return marks + events.place(event);
    }

    private List<Step> waits(int event, Lane lane, int chunk) {
      return Arrays.stream(waits[events.representative(event)])
          .map(link -> events.shifted(EventPairs.earlier(link), events.distance(event)))
          .boxed()
          .sorted(Comparator.<Integer>comparingInt(events::rank).thenComparing(each -> each))
          .<Step>map(earlier -> wait(earlier, lane, chunk))
          .toList();
    }

    private Step wait(int earlier, Lane lane, int chunk) {
      int from = events.rank(earlier);
      if (from == rank) {
        return new After(lane, chunk, mark(earlier));
      }
      var signal =
          Objects.requireNonNull(
              signalsAfter(earlier).get(distance(from, rank)), "a wait without a signal");
      return new Wait(lane, chunk(signal, chunk), flag(signal.kind()), word(signal, from), from);
    }

    /// The next ranks come first, so that not all ranks signal the same one.
    private List<Step> signals(int event, Lane lane, int chunk, boolean ofLast) {
      var steps = new ArrayList<Step>();
      signalsAfter(event)
          .forEach(
              (distance, signal) -> {
                if (signal.last() == ofLast) {
                  steps.add(
                      new Signal(
                          lane,
                          chunk(signal, chunk),
                          flag(signal.kind()),
                          word(signal, rank),
                          (rank + distance) % ranks));
                }
              });
      return steps;
    }
  }

  private SortedMap<Integer, Raised> signalsAfter(int event) {
    return raised.getOrDefault(events.representative(event), Collections.emptySortedMap());
  }

  private static int chunk(Raised signal, int chunk) {
    return signal.last() || signal.kind() == Kind.BEGUN ? Step.NO_CHUNK : chunk;
  }

  private Flag flag(Kind kind) {
    return Objects.requireNonNull(flags.get(kind));
  }

  private int word(Raised signal, int from) {
    return from * (flag(signal.kind()).words() / ranks) + signal.number();
  }
}
