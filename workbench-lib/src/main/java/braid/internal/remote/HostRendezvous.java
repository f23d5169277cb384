package braid.internal.remote;

import braid.internal.resource.Rendezvous;
import braid.model.Host;
import braid.model.Place;
import java.util.List;

/// The part of a rendezvous whose members are on this rank's host. All hosts exchange together, and
/// an outcome of another host that fails the call there fails it here too.
///
/// @param rendezvous of all members
/// @param host this rank's
/// @param others the other hosts
/// @param requirement on the outcomes of each of them
record HostRendezvous(Rendezvous rendezvous, Host host, List<Host> others, Requirement requirement)
    implements Rendezvous {
  /// Rule for the outcomes of the members on one host.
  @FunctionalInterface
  interface Requirement {
    /// @param ranks in the world, of those members
    void check(String label, List<Integer> ranks, List<String> outcomes);
  }

  @Override
  public Place place() {
    return new Place(host.ranks().indexOf(rendezvous.place().rank()), host.ranks().size());
  }

  @Override
  public List<Integer> ranks() {
    return ranks(host);
  }

  private List<Integer> ranks(Host one) {
    return one.ranks().stream().map(rendezvous.ranks()::get).toList();
  }

  /// Differs between hosts, because a test may give one machine the names of several.
  @Override
  public String unique() {
    return rendezvous.unique() + "@" + host.name();
  }

  @Override
  public List<String> exchange(String label, String value) {
    var all = rendezvous.exchange(label, value);
    for (var other : others) {
      requirement.check(label, ranks(other), outcomes(other, all));
    }
    return outcomes(host, all);
  }

  private static List<String> outcomes(Host one, List<String> all) {
    return one.ranks().stream().map(all::get).toList();
  }
}
