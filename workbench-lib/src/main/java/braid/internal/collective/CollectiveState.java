package braid.internal.collective;

import braid.internal.backend.Signals;
import braid.internal.memory.Counter;
import braid.internal.rank.Closing;
import braid.internal.resource.Rendezvous;
import braid.schedule.plan.CollectiveSpec;

/// State that the ranks of a group share for collectives, set up by all of them together. The
/// unique name distinguishes it from an earlier or later one.
record CollectiveState(String name, Signals signals, Mailbox mailbox, Messages messages)
    implements AutoCloseable {
  static CollectiveState of(CollectiveGroup group, Rendezvous rendezvous) {
    var place = group.place();
    int slots = CollectiveSpec.words(place.size());
    var signals =
        new Signals(
            group.symmetric().take("signals of collectives", Signals.bytes(slots)),
            group.ranks(),
            place.rank(),
            slots);
    try {
      var memory =
          group.backend().control("mail of collectives", Mailbox.bytes(place.size()), rendezvous);
      group.counters().add(Counter.RENDEZVOUS);
      var mailbox = new Mailbox(place, memory);
      return new CollectiveState(
          rendezvous.unique(),
          signals,
          mailbox,
          new Messages(mailbox, place, group.ranks(), group.scope(), group.waits()));
    } catch (RuntimeException | Error e) {
      signals.memory().spoil();
      throw e;
    }
  }

  /// Closes it after a failure. Other ranks may still access the memory, so it is not reused.
  void spoil() {
    Closing.each(signals.memory()::spoil, mailbox);
  }

  @Override
  public void close() {
    Closing.each(signals, mailbox);
  }
}
