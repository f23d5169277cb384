package braid.schedule.check;

import braid.schedule.Flag;
import braid.schedule.Goal;
import braid.schedule.Port;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Access;
import braid.schedule.Step.Access.Use;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Finds unordered events that use the same rows and columns, at least one of them writing. The
/// same rule applies to the words of flags: a recorded iteration raises a word to one of two
/// values, so the next iteration must not raise it before it was read.
///
/// One missing wait leads to many races: [Causes] finds it.
final class Races {
  /// Columns of a flag's word.
  private static final Slice WORD = new Slice(0, 1);

  private final Wiring wiring;
  private final Declarations declared;
  private final Order order;
  private final Map<Memory, List<Touch>> touches = new LinkedHashMap<>();

  /// By the two steps and the distance of their iterations, so that a race of one iteration is not
  /// repeated for the next.
  private final Map<List<Integer>, Race> races = new LinkedHashMap<>();

  /// Races between the accesses of one step.
  private final Map<Integer, Finding> within = new LinkedHashMap<>();

  private final BitSet racing = new BitSet();

  /// One rank's array, or one of its flags.
  record Memory(String name, int rank, boolean words) {}

  /// Two events without an order, and the rows that both use.
  record Race(Touch first, Touch second, Memory memory, Slice rows) {
    int one() {
      return first.event();
    }

    int other() {
      return second.event();
    }
  }

  /// The events of a race, in one of the two orders that would end it.
  record Pair(int before, int after, Race race) {
    Pair reversed() {
      return new Pair(/* before= */ after, /* after= */ before, race);
    }
  }

  /// An event's use of rows.
  ///
  /// @param port the port or buffer that the caller uses; empty for steps
  record Touch(int event, Use use, Slice rows, Slice columns, String port) {}

  Races(Wiring wiring, Declarations declared, Order order) {
    this.wiring = wiring;
    this.declared = declared;
    this.order = order;
    find();
  }

  /// Returns the races, each in both orders.
  List<Pair> all() {
    return pairs(races.values());
  }

  private static List<Pair> pairs(Collection<Race> races) {
    var pairs = new ArrayList<Pair>();
    for (var race : races) {
      var pair = new Pair(race.one(), race.other(), race);
      pairs.add(pair);
      pairs.add(pair.reversed());
    }
    return pairs;
  }

  /// Returns the races, each in both orders, without those between two lanes that another one
  /// between them would order if it was ordered.
  List<Pair> closest() {
    var lanes = new LinkedHashMap<List<Integer>, List<Pair>>();
    for (var pair : all()) {
      lanes
          .computeIfAbsent(
              List.of(
                  order.lane(pair.before()),
                  order.lane(pair.after()),
                  order.iteration(pair.after()) - order.iteration(pair.before())),
              _ -> new ArrayList<>())
          .add(pair);
    }
    var kept = new HashSet<Race>();
    for (var pairs : lanes.values()) {
      pairs.sort(
          Comparator.<Pair>comparingInt(pair -> -order.place(pair.before()))
              .thenComparingInt(pair -> order.place(pair.after())));
      int first = Integer.MAX_VALUE;
      for (var pair : pairs) {
        if (order.place(pair.after()) < first) {
          first = order.place(pair.after());
          kept.add(pair.race());
        }
      }
    }
    return pairs(races.values().stream().filter(kept::contains).toList());
  }

  /// Returns all uses of an array or flag.
  List<Touch> touches(Memory memory) {
    return touches.getOrDefault(memory, List.of());
  }

  Collection<Finding> within() {
    return within.values();
  }

  /// Returns whether a step takes part in a race.
  boolean isRacing(int number) {
    return racing.get(number);
  }

  private void find() {
    for (int number = 0; number < wiring.size(); number++) {
      List<Access> accesses =
          declared.isUncertain(number)
              ? List.of()
              : wiring.step(number).accesses(wiring.rank(number));
      within(number, accesses);
      for (int iteration = 0; iteration < Order.ITERATIONS; iteration++) {
        int event = order.step(iteration, number);
        accesses.forEach(access -> touch(event, access, ""));
        switch (wiring.step(number)) {
          // Standalone collectives write step numbers to their words and are never recorded.
          case Step _ when wiring.schedule().goal() instanceof Goal.Collected -> {}
          case Signal signal -> {
            if (wiring.isMatched(number)) {
              touch(event, signal.to(), signal.flag(), signal.index(), Use.WRITE);
            }
          }
          case Wait wait -> touch(event, wiring.rank(number), wait.flag(), wait.index(), Use.READ);
          default -> {}
        }
      }
    }
    for (var port : declared.portsFit() ? wiring.schedule().ports() : List.<Port>of()) {
      for (var region : port.regions()) {
        for (int iteration = 0; iteration <= Order.ITERATIONS; iteration++) {
          touch(order.caller(iteration, region.rank()), Access.write(region), port.name());
        }
      }
    }
    // Between iterations other work of the rank may use all of its memory.
    for (var buffer : wiring.schedule().buffers()) {
      for (int rank = 0; rank < wiring.schedule().ranks(); rank++) {
        for (int iteration = 0; iteration <= Order.ITERATIONS; iteration++) {
          touch(order.caller(iteration, rank), Access.write(buffer.on(rank)), buffer.name());
        }
      }
    }
    for (boolean words : List.of(false, true)) {
      touches.forEach(
          (memory, all) -> {
            if (memory.words() == words) {
              sweep(memory, all);
            }
          });
    }
    races.values().forEach(this::setRacing);
    within.keySet().forEach(racing::set);
  }

  private void setRacing(Race race) {
    for (int event : List.of(race.one(), race.other())) {
      if (order.isStep(event)) {
        racing.set(order.number(event));
      }
    }
  }

  private void touch(int event, Access access, String port) {
    var region = access.region();
    if (!region.isEmpty()) {
      touches
          .computeIfAbsent(
              new Memory(region.buffer().name(), region.rank(), false), _ -> new ArrayList<>())
          .add(new Touch(event, access.use(), region.slice(), region.columnSlice(), port));
    }
  }

  private void touch(int event, int rank, Flag flag, int index, Use use) {
    touches
        .computeIfAbsent(new Memory(flag.name(), rank, true), _ -> new ArrayList<>())
        .add(new Touch(event, use, new Slice(index, 1), WORD, ""));
  }

  /// Compares overlapping touches, in the order of their first rows.
  private void sweep(Memory memory, List<Touch> all) {
    all.sort(Comparator.comparingLong(touch -> touch.rows().start()));
    var active = new EnumMap<Use, List<Touch>>(Use.class);
    for (var touch : all) {
      active.forEach(
          (use, others) -> {
            if (use.conflicts(touch.use())) {
              others.removeIf(other -> other.rows().end() <= touch.rows().start());
              others.forEach(other -> compare(memory, other, touch));
            }
          });
      active.computeIfAbsent(touch.use(), _ -> new ArrayList<>()).add(touch);
    }
  }

  private void compare(Memory memory, Touch one, Touch other) {
    int a = one.event();
    int b = other.event();
    if (a == b
        || !one.columns().overlaps(other.columns())
        || order.isBefore(a, b)
        || order.isBefore(b, a)) {
      return;
    }
    boolean swap =
        order.iteration(a) > order.iteration(b)
            || (order.iteration(a) == order.iteration(b)
                && (order.isCaller(b)
                    || (!order.isCaller(a) && other.use() == Use.WRITE && one.use() != Use.WRITE)));
    var first = swap ? other : one;
    var second = swap ? one : other;
    races.putIfAbsent(
        List.of(
            key(first.event()),
            key(second.event()),
            order.iteration(second.event()) - order.iteration(first.event())),
        new Race(first, second, memory, one.rows().and(other.rows())));
  }

  private int key(int event) {
    return order.isStep(event) ? order.number(event) : -1 - order.rank(event);
  }

  /// Finds races between the accesses of one step, which are unordered. A sum may overwrite one of
  /// its parts, row by row.
  private void within(int number, List<Access> accesses) {
    var step = wiring.step(number);
    if (step instanceof LibraryCall) {
      return;
    }
    for (int i = 0; i < accesses.size(); i++) {
      if (accesses.get(i).use() != Use.WRITE) {
        continue;
      }
      for (int j = 0; j < accesses.size(); j++) {
        var one = accesses.get(i);
        var other = accesses.get(j);
        if (i != j
            && one.region().overlaps(other.region())
            && !(other.use() == Use.READ
                && one.region().equals(other.region())
                && step.worksInPlace())) {
          within.putIfAbsent(
              number,
              new Finding(
                  wiring.rank(number),
                  "race within %s: it uses %s and %s, which overlap, concurrently; %s"
                      .formatted(
                          wiring.name(number),
                          one.region(),
                          other.region(),
                          other.use() == Use.READ
                              ? "write to rows that it does not read"
                              : "split it into two steps")));
        }
      }
    }
  }
}
