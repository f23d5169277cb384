package braid.internal.cuda.device;

import braid.internal.cuda.device.Communicators.Policy;
import braid.internal.rank.Closing;
import braid.internal.rank.Once;
import braid.internal.resource.Rendezvous;
import braid.model.Place;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Communicators of this rank with their users: one for each set of ranks and policy.
///
/// NCCL's closing waits, without a time limit, until the other ranks close it too. But users end on
/// each rank without waiting for the others, possibly much later there. So a communicator without
/// users is only closed when its ranks meet again, to set up symmetric memory or a library: each
/// adds the ids of its unused communicators to the value that it exchanges, and all close those
/// that every one of their ranks has named, in the order of their creation.
///
/// ```
/// rank 0   last user of a ends ...... set-up: a is unused ─┬─ closes a
/// rank 1   ...... last user of a ends set-up: a is unused ─┘─ closes a
/// ```
///
/// @param <C> the communicators
public final class SharedCommunicators<C extends AutoCloseable> {
  private static final String SEPARATOR = ",";
  private static final char END = ';';

  /// @param ranks the members, in the world
  /// @param channel name of the channel of its two ranks; empty for one of a group. Those of
  ///   channels are kept without users, since they are few and take long to make
  public record Key(List<Integer> ranks, Policy policy, String channel) {
    public Key {
      ranks = List.copyOf(ranks);
    }

    boolean isOfChannel() {
      return !channel.isEmpty();
    }
  }

  /// @param id with which the ranks joined, so that they can check that all have the same
  private record Entry<C>(Key key, String id, C communicator) {}

  /// Use of a communicator, which closing ends without waiting for other ranks. May be closed
  /// twice.
  public static final class Lease<C> implements AutoCloseable {
    private final C communicator;
    private final Runnable end;

    private Lease(C communicator, Runnable end) {
      this.communicator = communicator;
      this.end = new Once(end);
    }

    public C communicator() {
      return communicator;
    }

    @Override
    public void close() {
      end.run();
    }
  }

  /// In the order of creation, which is the same on all ranks.
  private final Map<Key, Entry<C>> entries = new LinkedHashMap<>();

  /// Leases that have not ended.
  private final List<Entry<C>> used = new ArrayList<>();

  /// Returns the id of the communicator, if there is one.
  synchronized Optional<String> id(Key key) {
    return Optional.ofNullable(entries.get(key)).map(Entry::id);
  }

  /// Begins a use of the communicator, if there is one.
  synchronized Optional<Lease<C>> lease(Key key) {
    return Optional.ofNullable(entries.get(key)).map(this::lease);
  }

  /// Adds a communicator, with its first use.
  synchronized Lease<C> add(Key key, String id, C communicator) {
    var entry = new Entry<>(key, id, communicator);
    entries.put(key, entry);
    return lease(entry);
  }

  private Lease<C> lease(Entry<C> entry) {
    used.add(entry);
    return new Lease<>(entry.communicator(), () -> end(entry));
  }

  private synchronized void end(Entry<C> entry) {
    used.remove(entry);
  }

  synchronized List<C> all() {
    return entries.values().stream().map(Entry::communicator).toList();
  }

  /// Removes a communicator, which the caller closes or aborts.
  synchronized void remove(C communicator) {
    entries.values().removeIf(each -> each.communicator().equals(communicator));
  }

  /// Removes all communicators, which the caller closes or aborts.
  synchronized List<C> removeAll() {
    var all = all();
    entries.clear();
    return all;
  }

  /// Returns a rendezvous whose first exchange also closes the communicators that none of their
  /// ranks uses.
  Rendezvous closingUnused(Rendezvous rendezvous) {
    return new ClosingRendezvous(rendezvous);
  }

  private synchronized List<Entry<C>> unused(List<Integer> ranks) {
    return entries.values().stream()
        .filter(each -> !each.key().isOfChannel())
        .filter(each -> !used.contains(each) && ranks.containsAll(each.key().ranks()))
        .toList();
  }

  /// @param named ids of unused communicators by rank in the world
  private void close(Map<Integer, Set<String>> named, List<Integer> ranks) {
    var closing = new ArrayDeque<AutoCloseable>();
    synchronized (this) {
      for (var each : unused(ranks)) {
        if (each.key().ranks().stream()
            .allMatch(rank -> named.getOrDefault(rank, Set.of()).contains(each.id()))) {
          entries.remove(each.key());
          closing.add(each.communicator());
        }
      }
    }
    Closing.all(closing::poll);
  }

  private final class ClosingRendezvous implements Rendezvous {
    private final Rendezvous rendezvous;
    private boolean met;

    ClosingRendezvous(Rendezvous rendezvous) {
      this.rendezvous = rendezvous;
    }

    @Override
    public Place place() {
      return rendezvous.place();
    }

    @Override
    public List<Integer> ranks() {
      return rendezvous.ranks();
    }

    @Override
    public String unique() {
      return rendezvous.unique();
    }

    @Override
    public List<String> exchange(String label, String value) {
      if (met) {
        return rendezvous.exchange(label, value);
      }
      met = true;
      var ids = unused(ranks()).stream().map(Entry::id).toList();
      var named = new LinkedHashMap<Integer, Set<String>>();
      var values = new ArrayList<String>();
      for (var each : rendezvous.exchange(label, String.join(SEPARATOR, ids) + END + value)) {
        int end = each.indexOf(END);
        named.put(ranks().get(values.size()), Set.of(each.substring(0, end).split(SEPARATOR, -1)));
        values.add(each.substring(end + 1));
      }
      close(named, ranks());
      return values;
    }
  }
}
