package braid;

import braid.internal.context.RankContext;
import braid.internal.rank.Closing;
import braid.model.BraidException;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A rank's groups by name. Closing a group frees its name. A later group with the same name is a
/// new group, but continues the old one's count of calls, so that it never receives a message for
/// the old one.
final class GroupRegistry implements RankContext.RankLocal {
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-]{1,64}");
  private static final String WORLD = "world";

  private final RankContext context;
  private final Map<String, ProcessGroup> groups = new HashMap<>();
  private final Map<String, Integer> counts = new HashMap<>();
  private final Map<String, Integer> restarts = new HashMap<>();
  private int epoch;

  GroupRegistry(RankContext context) {
    this.context = context;
  }

  static GroupRegistry current() {
    return of(RankContext.current());
  }

  static GroupRegistry of(RankContext context) {
    return context.rankLocal(GroupRegistry.class, GroupRegistry::new);
  }

  RankContext context() {
    return context;
  }

  synchronized ProcessGroup world() {
    return get(null, WORLD, IntStream.range(0, context.place().size()).boxed().toList());
  }

  synchronized ProcessGroup subset(ProcessGroup parent, String name, int... ranks) {
    if (!NAME.matcher(name).matches() || name.equals(WORLD)) {
      throw new BraidException(
          "a group's name must be 1 to 64 letters, digits, - or _, and not world, but was `%s`"
              .formatted(name));
    }
    var members = members(parent, name, ranks);
    return get(parent, qualified(parent, name), members);
  }

  private static String qualified(ProcessGroup parent, String name) {
    return parent.name().equals(WORLD) ? name : parent.name() + "." + name;
  }

  private static List<Integer> members(ProcessGroup parent, String name, int... ranks) {
    int[] sorted = Arrays.stream(ranks).sorted().distinct().toArray();
    if (ranks.length == 0 || sorted.length != ranks.length) {
      throw new BraidException(
          "group `%s` needs 1 or more ranks, each once, but was given %s"
              .formatted(name, Arrays.toString(ranks)));
    }
    if (sorted[0] < 0 || sorted[sorted.length - 1] >= parent.size()) {
      throw new BraidException(
          "ranks of group `%s` must be 0..%d (those of group `%s`) but were %s"
              .formatted(name, parent.size() - 1, parent.name(), Arrays.toString(ranks)));
    }
    return Arrays.stream(sorted).mapToObj(parent.members()::get).toList();
  }

  private ProcessGroup get(@Nullable ProcessGroup parent, String name, List<Integer> members) {
    var existing = groups.get(name);
    if (existing != null) {
      if (!existing.members().equals(members)) {
        throw new BraidException(
            "group `%s` has ranks %s but was requested with %s; close it first, or use another name"
                .formatted(
                    name, ProcessGroup.numbers(existing.members()), ProcessGroup.numbers(members)));
      }
      return existing;
    }
    var group = new ProcessGroup(this, parent, name, members);
    groups.put(name, group);
    if (parent != null) {
      parent.own(group);
    }
    return group;
  }

  /// Returns a name for the next call that all members make: the same on all of them, and used only
  /// once. The count restarts in every epoch, since ranks have different counts after a failed
  /// cell.
  ///
  /// The count belongs to the group's name and members, not to the group object. A group that is
  /// closed and created again must not use a name twice, and groups of other ranks may have the
  /// same group name, such as "my half".
  synchronized String next(ProcessGroup group) {
    var key = countKey(group);
    var name = "%s.%d".formatted(key, restarts.getOrDefault(key, 0));
    return name + "." + counts.merge(name, 1, Integer::sum);
  }

  /// Restarts the count of the group within an epoch. All members do this after they made different
  /// calls, because their counts may differ then.
  synchronized void restartCount(ProcessGroup group) {
    restarts.merge(countKey(group), 1, Integer::sum);
  }

  private String countKey(ProcessGroup group) {
    int current = context.waits().epoch();
    if (epoch != current) {
      epoch = current;
      counts.clear();
      restarts.clear();
    }
    return "%s@%s.%d".formatted(group.name(), bitmask(group.members()), epoch);
  }

  private static String bitmask(List<Integer> members) {
    var bitmask = BigInteger.ZERO;
    for (int rank : members) {
      bitmask = bitmask.setBit(rank);
    }
    return bitmask.toString(Character.MAX_RADIX);
  }

  /// Returns the names of the open groups.
  synchronized Set<String> names() {
    return Set.copyOf(groups.keySet());
  }

  synchronized void forget(ProcessGroup group) {
    groups.remove(group.name(), group);
  }

  @Override
  public synchronized List<String> unfinished() {
    return groups.values().stream().flatMap(group -> group.unfinished().stream()).toList();
  }

  @Override
  public void close() {
    List<ProcessGroup> open;
    synchronized (this) {
      open = List.copyOf(groups.values());
    }
    var remaining = open.iterator();
    Closing.all(() -> remaining.hasNext() ? remaining.next() : null);
  }
}
