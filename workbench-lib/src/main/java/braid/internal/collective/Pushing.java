package braid.internal.collective;

import braid.Place;
import braid.internal.collective.Words.Signal;
import braid.internal.work.Work;
import java.util.function.Supplier;

/// Every rank writes what it brings into the others' tensors. A rank says when its own may be
/// written, and a writer when it has.
///
/// ```
/// comm     begun -> all | await begun of r+1 | write to r+1 | landed -> r+1 | ... | await landed
/// reduce   this rank's own part
/// ```
///
/// When all of it is done, what this rank brought has been read, by itself, and everything for it
/// is there. What is added up must be fetched to where it is added, so there are no sums.
final class Pushing extends Form {
  Pushing(Place place, Words words, Carriers carriers, Supplier<String> what) {
    super(place, words, carriers, what);
  }

  @Override
  public void allGather(Shared x, Shared y) {
    begin();
    var mine = slot(x, place.rank());
    peers().forEach(peer -> push(peer, x, x.all(), y, mine));
    keepOwn(x, x.all(), y, mine);
    peers().forEach(peer -> await(Signal.LANDED, peer));
  }

  @Override
  public void allToAll(Shared x, Shared y) {
    begin();
    var mine = part(y, place.rank());
    peers().forEach(peer -> push(peer, x, part(x, peer), y, mine));
    keepOwn(x, mine, y, mine);
    peers().forEach(peer -> await(Signal.LANDED, peer));
  }

  /// Only the root waits for all.
  @Override
  public void broadcast(Shared x, int root) {
    if (place.rank() == root) {
      peers().forEach(peer -> push(peer, x, x.all(), x, x.all()));
    } else {
      words.raise(communication, Signal.BEGUN, root, what);
      await(Signal.LANDED, root);
    }
  }

  private void push(int peer, Shared from, Elements some, Shared to, Elements target) {
    awaitBegun(peer);
    copy(
        from.of(place.rank(), some),
        to.of(peer, target),
        Work.of(() -> "the part for rank %d of %s".formatted(peer, what.get())));
    words.raise(communication, Signal.LANDED, peer, what);
  }

  @Override
  public void reduceScatter(Shared x, Shared y) {
    throw noSums();
  }

  @Override
  public void allReduce(Shared x, Shared y) {
    throw noSums();
  }

  private IllegalStateException noSums() {
    return new IllegalStateException("nothing is added up by pushing: " + what.get());
  }
}
