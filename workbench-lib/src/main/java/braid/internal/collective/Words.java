package braid.internal.collective;

import braid.Place;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Work;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;

/// The signals of a collective. Each is a word of the rank that waits for it and carries the step,
/// which counts the collectives of the group, so none is ever taken back:
///
/// | signal | raised by | waited for by | says |
/// |---|---|---|---|
/// | begun | each rank, to whoever reads its tensors or writes to them | that one, before it does | what this rank brings to this step is written, what it is to get may be |
/// | summed | who adds up a part, to all others | the others, before they fetch it | the sum is there, and all that it was made of has been read |
/// | read | the reader, to the source | the source, at the end of the step | its tensors are read no more |
/// | landed | who wrote into a rank, to it | that rank, at the end of the step | it is there |
///
/// A rank that is ahead has raised a later step, which is as good: it could not be there otherwise.
final class Words implements AutoCloseable {
  enum Signal {
    BEGUN(0),
    SUMMED(1),
    READ(2),
    LANDED(3);

    private final int position;

    Signal(int position) {
      this.position = position;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final Place place;
  private final Signals signals;

  /// @param memory of [#bytes] on each rank
  /// @param ranks the members' ranks in the world
  Words(Place place, List<Integer> ranks, SymmetricMemory memory) {
    this.place = place;
    this.signals = new Signals(memory, ranks, place.rank(), slots(place.size()));
  }

  /// What a rank needs for its words.
  static long bytes(int ranks) {
    return Signals.bytes(slots(ranks));
  }

  private static int slots(int ranks) {
    return Signal.values().length * ranks;
  }

  /// Matches [#await] of the same signal on that rank.
  void raise(Stream stream, Signal signal, int to, Supplier<String> what) {
    stream.raise(
        Work.of(() -> "signal %s to rank %d of %s".formatted(signal, to, what.get())),
        signals,
        to,
        slot(signal, place.rank()));
  }

  /// Matches [#raise] of the same signal on that rank.
  void await(Stream stream, Signal signal, int from, Supplier<String> what) {
    stream.await(
        Work.of(() -> "signal %s from rank %d of %s".formatted(signal, from, what.get())),
        signals,
        slot(signal, from),
        from);
  }

  private int slot(Signal signal, int raiser) {
    return signal.position * place.size() + raiser;
  }

  /// Others may still raise them, so they are not to be used again.
  void spoil() {
    signals.memory().spoil();
  }

  @Override
  public void close() {
    signals.close();
  }
}
