package braid.internal.collective;

import braid.internal.backend.Backend;
import braid.internal.memory.Calls;
import braid.internal.memory.Counters;
import braid.internal.rank.Waits;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricSource;
import braid.model.Place;
import java.util.List;
import java.util.function.Supplier;

/// The group of a [CollectiveEngine]: the services that collectives need.
///
/// @param ranks the members' ranks in the world
/// @param symmetric allocates memory that the streams of all ranks reach
public record CollectiveGroup(
    String name,
    Place place,
    List<Integer> ranks,
    Backend backend,
    Waits waits,
    Calls calls,
    Counters counters,
    SymmetricSource symmetric,
    Supplier<Rendezvous> rendezvous) {
  /// Returns the name of these collectives, the same on all ranks; see [braid.internal.rank.Need].
  String scope() {
    return "%s %s".formatted(name, ranks);
  }
}
