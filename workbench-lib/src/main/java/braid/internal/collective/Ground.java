package braid.internal.collective;

import braid.internal.memory.Counter;
import braid.internal.rank.Closing;
import braid.internal.resource.Rendezvous;

/// What the ranks of a group share to make collectives, set up by all of them together. The name
/// tells it from what they set up before or after.
record Ground(String name, Words words, Mailbox mailbox, Courier courier) implements AutoCloseable {
  static Ground of(Setting setting, Rendezvous rendezvous) {
    var place = setting.place();
    var words =
        new Words(
            place,
            setting.ranks(),
            setting.symmetric().take("signals of collectives", Words.bytes(place.size())));
    try {
      var memory =
          setting.backend().control("mail of collectives", Mailbox.bytes(place.size()), rendezvous);
      setting.counters().add(Counter.RENDEZVOUS);
      var mailbox = new Mailbox(place, memory);
      return new Ground(
          rendezvous.unique(),
          words,
          mailbox,
          new Courier(mailbox, place, setting.ranks(), setting.waits()));
    } catch (RuntimeException | Error e) {
      words.spoil();
      throw e;
    }
  }

  /// It broke off, and others may still be at it: nobody is to use its memory again.
  void spoil() {
    Closing.each(words::spoil, mailbox);
  }

  @Override
  public void close() {
    Closing.each(words, mailbox);
  }
}
