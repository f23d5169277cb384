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

/// A rank's groups by name. A name that is closed is forgotten; asked for again it is a new group,
/// whose calls are counted on from the old one's, so that nothing said to that one reaches it.
final class GroupRegistry implements RankContext.RankLocal {
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-]{1,64}");
  private static final String WORLD = "world";

  private final RankContext context;
  private final Map<String, ProcessGroup> groups = new HashMap<>();
  private final Map<String, Integer> counts = new HashMap<>();
  private final Map<String, Integer> renewals = new HashMap<>();
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
    return get(parent, full(parent, name), members);
  }

  private static String full(ProcessGroup parent, String name) {
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
            "group `%s` is of ranks %s but was asked for with %s; close it first, or take another name"
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

  /// A name for the next thing the members do together, the same on all of them and no other's. The
  /// epoch begins the count anew, since a cell that failed leaves ranks at different counts.
  ///
  /// It is kept by name and members, not in the group: a group that is closed and asked for again
  /// must not use a name twice, and groups of other ranks may go by the same name ("my half").
  synchronized String next(ProcessGroup group) {
    var members = named(group);
    var name = "%s.%d".formatted(members, renewals.getOrDefault(members, 0));
    return name + "." + counts.merge(name, 1, Integer::sum);
  }

  /// Begins the count anew within an epoch: the members called different things, and may have
  /// counted differently. All of them do it.
  synchronized void renew(ProcessGroup group) {
    renewals.merge(named(group), 1, Integer::sum);
  }

  private String named(ProcessGroup group) {
    int current = context.waits().epoch();
    if (epoch != current) {
      epoch = current;
      counts.clear();
      renewals.clear();
    }
    return "%s@%s.%d".formatted(group.name(), digits(group.members()), epoch);
  }

  private static String digits(List<Integer> members) {
    var digits = BigInteger.ZERO;
    for (int rank : members) {
      digits = digits.setBit(rank);
    }
    return digits.toString(Character.MAX_RADIX);
  }

  /// The names in use.
  synchronized Set<String> names() {
    return Set.copyOf(groups.keySet());
  }

  synchronized void forget(ProcessGroup group) {
    groups.remove(group.name(), group);
  }

  @Override
  public void close() {
    List<ProcessGroup> open;
    synchronized (this) {
      open = List.copyOf(groups.values());
    }
    var left = open.iterator();
    Closing.all(() -> left.hasNext() ? left.next() : null);
  }
}
