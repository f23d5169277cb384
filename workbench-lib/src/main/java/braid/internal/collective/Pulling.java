package braid.internal.collective;

import braid.Place;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.collective.Words.Signal;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.internal.work.Work;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
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
public final class Pulling {
  private final Place place;
  private final Words words;
  private final Carriers carriers;
  private final Stream communication;
  private final Stream adder;
  private final Supplier<String> what;

  Pulling(Place place, Words words, Carriers carriers, Supplier<String> what) {
    this.place = place;
    this.words = words;
    this.carriers = carriers;
    this.communication = carriers.communication();
    this.adder = carriers.adder();
    this.what = what;
  }

  /// The others, the next one first, so that not all of them fetch from the same.
  private List<Integer> peers() {
    return IntStream.range(1, place.size())
        .map(i -> (place.rank() + i) % place.size())
        .boxed()
        .toList();
  }

  /// Every rank's `x` comes to its place in `y`.
  public void allGather(Shared x, Shared y) {
    begin();
    for (int peer : peers()) {
      awaitBegun(peer);
      fetch(x, peer, x.all(), y, slot(x, peer));
    }
    keepOwn(x, x.all(), y, slot(x, place.rank()));
    finish();
  }

  private static Elements slot(Shared of, int rank) {
    return new Elements(rank * of.elements(), of.elements());
  }

  /// Every rank's part for this rank comes to that rank's place.
  public void allToAll(Shared x, Shared y) {
    begin();
    var mine = part(x, place.rank());
    for (int peer : peers()) {
      awaitBegun(peer);
      fetch(x, peer, mine, y, part(y, peer));
    }
    keepOwn(x, mine, y, mine);
    finish();
  }

  private Elements part(Shared of, int rank) {
    return Elements.of(of.elements(), place.size(), rank);
  }

  /// This rank's part of the sum of all `x`.
  public void reduceScatter(Shared x, Shared y) {
    begin();
    reduce(x, part(x, place.rank()), y, y.all());
    finish();
  }

  /// The sum of all `x`, which may be `y`: each rank adds up a part, the others fetch it from
  /// there.
  ///
  /// ```
  /// comm     | part r of r+1 | of r+2 |             | part r+1 of y of r+1 | part r+2 ...
  /// reduce                            | sum, summed -> all
  ///                                                 ^ await summed from r+1
  /// ```
  ///
  /// Where `x` is `y`, a part is only written over once its sum is there, and so once its owner has
  /// read it everywhere.
  public void allReduce(Shared x, Shared y) {
    begin();
    var mine = part(x, place.rank());
    reduce(x, mine, y, mine);
    // On the stream that adds: after the sum.
    peers().forEach(peer -> words.raise(adder, Signal.SUMMED, peer, what));
    for (int peer : peers()) {
      words.await(communication, Signal.SUMMED, peer, what);
      fetch(y, peer, part(y, peer), y, part(y, peer));
    }
    finish();
  }

  /// The root's `x`, everywhere. Only the root waits for all.
  public void broadcast(Shared x, int root) {
    if (place.rank() == root) {
      begin();
      peers().forEach(peer -> words.await(communication, Signal.READ, peer, what));
    } else {
      awaitBegun(root);
      fetch(x, root, x.all(), x, x.all());
      words.raise(communication, Signal.READ, root, what);
    }
  }

  /// Every rank has come here.
  public void barrier() {
    begin();
    peers().forEach(this::awaitBegun);
  }

  private void begin() {
    peers().forEach(peer -> words.raise(communication, Signal.BEGUN, peer, what));
  }

  private void awaitBegun(int peer) {
    words.await(communication, Signal.BEGUN, peer, what);
  }

  private void finish() {
    peers().forEach(peer -> words.raise(communication, Signal.READ, peer, what));
    peers().forEach(peer -> words.await(communication, Signal.READ, peer, what));
  }

  private void fetch(Shared from, int source, Elements some, Shared to, Elements place) {
    copy(from.of(source, some), to.of(this.place.rank(), place), Work.of(() -> from(source)));
  }

  private void copy(MemorySegment from, MemorySegment to, Work work) {
    if (from.byteSize() > 0) {
      communication.copy(work, from, to);
    }
  }

  private String from(int source) {
    return "rank %d's part of %s".formatted(source, what.get());
  }

  private void keepOwn(Shared from, Elements some, Shared to, Elements place) {
    var source = from.of(this.place.rank(), some);
    var target = to.of(this.place.rank(), place);
    if (source.address() != target.address() && source.byteSize() > 0) {
      adder.copyLocal(Work.of(() -> "the own part of " + what.get()), source, target);
    }
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
      for (int peer : peers()) {
        var from = x.of(peer, piece);
        int at = chunk;
        copy(
            from,
            carriers.inbox(chunk, peer, from.byteSize()),
            new Work(chunk, () -> "chunk %d of %s".formatted(at, from(peer))));
      }
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
