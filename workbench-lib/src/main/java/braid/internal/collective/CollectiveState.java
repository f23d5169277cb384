package braid.internal.collective;

import braid.internal.backend.Signals;
import braid.internal.memory.Counter;
import braid.internal.rank.Closing;
import braid.internal.resource.Rendezvous;
import braid.schedule.CollectiveSpec;

/// What the ranks of a group share to make collectives, set up by all of them together. The name
/// tells it from what they set up before or after.
record CollectiveState(String name, Signals words, Mailbox mailbox, Messages courier)
    implements AutoCloseable {
  static CollectiveState of(CollectiveGroup setting, Rendezvous rendezvous) {
    var place = setting.place();
    int slots = CollectiveSpec.words(place.size());
    var words =
        new Signals(
            setting.symmetric().take("signals of collectives", Signals.bytes(slots)),
            setting.ranks(),
            place.rank(),
            slots);
    try {
      var memory =
          setting.backend().control("mail of collectives", Mailbox.bytes(place.size()), rendezvous);
      setting.counters().add(Counter.RENDEZVOUS);
      var mailbox = new Mailbox(place, memory);
      return new CollectiveState(
          rendezvous.unique(),
          words,
          mailbox,
          new Messages(mailbox, place, setting.ranks(), setting.waits()));
    } catch (RuntimeException | Error e) {
      words.memory().spoil();
      throw e;
    }
  }

  /// It broke off, and others may still be at it: nobody is to use its memory again.
  void spoil() {
    Closing.each(words.memory()::spoil, mailbox);
  }

  @Override
  public void close() {
    Closing.each(words, mailbox);
  }
}
