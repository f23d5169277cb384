package braid.internal.cuda;

import braid.internal.work.Work;
import braid.model.Activity;
import braid.model.Span;
import braid.model.Stage;
import braid.natives.profiling.Cupti;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// Spans of the operations that streams enqueued, made from the activities that CUPTI reports.
///
/// An operation has any number of activities: a library launches several kernels, one driver call
/// makes several copies. Its span begins with the first and ends with the last of them and keeps
/// them all, so that the times of a stage count once and none of its kernels is lost. An activity
/// belongs to the operation whose id was pushed around its call or claimed for its graph node;
/// activities without such an operation are kept apart. Every activity is in exactly one of the two
/// places.
///
/// ```
/// enqueued   wait A │ copy 1          │ wait B │ sum 2
/// reported            copy ─ copy ─────           fill ─ kernel        kernel (id -1)
/// spans      ─wait A─┼─ copy 1 ───────┼─wait B─┼─ sum 2 ──────┤        unowned
/// ```
///
/// The operations of one turn, or of one graph, are a group. One iteration may run several groups:
/// each collective has its own turn, each link of a chain its own graph. Waits have no activity, so
/// they are those of the groups that ran: a wait is the time between the operations before and
/// after it.
final class Attribution {
  /// Shorter gaps between two operations are launch overhead of the GPU.
  private static final long LEAST_WAIT_NANOS = 2_000;

  /// A stream that enqueues operations. Streams of several pipelines may have one name.
  static final class Track {
    private final String name;

    Track(String name) {
      this.name = name;
    }
  }

  /// One enqueued operation. `id` is 0 for a wait.
  ///
  /// @param iteration the one that it runs in; null in a graph, which several iterations run
  record Operation(
      long id,
      Track track,
      int group,
      @Nullable Integer iteration,
      Work work,
      Stage stage,
      long bytes,
      long flops) {}

  /// Result of a recording.
  ///
  /// @param spans spans of each stream
  /// @param unowned activities of no operation, or before any turn
  record Result(Map<Track, List<Span>> spans, List<Activity> unowned) {}

  private final long originNanos;
  private final NavigableMap<Long, Integer> turns;
  private final Map<Long, Operation> owners = new HashMap<>();
  private final Map<Integer, List<Operation>> operations = new HashMap<>();
  private final Map<Track, List<Span>> spans = new HashMap<>();
  private final List<Activity> unowned = new ArrayList<>();

  private Attribution(long originNanos, NavigableMap<Long, Integer> turns) {
    this.originNanos = originNanos;
    this.turns = turns;
  }

  /// @param originNanos time from which spans are counted
  /// @param turns iterations by the time from which work is enqueued for them
  /// @param operations in the order of enqueuing
  /// @param activities in the order of their start
  static Result of(
      long originNanos,
      NavigableMap<Long, Integer> turns,
      List<Operation> operations,
      List<? extends Cupti.Activity> activities) {
    var attribution = new Attribution(originNanos, turns);
    for (var each : operations) {
      attribution.operations.computeIfAbsent(each.group(), _ -> new ArrayList<>()).add(each);
      if (each.stage() != Stage.WAIT) {
        attribution.owners.put(each.id(), each);
      }
    }
    attribution.attribute(activities);
    return new Result(attribution.spans, attribution.unowned);
  }

  private void attribute(List<? extends Cupti.Activity> activities) {
    var iterations = new TreeMap<Integer, Map<Long, List<Cupti.Activity>>>();
    for (var each : activities) {
      var owner = owners.get(each.externalId());
      if (turns.isEmpty() || owner == null) {
        unowned.add(activity(each, 0));
      } else {
        iterations
            .computeIfAbsent(iteration(owner, each), _ -> new HashMap<>())
            .computeIfAbsent(each.externalId(), _ -> new ArrayList<>())
            .add(each);
      }
    }
    iterations.forEach(this::addSpans);
  }

  /// Returns the iteration of an activity. With iterations in flight, later turns begin while an
  /// operation runs.
  private Integer iteration(Operation owner, Cupti.Activity activity) {
    var known = owner.iteration();
    return known != null
        ? known
        : Objects.requireNonNull(turns.get(turnBefore(activity.startNanos())));
  }

  /// Returns the last turn before a time. The first one is before all operations, whatever the
  /// clocks' error.
  private long turnBefore(long nanos) {
    var turn = turns.floorKey(nanos);
    return turn == null ? turns.firstKey() : turn;
  }

  private void addSpans(int iteration, Map<Long, List<Cupti.Activity>> executions) {
    var ends = new HashMap<Track, Long>();
    var ran = new TreeSet<Integer>();
    executions.keySet().forEach(id -> ran.add(Objects.requireNonNull(owners.get(id)).group()));
    for (var group : ran) {
      var waiting = new HashMap<Track, Work>();
      for (var operation : operations.getOrDefault(group, List.of())) {
        var track = operation.track();
        if (operation.stage() == Stage.WAIT) {
          waiting.put(track, operation.work());
          continue;
        }
        var execution = executions.get(operation.id());
        if (execution == null) {
          continue;
        }
        var span = span(iteration, operation, execution);
        var list = spans.computeIfAbsent(track, _ -> new ArrayList<>());
        long begin = turnBefore(execution.getFirst().startNanos()) - originNanos;
        long before = Math.max(begin, ends.getOrDefault(track, begin));
        var waited = waiting.remove(track);
        if (waited != null && span.startNanos() - before > LEAST_WAIT_NANOS) {
          list.add(
              new Span(
                  iteration,
                  waited.chunk(),
                  Stage.WAIT,
                  track.name,
                  before,
                  span.startNanos(),
                  0,
                  0,
                  List.of(),
                  waited.label().get()));
        }
        list.add(span);
        ends.merge(track, span.endNanos(), Math::max);
      }
    }
  }

  private Span span(int iteration, Operation operation, List<Cupti.Activity> execution) {
    long kernelBytes = execution.size() == 1 ? operation.bytes() : 0;
    var activities = execution.stream().map(each -> activity(each, kernelBytes)).toList();
    return new Span(
        iteration,
        operation.work().chunk(),
        operation.stage(),
        operation.track().name,
        activities.getFirst().startNanos(),
        activities.stream().mapToLong(Activity::endNanos).max().orElseThrow(),
        operation.bytes(),
        operation.flops(),
        activities,
        operation.work().label().get());
  }

  private Activity activity(Cupti.Activity reported, long kernelBytes) {
    long start = reported.startNanos() - originNanos;
    long end = reported.endNanos() - originNanos;
    return switch (reported) {
      case Cupti.Kernel kernel ->
          new Activity(Activity.Kind.KERNEL, kernel.engine(), start, end, kernelBytes);
      case Cupti.Copy copy ->
          new Activity(Activity.Kind.COPY, copy.engine(), start, end, copy.bytes());
      case Cupti.Fill fill ->
          new Activity(Activity.Kind.FILL, "fill: " + fill.engine(), start, end, fill.bytes());
    };
  }
}
