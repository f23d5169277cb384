package braid.schedule.plan;

import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Access.Use;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;

/// Pairs of events that use the same rows, at least one of them writing, in the order in which they
/// must happen:
///
/// - steps of one rank in the order of its program;
/// - steps of two ranks by their rounds; in one round a write before a read;
/// - a step on another rank's memory after that rank's begin, and before its end.
///
/// Two writes by different ranks in one round have no order, which the check reports.
///
/// If all ranks are known to do the same, only the program of rank 0 is read. Its use of the memory
/// of a rank then stands for a use of the memory of rank 0, by the rank as far on the other side.
final class Conflicts {
  private final Events events;
  private final Map<Integer, List<Step>> steps = new ConcurrentHashMap<>();
  private final Set<String> divided;
  private final EventPairs required = new EventPairs();
  private final EventPairs stated = new EventPairs();

  /// Uses of symmetric memory.
  private final Map<Memory, List<Touch>> shared = new HashMap<>();

  // Order that programs state by marks, signals and library calls.
  private final Map<Word, Integer> raised = new HashMap<>();
  private final Map<Integer, Word> awaited = new HashMap<>();
  private final List<List<Integer>> calls = new ArrayList<>();

  /// One rank's array.
  private record Memory(String name, int rank) {}

  /// An event's use of rows.
  private record Touch(int event, int round, Use use, long start, long end, Slice columns) {}

  /// A word of a rank; a mark is a word without a flag.
  private record Word(int rank, String flag, int index) {}

  Conflicts(Events events, IntFunction<Program> programs, Optional<Set<String>> rotated) {
    this.events = events;
    this.divided = rotated.orElse(Set.of());
    for (int rank = 0; rank < (events.isSymmetric() ? 1 : events.ranks()); rank++) {
      var program = programs.apply(rank);
      var own = program.steps();
      events.add(rank, own);
      if (rank == 0 && rotated.isPresent() && own.stream().noneMatch(Conflicts::meets)) {
        events.setSymmetric();
      }
      steps.put(rank, own);
      read(rank, own, program.rounds());
    }
    shared.values().forEach(this::sweep);
    addStated();
    if (!events.isSymmetric()
        && events.areAlike()
        && required.areSymmetric(events)
        && stated.areSymmetric(events)) {
      events.setSymmetric();
    }
  }

  /// Returns whether a step itself states an order between ranks.
  private static boolean meets(Step step) {
    return step instanceof Step.Signal
        || step instanceof Step.Wait
        || step instanceof Step.LibraryCall;
  }

  private void read(int rank, List<Step> steps, int[] rounds) {
    var own = new HashMap<Memory, List<Touch>>();
    // The first and the last of a lane's steps on a rank's memory order all others.
    var firsts = new int[events.width() * events.ranks()];
    var lasts = new int[firsts.length];
    var writes = new BitSet();
    int call = 0;
    for (int i = 0; i < steps.size(); i++) {
      int event = events.first(rank) + i;
      for (var access : steps.get(i).accesses(rank)) {
        var region = access.region();
        if (region.isEmpty()) {
          continue;
        }
        (region.buffer().symmetric() ? shared : own)
            .computeIfAbsent(memory(region), _ -> new ArrayList<>())
            .add(touch(event, rounds[i], access));
        if (region.rank() != rank) {
          int use = events.lane(event) * events.ranks() + region.rank();
          if (firsts[use] == 0) {
            firsts[use] = event;
            require(events.begin(region.rank()), event, false);
          }
          lasts[use] = event;
          writes.set(use, access.use() != Use.READ);
        }
      }
      switch (steps.get(i)) {
        case Step.Signal signal ->
            raised.put(new Word(signal.to(), signal.flag().name(), signal.index()), event);
        case Step.Mark mark -> raised.put(new Word(rank, "", mark.number()), event);
        case Step.Wait wait -> awaited.put(event, new Word(rank, wait.flag().name(), wait.index()));
        case Step.After after -> awaited.put(event, new Word(rank, "", after.mark()));
        case Step.LibraryCall _ -> {
          if (call == calls.size()) {
            calls.add(new ArrayList<>());
          }
          calls.get(call++).add(event);
        }
        default -> {}
      }
    }
    for (int use = 0; use < lasts.length; use++) {
      if (lasts[use] > 0) {
        require(lasts[use], events.end(use % events.ranks()), writes.get(use));
      }
    }
    own.values().forEach(this::sweep);
  }

  private Memory memory(Region region) {
    return new Memory(region.buffer().name(), events.isSymmetric() ? 0 : region.rank());
  }

  private Touch touch(int event, int round, Step.Access access) {
    var region = access.region();
    int distance = events.isSymmetric() ? -region.rank() : 0;
    long start = region.row();
    long rows = region.buffer().rows(0);
    if (distance != 0 && region.rows() < rows && divided.contains(region.buffer().name())) {
      start = Math.floorMod(start + rows / events.ranks() * distance, rows);
    }
    return new Touch(
        events.shifted(event, distance),
        round,
        access.use(),
        start,
        start + region.rows(),
        region.columnSlice());
  }

  /// Compares overlapping touches, in the order of their first rows.
  private void sweep(List<Touch> all) {
    if (all.stream().allMatch(touch -> touch.use() == Use.READ)) {
      return;
    }
    all.sort(Comparator.comparingLong(Touch::start));
    var active = new EnumMap<Use, List<Touch>>(Use.class);
    for (var touch : all) {
      active.forEach(
          (use, open) -> {
            if (use.conflicts(touch.use())) {
              open.removeIf(closed -> closed.end() <= touch.start());
              for (var overlapping : open) {
                if (overlapping.columns().overlaps(touch.columns())) {
                  compare(overlapping, touch);
                }
              }
            }
          });
      active.computeIfAbsent(touch.use(), _ -> new ArrayList<>()).add(touch);
    }
  }

  private void compare(Touch one, Touch two) {
    int a = one.event();
    int b = two.event();
    boolean sameRank = events.rank(a) == events.rank(b);
    if (sameRank && events.lane(a) == events.lane(b)) {
      return;
    }
    int order =
        sameRank
            ? Integer.compare(a, b)
            : one.round() != two.round()
                ? Integer.compare(one.round(), two.round())
                : Boolean.compare(one.use() == Use.READ, two.use() == Use.READ);
    if (order < 0) {
      require(a, b, one.use() != Use.READ && two.use() != Use.WRITE);
    } else if (order > 0) {
      require(b, a, two.use() != Use.READ && one.use() != Use.WRITE);
    }
  }

  /// Adds a pair, or the one that represents it.
  private void require(int earlier, int later, boolean data) {
    int distance = -events.distance(later);
    required.add(events.shifted(earlier, distance), events.shifted(later, distance), data);
  }

  /// Adds the order that the programs state themselves, by marks, signals and library calls.
  private void addStated() {
    awaited.forEach(
        (event, word) -> {
          var earlier = raised.get(word);
          if (earlier != null) {
            stated.add(earlier, event, false);
          }
        });
    // All ranks enter a library call before any of them leaves it.
    for (var all : calls) {
      all.forEach(
          left -> all.forEach(entered -> stated.add(events.previous(entered), left, false)));
    }
  }

  /// Returns the steps of the programs that were read, by rank.
  Map<Integer, List<Step>> steps() {
    return steps;
  }

  /// Returns the pairs by the later event.
  EventPairs required() {
    return required;
  }

  /// Returns the pairs that the programs state, by the later event.
  EventPairs stated() {
    return stated;
  }
}
