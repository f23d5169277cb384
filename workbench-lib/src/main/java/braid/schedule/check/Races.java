package braid.schedule.check;

import braid.model.Collective;
import braid.model.Transport;
import braid.schedule.Flag;
import braid.schedule.Goal;
import braid.schedule.Port;
import braid.schedule.Region;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Access;
import braid.schedule.Step.Access.Use;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

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
    var pairs = new ArrayList<Pair>();
    for (var race : races.values()) {
      var pair = new Pair(race.one(), race.other(), race);
      pairs.add(pair);
      pairs.add(pair.reversed());
    }
    return pairs;
  }

  /// Returns the races, each in both orders, without those between two lanes that another one
  /// between them would order if it was ordered.
  List<Pair> closest() {
    var all = all();
    all.sort(
        Comparator.<Pair>comparingInt(pair -> -order.place(pair.before()))
            .thenComparingInt(pair -> order.place(pair.after())));
    // By the two lanes and the distance of the iterations, the first place on the second lane.
    var firsts = new HashMap<List<Integer>, Integer>();
    var kept = new HashSet<Race>();
    for (var pair : all) {
      int distance = order.iteration(pair.after()) - order.iteration(pair.before());
      var lanes = List.of(order.lane(pair.before()), order.lane(pair.after()), distance);
      int place = order.place(pair.after());
      if (place < firsts.getOrDefault(lanes, Integer.MAX_VALUE)) {
        firsts.put(lanes, place);
        kept.add(pair.race());
      }
    }
    var closest = all();
    closest.removeIf(pair -> !kept.contains(pair.race()));
    return closest;
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
      var step = wiring.step(number);
      int rank = wiring.rank(number);
      int event = order.step(0, number);
      List<Access> accesses = declared.isUncertain(number) ? List.of() : step.accesses(rank);
      within(number, accesses);
      accesses.forEach(access -> touch(event, access, ""));
      delivered(number).forEach(region -> touch(event, Access.write(region), ""));
      switch (step) {
        // Standalone collectives write step numbers to their words and are never recorded.
        case Step _ when wiring.schedule().goal() instanceof Goal.Collected -> {}
        case Signal _ when wiring.idle().containsKey(order.number(event)) -> {}
        case Signal signal -> touch(event, signal.flag(), signal.to(), signal.index(), Use.WRITE);
        case Wait wait -> touch(event, wait.flag(), rank, wait.index(), Use.READ);
        default -> {}
      }
    }
    for (var port : declared.portsFit() ? wiring.schedule().ports() : List.<Port>of()) {
      for (var region : port.regions()) {
        touch(order.caller(0, region.rank()), Access.write(region), port.name());
      }
    }
    // Between iterations other work of the rank may use all of its memory.
    for (var buffer : wiring.schedule().buffers()) {
      for (int rank = 0; rank < wiring.schedule().ranks(); rank++) {
        touch(order.caller(0, rank), Access.write(buffer.on(rank)), buffer.name());
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
    for (var race : races.values()) {
      IntStream.of(race.one(), race.other())
          .filter(order::isStep)
          .forEach(event -> racing.set(order.number(event)));
    }
    within.keySet().forEach(racing::set);
  }

  /// Returns the peers' memory that a call of puts writes. No peer's own call waits for it.
  private List<Region> delivered(int number) {
    int meeting = wiring.meetingOf(number);
    return meeting >= 0
            && wiring.step(number) instanceof LibraryCall call
            && call.lane().transport() == Transport.NVSHMEM_PUTS
            && (call.collective() != Collective.BROADCAST || call.root() == wiring.rank(number))
        ? Arrays.stream(wiring.meetings().get(meeting))
            .filter(other -> other != number)
            .mapToObj(other -> ((LibraryCall) wiring.step(other)).y())
            .toList()
        : List.of();
  }

  /// Returns whether two events are calls of one collective, which write different rows.
  private boolean areOneCall(int a, int b) {
    return order.isStep(a)
        && order.isStep(b)
        && order.iteration(a) == order.iteration(b)
        && wiring.meetingOf(order.number(a)) >= 0
        && wiring.meetingOf(order.number(a)) == wiring.meetingOf(order.number(b));
  }

  private void touch(int event, Access access, String port) {
    var region = access.region();
    if (!region.isEmpty()) {
      var memory = new Memory(region.buffer().name(), region.rank(), false);
      touch(memory, new Touch(event, access.use(), region.slice(), region.columnSlice(), port));
    }
  }

  private void touch(int event, Flag flag, int rank, int index, Use use) {
    touch(
        new Memory(flag.name(), rank, true), new Touch(event, use, new Slice(index, 1), WORD, ""));
  }

  /// Adds a use in every iteration.
  private void touch(Memory memory, Touch first) {
    var all = touches.computeIfAbsent(memory, _ -> new ArrayList<>());
    for (int event = first.event(); event != Order.NONE; event = order.next(event)) {
      all.add(new Touch(event, first.use(), first.rows(), first.columns(), first.port()));
    }
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
        || order.isBefore(b, a)
        || areOneCall(a, b)) {
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
      var region = accesses.get(i).region();
      for (int j = 0; j < accesses.size() && accesses.get(i).use() == Use.WRITE; j++) {
        var other = accesses.get(j);
        boolean isRead = other.use() == Use.READ;
        boolean isSum = isRead && step.worksInPlace() && region.equals(other.region());
        if (i != j && !isSum && region.overlaps(other.region())) {
          within.putIfAbsent(
              number,
              new Finding(
                  wiring.rank(number),
                  "race within %s: it uses %s and %s, which overlap, concurrently; %s"
                      .formatted(
                          wiring.name(number),
                          region,
                          other.region(),
                          isRead
                              ? "write to rows that it does not read"
                              : "split it into two steps")));
        }
      }
    }
  }
}
