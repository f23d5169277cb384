package braid.internal.collective;

import braid.Place;
import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.collective.Words.Signal;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.internal.work.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// One collective, laid out on this rank's streams. Every rank fetches what it is to have out of
/// the others' tensors and writes only its own: so nobody has to ask whether there is room
/// elsewhere.
///
/// ```
/// comm     begun -> all | await begun | fetch from r+1 | fetch from r+2 | read -> all | await read
/// reduce                              | this rank's own part            |
/// ```
///
/// When all of it is done, the result is there, and since all others have read what they need, what
/// this rank brought may be written again. Who is ahead or behind in earlier steps does not matter.
final class Pulling extends Form {
  private final Carriers carriers;

  Pulling(Place place, Words words, Carriers carriers, Supplier<String> what) {
    super(place, words, carriers, what);
    this.carriers = carriers;
  }

  @Override
  public void allGather(Shared x, Shared y) {
    begin();
    peers().forEach(this::awaitBegun);
    fetchAll(peer -> copy(x, peer, x.all(), y, slot(x, peer)));
    keepOwn(x, x.all(), y, slot(x, place.rank()));
    finish();
  }

  @Override
  public void allToAll(Shared x, Shared y) {
    begin();
    var mine = part(x, place.rank());
    peers().forEach(this::awaitBegun);
    fetchAll(peer -> copy(x, peer, mine, y, part(y, peer)));
    keepOwn(x, mine, y, mine);
    finish();
  }

  @Override
  public void reduceScatter(Shared x, Shared y) {
    begin();
    reduce(x, part(x, place.rank()), y, y.all());
    finish();
  }

  /// Each rank adds up a part, the others fetch it from there.
  ///
  /// ```
  /// comm     | part r of r+1 | of r+2 |             | part r+1 of y of r+1 | part r+2 ...
  /// reduce                            | sum, summed -> all
  ///                                                 ^ await summed from r+1
  /// ```
  ///
  /// Where `x` is `y`, a part is only written over once its sum is there, and so once its owner has
  /// read it everywhere.
  @Override
  public void allReduce(Shared x, Shared y) {
    begin();
    var mine = part(x, place.rank());
    reduce(x, mine, y, mine);
    // On the stream that adds: after the sum.
    peers().forEach(peer -> words.raise(adder, Signal.SUMMED, peer, what));
    for (int peer : peers()) {
      await(Signal.SUMMED, peer);
      fetch(y, peer, part(y, peer), y, part(y, peer));
    }
    finish();
  }

  /// Only the root waits for all.
  @Override
  public void broadcast(Shared x, int root) {
    if (place.rank() == root) {
      begin();
      peers().forEach(peer -> await(Signal.READ, peer));
    } else {
      awaitBegun(root);
      fetch(x, root, x.all(), x, x.all());
      words.raise(communication, Signal.READ, root, what);
    }
  }

  private void finish() {
    raise(Signal.READ);
    peers().forEach(peer -> await(Signal.READ, peer));
  }

  private void fetch(Shared from, int source, Elements some, Shared to, Elements place) {
    var copy = copy(from, source, some, to, place);
    copy(copy.from(), copy.to(), copy.work());
  }

  /// Something from every peer, on its way at once where the hardware can.
  private void fetchAll(IntFunction<Copy> fromPeer) {
    communication.copyAll(
        Work.of(() -> "the peers' parts of " + what.get()),
        peers().stream().map(fromPeer::apply).toList());
  }

  private Copy copy(Shared from, int source, Elements some, Shared to, Elements place) {
    return new Copy(
        Work.of(() -> from(source)), from.of(source, some), to.of(this.place.rank(), place));
  }

  private String from(int source) {
    return "rank %d's part of %s".formatted(source, what.get());
  }

  /// Adds up all ranks' `some` of `x`, in the order of the ranks, in fp32, and rounds once.
  ///
  /// ```
  /// comm     | chunk 0 of r+1 | of r+2 | chunk 1 of r+1 | of r+2 | chunk 2, in the room of 0
  /// reduce                             | sum 0 |                 | sum 1 |
  /// ```
  private void reduce(Shared x, Elements some, Shared y, Elements target) {
    peers().forEach(this::awaitBegun);
    if (place.size() == 1) {
      keepOwn(x, some, y, target);
      return;
    }
    long most = Carriers.CHUNK_BYTES / x.dtype().bytes();
    var done = new ArrayList<Event>();
    for (int chunk = 0; chunk < some.chunks(most); chunk++) {
      if (chunk >= Carriers.ROOMS) {
        communication.await(work(chunk, "room for"), done.get(chunk - Carriers.ROOMS));
      }
      var piece = some.chunk(chunk, most);
      int at = chunk;
      fetchAll(
          peer -> {
            var from = x.of(peer, piece);
            return new Copy(
                new Work(at, () -> "chunk %d of %s".formatted(at, from(peer))),
                from,
                carriers.inbox(at, peer, from.byteSize()));
          });
      adder.await(work(chunk, "the parts of"), communication.mark());
      var sum = y.row(place.rank(), target.chunk(chunk, most));
      adder.reduce(
          work(chunk, "the sum of"),
          new Reduction(parts(x, piece, chunk, sum), sum, Epilogue.NONE));
      done.add(adder.mark());
    }
  }

  /// What is added up of a chunk, in the order of the ranks. This rank's own is moved out of the
  /// way where the sum is written over it.
  private List<Matrix> parts(Shared x, Elements piece, int chunk, Matrix sum) {
    var own = x.row(place.rank(), piece);
    boolean inPlace = own.segment().address() == sum.segment().address();
    long bytes = own.bytes().byteSize();
    if (inPlace) {
      adder.copyLocal(
          work(chunk, "the own part of"), own.bytes(), carriers.inbox(chunk, place.rank(), bytes));
    }
    return IntStream.range(0, place.size())
        .mapToObj(
            source ->
                source == place.rank() && !inPlace
                    ? own
                    : Matrix.of(carriers.inbox(chunk, source, bytes), x.dtype(), 1, own.columns()))
        .toList();
  }

  private Work work(int chunk, String step) {
    return new Work(chunk, () -> "%s chunk %d of %s".formatted(step, chunk, what.get()));
  }
}
