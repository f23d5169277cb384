package braid.internal.store;

import braid.internal.rank.BlockedWait;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Waits of all ranks that last, in which circles of ranks that wait for each other are found. Such
/// waits never end, so they fail.
///
/// A wait needs a call of each of its missing ranks, not of one of them. So it cannot end before
/// any rank that it needs, and a circle is a deadlock whatever else its waits need. A rank that
/// waits cannot make the needed call if it has no other thread that could, or if the waiting thread
/// keeps the needed collectives for itself.
///
/// A report may be outdated when it arrives: the wait may have ended meanwhile. Therefore a circle
/// counts only if all its waits lasted at one moment. Reports are counted, and the count is the
/// time. A wait that was first reported at time 5 had begun by then. If a later report of it
/// follows a vain attempt that began after the answer of time 8 had arrived, the wait lasted at
/// each time from 5 to 8, and no needed call was made before 8, since a call once made stays made.
/// If there is a time at which all waits of a circle lasted, none of their ranks could make a call
/// then, and none can later.
///
/// Threads of ranks are listed only once a circle is suspected, because it takes long. Ranks report
/// again and again, so that each of them learns of its circle.
final class WaitGraph {
  private record Waiter(int rank, long thread) {}

  /// @param firstTime time of the first report of the wait
  private record Node(int rank, BlockedWait blocked, long firstTime) {
    boolean lastsAt(long time) {
      return firstTime <= time && time <= blocked.seen();
    }
  }

  private final Map<Waiter, Node> nodes = new LinkedHashMap<>();

  /// Descriptions of circles by the waits in them.
  private final Map<Node, String> circles = new HashMap<>();

  private int epoch;
  private long time;

  /// Adds a report of `rank`, which replaces the earlier one of the same thread.
  ///
  /// @param missing returns the ranks that a rank's wait needs
  BlockedWait.Answer report(
      int rank, BlockedWait wait, BiFunction<Integer, BlockedWait, List<Integer>> missing) {
    time++;
    if (wait.epoch() != epoch) {
      if (wait.epoch() < epoch) {
        return new BlockedWait.Answer(time, false, "");
      }
      epoch = wait.epoch();
      nodes.clear();
      circles.clear();
    }
    var waiter = new Waiter(rank, wait.thread());
    var before = nodes.get(waiter);
    boolean same = before != null && before.blocked.number() == wait.number();
    var node = new Node(rank, wait, same && before != null ? before.firstTime : time);
    nodes.put(waiter, node);
    var known = before == null ? null : circles.remove(before);
    if (same && known != null) {
      return new BlockedWait.Answer(time, false, known);
    }
    var times = nodes.values().stream().map(Node::firstTime).filter(node::lastsAt).toList();
    for (long moment : times) {
      var circle = circle(node, moment, missing);
      if (!circle.isEmpty()) {
        var text = describe(circle);
        circle.stream().filter(each -> !each.equals(node)).forEach(each -> circles.put(each, text));
        return new BlockedWait.Answer(time, false, text);
      }
    }
    return new BlockedWait.Answer(time, !circle(node, null, missing).isEmpty(), "");
  }

  /// Returns the shortest circle of waits from `start`; empty if there is none.
  ///
  /// @param moment time at which all of them lasted, and their ranks could not call; null for a
  ///   circle that is only possible
  private List<Node> circle(
      Node start, @Nullable Long moment, BiFunction<Integer, BlockedWait, List<Integer>> missing) {
    var cameFrom = new HashMap<Node, Node>();
    var reached = new ArrayDeque<>(List.of(start));
    while (!reached.isEmpty()) {
      var current = reached.remove();
      var needed = missing.apply(current.rank, current.blocked);
      for (var next : nodes.values()) {
        if (needed.contains(next.rank)
            && (moment == null || (next.lastsAt(moment) && blocks(next, current)))
            && cameFrom.putIfAbsent(next, current) == null) {
          if (next.equals(start)) {
            return path(start, cameFrom);
          }
          reached.add(next);
        }
      }
    }
    return List.of();
  }

  /// Returns true if a rank cannot make the call that another wait needs while its own wait lasts.
  private static boolean blocks(Node node, Node needing) {
    return node.blocked.alone()
        || (!node.blocked.scope().isEmpty()
            && node.blocked.scope().equals(needing.blocked.scope()));
  }

  private static List<Node> path(Node start, Map<Node, Node> cameFrom) {
    var circle = Stream.iterate(cameFrom.get(start), node -> !node.equals(start), cameFrom::get);
    var path = new ArrayList<>(circle.toList());
    path.add(start);
    Collections.reverse(path);
    int lowest = path.indexOf(Collections.min(path, Comparator.comparingInt(Node::rank)));
    Collections.rotate(path, -lowest);
    return path;
  }

  private static String describe(List<Node> circle) {
    var waits = new ArrayList<String>();
    for (int i = 0; i < circle.size(); i++) {
      waits.add(
          "rank %d waits for rank %d %s"
              .formatted(
                  circle.get(i).rank,
                  circle.get((i + 1) % circle.size()).rank,
                  circle.get(i).blocked.purpose()));
    }
    long messages = circle.stream().filter(node -> node.blocked.message()).count();
    var remedy =
        messages == circle.size()
            ? "call sendReceive(x, to, y, from) on every rank"
            : messages > 0
                ? "send and receive every message before the next call of both ranks"
                : "make these calls in the same order on every rank";
    return waits.stream().collect(Collectors.joining(", ", "ranks wait for each other: ", "; "))
        + remedy;
  }
}
