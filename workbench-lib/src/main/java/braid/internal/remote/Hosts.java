package braid.internal.remote;

import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Host;
import braid.model.MemoryKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.IntStream;

/// Hosts of the ranks of the world, numbered in the order of their first ranks.
///
/// @param names by host
/// @param numbers by rank, the number of its host
public record Hosts(List<String> names, List<Integer> numbers) {
  public Hosts {
    names = List.copyOf(names);
    numbers = List.copyOf(numbers);
  }

  /// Returns the hosts of ranks that are on one.
  public static Hosts one(String name, int ranks) {
    return new Hosts(List.of(name), IntStream.range(0, ranks).mapToObj(_ -> 0).toList());
  }

  /// Returns the hosts of ranks with these identities. Different hosts of one name get numbers.
  public static Hosts of(List<HostIdentity> identities) {
    var known = new LinkedHashMap<HostIdentity, Integer>();
    var names = new ArrayList<String>();
    var numbers = new ArrayList<Integer>();
    for (var each : identities) {
      var number = known.get(each);
      if (number == null) {
        number = known.size();
        known.put(each, number);
        names.add(unused(each.name(), names));
      }
      numbers.add(number);
    }
    return new Hosts(names, numbers);
  }

  private static String unused(String name, List<String> names) {
    var free = name;
    for (int i = 2; names.contains(free); i++) {
      free = name + "-" + i;
    }
    return free;
  }

  /// Returns the number of a rank's host.
  public int number(int rank) {
    return numbers.get(rank);
  }

  /// Returns the name of a rank's host.
  public String name(int rank) {
    return names.get(number(rank));
  }

  public boolean share(int rank, int another) {
    return number(rank) == number(another);
  }

  /// Returns whether these ranks are on more than one host.
  public boolean areSeveral(List<Integer> ranks) {
    return ranks.stream().anyMatch(rank -> !share(rank, ranks.getFirst()));
  }

  /// Returns the hosts of the members of a group, with the members' numbers in it.
  ///
  /// @param ranks the members' ranks in the world
  public List<Host> members(List<Integer> ranks) {
    return IntStream.range(0, names.size())
        .mapToObj(host -> new Host(names.get(host), numbersOn(host, ranks)))
        .filter(host -> !host.ranks().isEmpty())
        .toList();
  }

  /// Requires that ranks on these hosts can share memory of the kind.
  public void requireSpan(MemoryKind kind, BackendKind backend, List<Integer> ranks) {
    int hosts = members(ranks).size();
    var span = kind.span(backend);
    if (!span.covers(hosts)) {
      throw new BraidException(
          "memory kind %s spans %s but ranks %s are on %d hosts; make a group of the ranks of one host: world.local()"
              .formatted(kind, span, ranks, hosts));
    }
  }

  private List<Integer> numbersOn(int host, List<Integer> ranks) {
    return IntStream.range(0, ranks.size())
        .filter(member -> number(ranks.get(member)) == host)
        .boxed()
        .toList();
  }
}
