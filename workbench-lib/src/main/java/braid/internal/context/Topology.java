package braid.internal.context;

import braid.internal.rank.Env;
import braid.internal.rank.Waits;
import braid.internal.remote.HostIdentity;
import braid.internal.remote.Hosts;
import braid.internal.store.Meeting;
import braid.internal.store.Reply;
import braid.internal.store.Store;
import braid.internal.store.Ticket;
import braid.model.BraidException;
import java.nio.charset.StandardCharsets;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Finds the hosts of all ranks. Every rank joins a meeting with its identity when it starts,
/// without waiting, so that a group of some ranks can ask for the hosts later without the others.
final class Topology {
  private static final String LABEL = "hosts of the ranks";

  private final Env env;
  private final Store store;
  private final Waits waits;
  private @Nullable Ticket ticket;
  private int joinedEpoch;
  private volatile @Nullable Hosts found;

  Topology(Env env, Store store, Waits waits) {
    this.env = env;
    this.store = store;
    this.waits = waits;
    // Ranks that are threads share memory, unless a test names their hosts.
    if (env.world().size() == 1 || (env.store().isEmpty() && env.host().isEmpty())) {
      found = Hosts.one(env.host().orElseGet(HostIdentity::thisName), env.world().size());
    } else {
      var _ = join();
    }
  }

  private Ticket join() {
    joinedEpoch = waits.epoch();
    var members = IntStream.range(0, env.world().size()).boxed().toList();
    var mine = HostIdentity.ofThisProcess(env.host()).text().getBytes(StandardCharsets.UTF_8);
    var joined =
        store.join(new Meeting(joinedEpoch, "hosts@world." + joinedEpoch, LABEL, members), mine);
    ticket = joined;
    return joined;
  }

  Hosts hosts() {
    var known = found;
    return known == null ? await() : known;
  }

  private synchronized Hosts await() {
    var known = found;
    while (known == null) {
      var current = ticket;
      // A meeting of an epoch that ended before all ranks had started fails on all of them.
      var joined = current == null ? join() : current;
      var reply = waits.until(() -> LABEL, nanos -> waits.poll(joined.reply(), nanos));
      if (reply instanceof Reply.Values(var all)) {
        known =
            Hosts.of(
                all.stream()
                    .map(each -> HostIdentity.parse(new String(each, StandardCharsets.UTF_8)))
                    .toList());
        found = known;
      } else if (joinedEpoch == waits.epoch()) {
        throw new BraidException(
            "the hosts of the ranks are not known: " + reply + "; start all ranks together");
      } else {
        ticket = null;
      }
    }
    return known;
  }
}
