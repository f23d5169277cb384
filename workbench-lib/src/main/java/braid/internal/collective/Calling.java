package braid.internal.collective;

import braid.Place;
import braid.internal.collective.Words.Signal;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryCollectives.Before;
import braid.internal.library.Piece;
import braid.internal.library.Request;
import braid.internal.work.Work;
import java.util.function.Supplier;

/// A library makes it; ranks tell each other before and after what the library does not.
///
/// ```
/// comm     (begun -> all | await begun) | the library's call | (landed -> all | await landed)
/// ```
final class Calling extends Form {
  private final LibraryCollectives library;

  Calling(
      Place place,
      Words words,
      Carriers carriers,
      LibraryCollectives library,
      Supplier<String> what) {
    super(place, words, carriers, what);
    this.library = library;
  }

  @Override
  public void allGather(Shared x, Shared y) {
    make(Request.Kind.ALL_GATHER, x, y, 0);
  }

  @Override
  public void allToAll(Shared x, Shared y) {
    make(Request.Kind.ALL_TO_ALL, x, y, 0);
  }

  @Override
  public void broadcast(Shared x, int root) {
    make(Request.Kind.BROADCAST, x, x, root);
  }

  @Override
  public void reduceScatter(Shared x, Shared y) {
    make(Request.Kind.REDUCE_SCATTER, x, y, 0);
  }

  @Override
  public void allReduce(Shared x, Shared y) {
    make(Request.Kind.ALL_REDUCE, x, y, 0);
  }

  private void make(Request.Kind kind, Shared x, Shared y, int root) {
    var request = new Request(kind, own(x), own(y), root);
    var before = library.before(request);
    if (before != Before.NOTHING) {
      barrier();
    }
    if (before == Before.COME_ON_HOST) {
      communication.synchronize(() -> "all ranks to come to " + what.get());
    }
    communication.library(Work.of(what), request.linkBytes(place.size()), library.call(request));
    if (library.endsUnsaid()) {
      raise(Signal.LANDED);
      peers().forEach(peer -> await(Signal.LANDED, peer));
    }
  }

  private Piece own(Shared of) {
    return new Piece(of.dtype(), of.of(place.rank(), of.all()), of.attachment());
  }
}
