package braid.internal.collective;

import braid.Place;
import braid.internal.backend.Stream;
import braid.internal.collective.Words.Signal;
import braid.internal.work.Work;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// One collective, as it is laid out on this rank's streams. What a form cannot make is refused
/// before it comes here ([braid.Capabilities]).
public abstract sealed class Form permits Pulling, Pushing, Calling {
  final Place place;
  final Words words;
  final Stream communication;
  final Stream adder;
  final Supplier<String> what;

  Form(Place place, Words words, Carriers carriers, Supplier<String> what) {
    this.place = place;
    this.words = words;
    this.communication = carriers.communication();
    this.adder = carriers.adder();
    this.what = what;
  }

  /// Every rank's `x` comes to its place in `y`.
  public abstract void allGather(Shared x, Shared y);

  /// Every rank's part for this rank comes to that rank's place.
  public abstract void allToAll(Shared x, Shared y);

  /// The root's `x`, everywhere.
  public abstract void broadcast(Shared x, int root);

  /// This rank's part of the sum of all `x`.
  public abstract void reduceScatter(Shared x, Shared y);

  /// The sum of all `x`, which may be `y`.
  public abstract void allReduce(Shared x, Shared y);

  /// Every rank has come here.
  public final void barrier() {
    begin();
    peers().forEach(this::awaitBegun);
  }

  /// The others, the next one first, so that not all of them deal with the same.
  final List<Integer> peers() {
    return IntStream.range(1, place.size())
        .map(i -> (place.rank() + i) % place.size())
        .boxed()
        .toList();
  }

  static Elements slot(Shared of, int rank) {
    return new Elements(rank * of.elements(), of.elements());
  }

  final Elements part(Shared of, int rank) {
    return Elements.of(of.elements(), place.size(), rank);
  }

  final void begin() {
    raise(Signal.BEGUN);
  }

  final void awaitBegun(int peer) {
    await(Signal.BEGUN, peer);
  }

  final void raise(Signal signal) {
    peers().forEach(peer -> words.raise(communication, signal, peer, what));
  }

  final void await(Signal signal, int peer) {
    words.await(communication, signal, peer, what);
  }

  final void copy(MemorySegment from, MemorySegment to, Work work) {
    if (from.byteSize() > 0) {
      communication.copy(work, from, to);
    }
  }

  final void keepOwn(Shared from, Elements some, Shared to, Elements target) {
    var source = from.of(place.rank(), some);
    var own = to.of(place.rank(), target);
    if (source.address() != own.address() && source.byteSize() > 0) {
      adder.copyLocal(Work.of(() -> "the own part of " + what.get()), source, own);
    }
  }
}
