package braid.schedule.draw;

import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The order of a schedule's steps as times: each step starts as soon as its dependencies are
/// complete. Copies, multiplications, sums, attention and library calls take one unit of time, all
/// other steps none. A step whose dependencies never complete [never starts][#NEVER].
final class Timeline {
  static final int NEVER = Integer.MAX_VALUE;

  /// A step with its time.
  ///
  /// @param start start in units of time; for steps that wait, the time at which the wait ends
  record Placed(int rank, Step step, int start) {
    boolean isWork() {
      return step.takesTime();
    }

    boolean starts() {
      return start != NEVER;
    }

    int end() {
      return isWork() ? start + 1 : start;
    }
  }

  /// A condition that lanes wait for: a raised word, a mark, or a library call.
  private record Event(int rank, String name, int number, int from) {
    static Event raised(int by, Step.Signal signal) {
      return new Event(signal.to(), signal.flag().name(), signal.index(), by);
    }

    static Event awaited(int by, Step.Wait wait) {
      return new Event(by, wait.flag().name(), wait.index(), wait.from());
    }

    static Event mark(int rank, int number) {
      return new Event(rank, "", number, rank);
    }

    /// Returns the event that all ranks have reached their library call `number`.
    static Event call(Step.LibraryCall call, int number) {
      return new Event(-1, call.collective() + " of " + call.root(), number, -1);
    }
  }

  /// The steps of a lane without a time yet.
  private static final class Queue {
    final int rank;
    final List<Integer> steps = new ArrayList<>();
    int next;
    int time;

    /// True if the lane has reached the library call that it waits in.
    boolean called;

    Queue(int rank) {
      this.rank = rank;
    }
  }

  private final Schedule schedule;
  private final int[][] starts;
  private final Map<Event, Integer> completed = new HashMap<>();
  private final Map<Event, List<Queue>> blocked = new HashMap<>();
  private final Map<Event, List<Integer>> callers = new HashMap<>();
  private final Deque<Queue> ready = new ArrayDeque<>();

  private Timeline(Schedule schedule) {
    this.schedule = schedule;
    this.starts = new int[schedule.ranks()][];
  }

  static Timeline of(Schedule schedule) {
    var timeline = new Timeline(schedule);
    timeline.simulate();
    return timeline;
  }

  /// Returns the steps of a rank, in order.
  List<Placed> steps(int rank) {
    var steps = schedule.steps(rank);
    var placed = new ArrayList<Placed>(steps.size());
    for (int i = 0; i < steps.size(); i++) {
      placed.add(new Placed(rank, steps.get(i), starts[rank][i]));
    }
    return placed;
  }

  /// Returns the steps of a rank by lane, for lanes with steps.
  Map<Lane, List<Placed>> lanes(int rank) {
    var lanes = new LinkedHashMap<Lane, List<Placed>>();
    schedule.lanes().forEach(lane -> lanes.put(lane, new ArrayList<>()));
    for (var placed : steps(rank)) {
      lanes.computeIfAbsent(placed.step().lane(), _ -> new ArrayList<>()).add(placed);
    }
    lanes.values().removeIf(List::isEmpty);
    return lanes;
  }

  /// A signal and the wait that it ends.
  record Arrow(Placed from, Placed to) {
    /// Returns whether the lane may have been idle until the signal arrived.
    boolean isAwaited() {
      return to.start() > 0 && from.start() == to.start();
    }
  }

  /// Returns the signals between some ranks that are waited for, in the order of the waits.
  List<Arrow> arrows(List<Integer> ranks) {
    var signals = new HashMap<Event, Placed>();
    for (int rank : ranks) {
      for (var placed : steps(rank)) {
        if (placed.step() instanceof Step.Signal signal) {
          signals.putIfAbsent(Event.raised(rank, signal), placed);
        }
      }
    }
    var arrows = new ArrayList<Arrow>();
    for (int rank : ranks) {
      for (var placed : steps(rank)) {
        if (placed.step() instanceof Step.Wait wait) {
          var signal = signals.get(Event.awaited(rank, wait));
          if (signal != null) {
            arrows.add(new Arrow(signal, placed));
          }
        }
      }
    }
    return arrows;
  }

  private void simulate() {
    for (int rank = 0; rank < starts.length; rank++) {
      var steps = schedule.steps(rank);
      starts[rank] = new int[steps.size()];
      Arrays.fill(starts[rank], NEVER);
      var queues = new LinkedHashMap<Lane, Queue>();
      for (int i = 0; i < steps.size(); i++) {
        int of = rank;
        queues.computeIfAbsent(steps.get(i).lane(), _ -> new Queue(of)).steps.add(i);
      }
      ready.addAll(queues.values());
    }
    while (!ready.isEmpty()) {
      run(ready.remove());
    }
  }

  /// Advances a lane until it waits for an event that is not complete.
  private void run(Queue queue) {
    var steps = schedule.steps(queue.rank);
    for (; queue.next < queue.steps.size(); queue.next++) {
      int index = queue.steps.get(queue.next);
      var step = steps.get(index);
      var awaited = awaited(queue, index, step);
      if (awaited.isPresent()) {
        var time = completed.get(awaited.get());
        if (time == null) {
          blocked.computeIfAbsent(awaited.get(), _ -> new ArrayList<>()).add(queue);
          return;
        }
        queue.time = Math.max(queue.time, time);
      }
      starts[queue.rank][index] = queue.time;
      queue.called = false;
      queue.time += step.takesTime() ? 1 : 0;
      switch (step) {
        case Step.Signal signal -> complete(Event.raised(queue.rank, signal), queue.time);
        case Step.Mark mark -> complete(Event.mark(queue.rank, mark.number()), queue.time);
        default -> {}
      }
    }
  }

  private Optional<Event> awaited(Queue queue, int index, Step step) {
    return switch (step) {
      case Step.Wait wait -> Optional.of(Event.awaited(queue.rank, wait));
      case Step.After after -> Optional.of(Event.mark(queue.rank, after.mark()));
      case Step.LibraryCall call -> Optional.of(called(queue, index, call));
      default -> Optional.empty();
    };
  }

  /// Returns the event of a library call, which starts on all ranks after all have reached it.
  private Event called(Queue queue, int index, Step.LibraryCall call) {
    var earlier = schedule.steps(queue.rank).subList(0, index);
    var event =
        Event.call(call, (int) earlier.stream().filter(Step.LibraryCall.class::isInstance).count());
    if (!queue.called) {
      queue.called = true;
      var times = callers.computeIfAbsent(event, _ -> new ArrayList<>());
      times.add(queue.time);
      if (times.size() == schedule.ranks()) {
        complete(event, Collections.max(times));
      }
    }
    return event;
  }

  private void complete(Event event, int time) {
    if (completed.putIfAbsent(event, time) == null) {
      ready.addAll(blocked.getOrDefault(event, List.of()));
      blocked.remove(event);
    }
  }
}
