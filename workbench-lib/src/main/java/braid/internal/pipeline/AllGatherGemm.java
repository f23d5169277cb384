package braid.internal.pipeline;

import braid.BraidException;
import braid.GemmSpec;
import braid.MemoryKind;
import braid.Overlap;
import braid.Place;
import braid.internal.backend.Backend;
import braid.internal.backend.Epilogue;
import braid.internal.backend.Gemm;
import braid.internal.backend.Lane;
import braid.internal.backend.Matrix;
import braid.internal.backend.Operand;
import braid.internal.backend.Rendezvous;
import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import braid.internal.backend.SymmetricMemory;
import braid.internal.backend.Work;
import braid.internal.rank.Closing;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/// What the three ways of an all-gather→GEMM share: the memory, the streams, the signals between
/// the ranks, and the pieces of work that a schedule lays out.
///
/// The input of every rank lies in symmetric memory, and its peers read it from there. So two
/// signals a pair of ranks are enough, whatever the chunks are:
///
/// | signal | raised by | waited for by | says |
/// |---|---|---|---|
/// | `ready` of s | source s, to each reader | the reader's first copy from s | s's input of this iteration is written |
/// | `read` of r | reader r, to each source | the source, at the end of the iteration | r needs the input no more |
///
/// That a chunk has landed is known on this rank alone, and an event says it.
public final class AllGatherGemm implements AutoCloseable {
  /// Large enough that OpenBLAS takes the path it takes for real work, and sets up for it.
  private static final int WARM_UP_SIZE = 64;

  public final GemmSpec spec;
  public final Overlap how;
  final Place place;
  final Backend backend;

  /// The columns of the whole weight that are this rank's.
  public final Slice columns;

  final Stream communication;
  final List<Stream> compute = new ArrayList<>();
  private final MemorySegment weight;
  private final MemorySegment output;
  private final MemorySegment gathered;
  private final Operand operand;
  private final SymmetricMemory shards;
  private final Signals signals;
  private final Deque<AutoCloseable> made = new ArrayDeque<>();

  /// All ranks set it up together, meeting once for each thing they share. In phases, all undone
  /// where one fails, so that it can be tried again.
  public AllGatherGemm(
      Backend backend,
      Place place,
      GemmSpec spec,
      Overlap how,
      MemoryKind kind,
      Supplier<Rendezvous> rendezvous) {
    this.spec = spec;
    this.how = how;
    this.place = place;
    this.backend = backend;
    this.columns = Slice.of(spec.n(), place.size(), place.rank());
    try {
      // Memory of this rank
      weight = matrix(spec.k(), columns.length());
      output = matrix(spec.m(), columns.length());
      gathered = matrix(spec.m(), spec.k());
      operand = keep(backend.operand(Matrix.of(weight, spec.dtype(), spec.k(), columns.length())));
      // Memory of all ranks: every part has room for the longest shard
      shards =
          keep(
              backend.allocate(
                  kind,
                  "build `%s`, %s: input".formatted(spec, how),
                  rows(0).length() * rowBytes(),
                  rendezvous.get()));
      int words = 2 * place.size();
      signals =
          keep(
              new Signals(
                  backend.allocate(
                      kind,
                      "build `%s`, %s: signals".formatted(spec, how),
                      Signals.bytes(words),
                      rendezvous.get()),
                  place.rank(),
                  words));
      // Streams
      communication = keep(backend.stream(Lane.of("comm")));
      for (int i = 0; i < how.streams(); i++) {
        compute.add(keep(backend.stream(Lane.of("gemm-" + i))));
      }
      warmUp();
    } catch (RuntimeException | Error e) {
      undo(e);
      throw e;
    }
  }

  private MemorySegment matrix(int rows, int columns) {
    return keep(backend.allocate((long) rows * columns * spec.dtype().bytes())).segment();
  }

  private <T extends AutoCloseable> T keep(T resource) {
    made.push(resource);
    return resource;
  }

  /// The first multiplication of a process loads a library, the first of a stream takes buffers:
  /// that is no iteration's time.
  private void warmUp() {
    int size = WARM_UP_SIZE;
    long bytes = (long) size * size * spec.dtype().bytes();
    try (var memory = backend.allocate(3 * bytes)) {
      var all = memory.segment();
      try (var right = backend.operand(square(all.asSlice(0, bytes)))) {
        var gemm =
            new Gemm(
                square(all.asSlice(bytes, bytes)),
                right,
                square(all.asSlice(2 * bytes)),
                Epilogue.NONE);
        for (var stream : compute) {
          var work = Work.of(() -> "the warm-up on " + stream.name());
          stream.prepare(work, right);
          stream.gemm(work, gemm);
          stream.synchronize(work::toString);
        }
      }
    }
  }

  private Matrix square(MemorySegment memory) {
    return Matrix.of(memory, spec.dtype(), WARM_UP_SIZE, WARM_UP_SIZE);
  }

  /// The rows of the whole input that are that rank's.
  public Slice rows(int source) {
    return Slice.of(spec.m(), place.size(), source);
  }

  /// The other ranks, the next one first: so no rank is read by all the others at once.
  List<Integer> peers() {
    var peers = new ArrayList<Integer>();
    for (int i = 1; i < place.size(); i++) {
      peers.add((place.rank() + i) % place.size());
    }
    return peers;
  }

  /// This rank's input, as many rows as its shard has.
  public MemorySegment input() {
    return shard(place.rank(), rows(place.rank()));
  }

  /// This rank's columns of the weight, as `k` rows.
  public MemorySegment weight() {
    return weight;
  }

  /// All rows of this rank's columns.
  public MemorySegment output() {
    return output;
  }

  /// Where the peers' shards land, each at its rows.
  public MemorySegment gathered() {
    return gathered;
  }

  /// Begins an iteration: tells the peers that this rank's input is written.
  void announce() {
    for (int peer : peers()) {
      // Matches the wait in [#awaitInput] on the peer.
      communication.raise(
          Work.of(() -> "signal ready to rank " + peer), signals, peer, place.rank());
    }
    compute.getFirst().prepare(Work.of(() -> "widening the weight"), operand);
    if (operand.widened().isPresent()) {
      var ready = compute.getFirst().mark();
      for (var stream : compute.subList(1, compute.size())) {
        stream.await(Work.of(() -> "the widened weight"), ready);
      }
    }
  }

  /// Holds copies from that source until its input is written.
  void awaitInput(int source) {
    // Matches the signal in [#announce] on the source.
    communication.await(
        Work.of(() -> "all-gather of `%s`: signal ready from rank %d".formatted(spec, source)),
        signals,
        source);
  }

  /// Copies those rows of the whole input from their source.
  void copy(int chunk, int source, Slice rows) {
    communication.copy(
        new Work(
            chunk,
            () -> "all-gather of `%s`: chunk %d from rank %d".formatted(spec, chunk, source)),
        shard(source, rows),
        part(gathered, rows, spec.k()));
  }

  /// Puts this rank's own rows among the gathered ones.
  void copyOwn() {
    var rows = rows(place.rank());
    communication.copyLocal(
        Work.of(() -> "all-gather of `%s`: own rows".formatted(spec)),
        shard(place.rank(), rows),
        part(gathered, rows, spec.k()));
  }

  /// Holds further work of that stream until all copies so far have landed.
  void awaitLanding(int chunk, Stream stream) {
    var landed = communication.mark();
    stream.await(
        new Work(chunk, () -> "all-gather of `%s`: chunk %d".formatted(spec, chunk)), landed);
  }

  /// Multiplies this rank's own rows, from where they are.
  void multiplyOwn(int chunk, Slice rows, Stream stream) {
    multiply(chunk, rows, shard(place.rank(), rows), stream);
  }

  /// Multiplies rows that have landed.
  void multiplyGathered(int chunk, Slice rows, Stream stream) {
    multiply(chunk, rows, part(gathered, rows, spec.k()), stream);
  }

  private void multiply(int chunk, Slice rows, MemorySegment left, Stream stream) {
    stream.gemm(
        new Work(chunk, () -> "gemm of `%s`: chunk %d".formatted(spec, chunk)),
        new Gemm(
            Matrix.of(left, spec.dtype(), rows.length(), spec.k()),
            operand,
            Matrix.of(
                part(output, rows, columns.length()),
                spec.dtype(),
                rows.length(),
                columns.length()),
            Epilogue.NONE));
  }

  /// Ends the copies from that source: tells it that this rank needs its input no more.
  void release(int source) {
    // Matches the wait in [#awaitReaders] on the source.
    communication.raise(
        Work.of(() -> "signal read to rank " + source),
        signals,
        source,
        place.size() + place.rank());
  }

  /// Ends an iteration: this rank's input may be written again when all have read it.
  void awaitReaders() {
    for (int peer : peers()) {
      // Matches the signal in [#release] on the peer.
      communication.await(
          Work.of(() -> "all-gather of `%s`: signal read from rank %d".formatted(spec, peer)),
          signals,
          place.size() + peer);
    }
  }

  /// Waits until all that was laid out is done. Communication comes first, since what it waits for
  /// is what people want to know.
  public void synchronize(Supplier<String> description) {
    communication.synchronize(description);
    compute.forEach(stream -> stream.synchronize(description));
  }

  public List<Stream> streams() {
    var all = new ArrayList<Stream>();
    all.add(communication);
    all.addAll(compute);
    return all;
  }

  /// The unfused result of the inputs as they are: gathers them all, then multiplies once.
  void reference(MemorySegment wholeInput, MemorySegment expected) {
    var stream = compute.getFirst();
    for (int source = 0; source < place.size(); source++) {
      var rows = rows(source);
      var from = shard(source, rows);
      stream.copyLocal(
          Work.of(() -> "the reference's all-gather"), from, part(wholeInput, rows, spec.k()));
    }
    var work = Work.of(() -> "the reference's gemm");
    stream.prepare(work, operand);
    stream.gemm(
        work,
        new Gemm(
            Matrix.of(wholeInput, spec.dtype(), spec.m(), spec.k()),
            operand,
            Matrix.of(expected, spec.dtype(), spec.m(), columns.length()),
            Epilogue.NONE));
    stream.synchronize(work::toString);
  }

  private long rowBytes() {
    return (long) spec.k() * spec.dtype().bytes();
  }

  private MemorySegment shard(int source, Slice rows) {
    var within = new Slice(rows.start() - rows(source).start(), rows.length());
    return part(shards.on(source), within, spec.k());
  }

  private MemorySegment part(MemorySegment matrix, Slice rows, int columns) {
    long rowBytes = (long) columns * spec.dtype().bytes();
    return matrix.asSlice(rows.start() * rowBytes, rows.length() * rowBytes);
  }

  private void undo(Throwable cause) {
    try {
      close();
    } catch (BraidException e) {
      cause.addSuppressed(e);
    }
  }

  /// Frees everything, streams first. No rank waits for another: the peers keep their own views.
  @Override
  public void close() {
    Closing.all(made::poll);
  }
}
