package braid.schedule.plan;

import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
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
  private final int ranks;
  private final Events events;

  /// By event, the earlier events that it waits for.
  private final int[][] waits;

  /// By event, the signals after it, in the order of their receivers.
  private final Map<Integer, List<Raised>> raised = new HashMap<>();

  /// True for events that other lanes of the rank wait for.
  private final boolean[] marked;

  private final Map<Kind, Flag> flags = new EnumMap<>(Kind.class);

  /// A signal to a rank.
  ///
  /// @param number number among those of the kind that its rank sends to the receiver
  /// @param last true if only the end of the receiver's iteration waits for it
  private record Raised(int receiver, Kind kind, int number, boolean last) {
    private Raised and(Raised more) {
      var first = kind.compareTo(more.kind) < 0 ? kind : more.kind;
      return new Raised(receiver, first, number, last && more.last);
    }
  }

  private Ordering(Schedule.Builder builder, int ranks, IntFunction<Program> programs) {
    this.builder = builder;
    this.programs = programs;
    this.ranks = ranks;
    this.events = new Events(builder.lanes(), ranks, programs);
    var reduced = new Reduction(events);
    this.waits = reduced.kept();
    this.marked = new boolean[events.size()];
    number(reduced);
  }

  /// Returns a schedule with the steps of some programs, in their order.
  public static Schedule of(Schedule.Builder builder, int ranks, IntFunction<Program> programs) {
    return builder.stepsByRank(new Ordering(builder, ranks, programs)::steps);
  }

  private void number(Reduction reduced) {
    var receivers = new TreeMap<Integer, SortedMap<Integer, Raised>>();
    for (int event = 0; event < events.size(); event++) {
      int rank = events.rank(event);
      for (int earlier : waits[event]) {
        if (events.rank(earlier) == rank) {
          marked[earlier] = true;
        } else {
          var signal = new Raised(rank, kind(earlier, event, reduced), 0, events.isEnd(event));
          receivers.computeIfAbsent(earlier, _ -> new TreeMap<>()).merge(rank, signal, Raised::and);
        }
      }
    }
    var counts = new HashMap<Integer, EnumMap<Kind, int[]>>();
    var most = new EnumMap<Kind, Integer>(Kind.class);
    receivers.forEach(
        (event, all) -> {
          var ofRank = counts.computeIfAbsent(events.rank(event), _ -> new EnumMap<>(Kind.class));
          var signals = new ArrayList<Raised>();
          for (var each : all.values()) {
            var kind = each.kind();
            var count = ofRank.computeIfAbsent(kind, _ -> new int[ranks]);
            int number = count[each.receiver()]++;
            signals.add(new Raised(each.receiver(), kind, number, each.last()));
            most.merge(kind, number + 1, Math::max);
          }
          raised.put(event, signals);
        });
    most.forEach((kind, words) -> flags.put(kind, flag(kind.toString(), words * ranks)));
  }

  /// Returns a flag of the builder that is large enough, or a new one.
  private Flag flag(String name, int words) {
    return builder.flags().stream()
        .filter(flag -> flag.name().equals(name) && flag.words() >= words)
        .findFirst()
        .orElseGet(() -> builder.flag(name, words));
  }

  private Kind kind(int earlier, int event, Reduction reduced) {
    return events.isBegin(earlier)
        ? Kind.BEGUN
        : reduced.conflicts().hasData(earlier, event)
            ? Kind.LANDED
            : events.isEnd(event) ? Kind.READ : Kind.FREE;
  }

  private List<Step> steps(int rank) {
    return new OfRank(rank).write();
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

    private Lane announcing = events.edge();

    OfRank(int rank) {
      this.rank = rank;
      this.own = programs.apply(rank).steps();
      this.marks = (int) own.stream().filter(Mark.class::isInstance).count();
    }

    List<Step> write() {
      int event = events.begin(rank);
      all.addAll(signals(event, events.edge(), Step.NO_CHUNK, false));
      for (var step : own) {
        write(++event, step);
      }
      all.addAll(announced);
      last.values().forEach(all::addAll);
      all.addAll(waits(events.end(rank), events.edge(), Step.NO_CHUNK));
      return Program.numbered(all);
    }

    private void write(int event, Step step) {
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
      all.add(step);
      var announcer = builder.announcer(lane);
      var signals = signals(event, announcer, step.chunk(), false);
      boolean isAnnounced = !signals.isEmpty() && !announcer.equals(lane);
      if (marked[event] || isAnnounced) {
        all.add(new Mark(lane, step.chunk(), marks + event));
      }
      if (isAnnounced) {
        announcing = lane;
        announced.add(new After(announcer, step.chunk(), marks + event));
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

    private List<Step> waits(int event, Lane lane, int chunk) {
      var steps = new ArrayList<Step>();
      for (int earlier : waits[event]) {
        int from = events.rank(earlier);
        if (from == rank) {
          steps.add(new After(lane, chunk, marks + earlier));
        } else {
          var signal =
              raised.getOrDefault(earlier, List.of()).stream()
                  .filter(each -> each.receiver() == rank)
                  .findFirst()
                  .orElseThrow();
          var flag = flag(signal.kind());
          steps.add(new Wait(lane, chunk(signal, chunk), flag, word(signal, from), from));
        }
      }
      return steps;
    }

    private List<Step> signals(int event, Lane lane, int chunk, boolean ofLast) {
      var signals = new ArrayList<Raised>();
      for (var each : raised.getOrDefault(event, List.of())) {
        if (each.last() == ofLast) {
          signals.add(each);
        }
      }
      // The next ranks first, so that not all ranks signal the same one.
      int before = (int) signals.stream().filter(signal -> signal.receiver() < rank).count();
      Collections.rotate(signals, -before);
      var steps = new ArrayList<Step>();
      for (var each : signals) {
        steps.add(
            new Signal(
                lane, chunk(each, chunk), flag(each.kind()), word(each, rank), each.receiver()));
      }
      return steps;
    }
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
