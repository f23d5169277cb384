package braid.internal.pipeline;

import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.Method;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.exchange.Cut;
import braid.internal.exchange.Gathering;
import braid.internal.exchange.Handshake;
import braid.internal.exchange.Layout;
import braid.internal.exchange.Rig;
import braid.internal.exchange.Rows;
import braid.internal.exchange.Run;
import braid.internal.exchange.Slice;
import braid.internal.work.Matrix;
import braid.schedule.Part;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.IntFunction;

/// All-gather→GEMM: rows are multiplied as they arrive, this rank's own from where they are.
final class AllGatherGemm extends Plan implements Gathering.Arrivals {
  private final Gathering gathering;
  private final Layout layout;
  private final Rows rows;

  AllGatherGemm(Rig rig, GemmSpec spec) {
    super(rig, spec);
    rows = new Rows(spec.dtype(), spec.k());
    layout =
        Layout.byPart(spec.m(), rig.place.size(), new Cut(rig.how.splits(), rig.how.boundaries()));
    var own = ownRows(rig, spec);
    boolean inPlace = own == Gathering.Own.IN_PLACE;
    var shards = rig.symmetric("input", rows.bytes(inPlace ? spec.m() : layout.longest()));
    gathering =
        new Gathering(
            rig,
            new Handshake(rig, layout.chunks()),
            layout,
            rows,
            shards,
            inPlace ? shards::on : landing(rig, rows.bytes(spec.m())),
            own);
    show(Part.INPUT, View.of(input()));
    var whole = Matrix.of(gathering.whole(), spec.dtype(), spec.m(), spec.k());
    show(Part.GATHERED_INPUT, View.of(whole), inPlace ? others(whole) : List.of(View.of(whole)));
  }

  /// A gathered input that is handed out is the run's, not the input as users write it next. Else
  /// own rows are multiplied from where they are: together with the others where the whole is one
  /// multiplication.
  private static Gathering.Own ownRows(Rig rig, GemmSpec spec) {
    if (spec.has(Feature.GATHERED_INPUT)) {
      return Gathering.Own.COPIED;
    }
    return rig.how.method() == Method.UNFUSED ? Gathering.Own.IN_PLACE : Gathering.Own.LEFT_OUT;
  }

  /// All rows but this rank's.
  private List<View> others(Matrix whole) {
    var own = sizes.input();
    return List.of(whole.rows(0, own.start()), whole.rows(own.end(), spec.m() - own.end())).stream()
        .filter(part -> part.rows() > 0)
        .map(View::of)
        .toList();
  }

  /// Where all rows come together; in a ring the next rank reads them there.
  static IntFunction<MemorySegment> landing(Rig rig, long bytes) {
    if (rig.how.method() == Method.RING) {
      return rig.symmetric("gathered", bytes)::on;
    }
    var mine = rig.memory(bytes);
    return rank -> mine;
  }

  private MemorySegment own(Slice of) {
    return gathering.shard(rig.place.rank(), of);
  }

  @Override
  Matrix input() {
    return Matrix.of(own(sizes.input()), spec.dtype(), sizes.input().length(), spec.k());
  }

  @Override
  void layOut() {
    multiplication.begin();
    gathering.layOut(this);
  }

  @Override
  public void own(int chunk, Slice some) {
    multiplication.whole(
        chunk,
        Matrix.of(own(some), spec.dtype(), some.length(), spec.k()),
        output.rows(some.start(), some.length()),
        multiplication.epilogue(false, some, preActivation),
        multiplication.turn(chunk));
  }

  @Override
  public void arrived(int chunk, List<Slice> some, Event there) {
    var stream = multiplication.turn(chunk);
    stream.await(rig.work(chunk, () -> "all-gather, chunk %d,".formatted(chunk)), there);
    multiply(chunk, gathering.whole(), some, stream);
  }

  @Override
  public void all(Event there) {
    if (rig.how.method() == Method.UNFUSED) {
      arrived(0, List.of(new Slice(0, spec.m())), there);
    }
  }

  /// Multiplies rows of what is gathered.
  private void multiply(int chunk, MemorySegment whole, List<Slice> some, Stream stream) {
    for (var run : Run.of(some)) {
      var first = run.first();
      multiplication.runs(
          chunk,
          Matrix.of(whole, spec.dtype(), spec.m(), spec.k()).rows(first.start(), first.length()),
          output.rows(first.start(), first.length()),
          multiplication.epilogue(false, first, preActivation),
          run,
          stream);
    }
  }

  @Override
  String origin(int row) {
    for (int source = 0; source < layout.parts(); source++) {
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        if (layout.rows(source, chunk).contains(row)) {
          return "chunk %d from rank %d".formatted(chunk, source);
        }
      }
    }
    throw new IllegalArgumentException("no chunk has row " + row);
  }
}
