package braid.internal.pipeline;

import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.GemmSpec.Pattern;
import braid.Method;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.exchange.Cut;
import braid.internal.exchange.Gathering;
import braid.internal.exchange.Handshake;
import braid.internal.exchange.Layout;
import braid.internal.exchange.Rig;
import braid.internal.exchange.Rows;
import braid.internal.exchange.Scattering;
import braid.internal.exchange.Slice;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.schedule.Part;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A GEMM beside a collective of other data: neither waits for the other, but in the unfused
/// reference, where the collective comes first.
final class GemmBeside extends Plan
    implements Gathering.Arrivals, Scattering.Production, Scattering.Sums {
  private final Matrix input;
  private final Layout layout;
  private final Rows rows;
  private final Companion companion;
  private @Nullable Event there;

  /// The collective.
  private sealed interface Companion {}

  private record Gather(Gathering gathering) implements Companion {}

  /// @param sum this rank's rows
  private record Scatter(Scattering scattering, Matrix sum) implements Companion {}

  GemmBeside(Rig rig, GemmSpec spec) {
    super(rig, spec);
    input =
        Multiplication.matrix(
            rig, spec.dtype(), spec.m(), spec.k(), spec.has(Feature.TRANSPOSED_INPUT));
    show(Part.INPUT, View.of(input));
    int elements = Math.toIntExact(spec.besideElements());
    layout =
        Layout.byPart(elements, rig.place.size(), new Cut(rig.how.splits(), rig.how.boundaries()));
    var mine = Slice.of(elements, rig.place.size(), rig.place.rank());
    if (spec.pattern() == Pattern.GEMM_BESIDE_ALL_GATHER) {
      rows = new Rows(spec.dtype(), 1);
      var shards = rig.symmetric("beside", rows.bytes(layout.longest()));
      var landing = AllGatherGemm.landing(rig, rows.bytes(elements));
      var gathering =
          new Gathering(
              rig,
              new Handshake(rig, layout.chunks()),
              layout,
              rows,
              shards,
              landing,
              Gathering.Own.COPIED);
      companion = new Gather(gathering);
      show(Part.BESIDE_INPUT, View.line(gathering.shard(rig.place.rank(), mine), spec.dtype()));
      show(Part.BESIDE_OUTPUT, View.line(gathering.whole(), spec.dtype()));
    } else {
      rows = new Rows(spec.outputDtype(), 1);
      var all = rig.memory(rows.bytes(elements));
      var sum = rig.memory(rows.bytes(mine.length()));
      var running = rig.how.method() == Method.RING ? rig.memory(rows.bytes(elements)) : all;
      companion =
          new Scatter(
              new Scattering(rig, new Handshake(rig, layout.chunks()), layout, rows, all, running),
              Matrix.of(sum, rows.dtype(), mine.length(), 1));
      show(Part.BESIDE_INPUT, View.line(all, rows.dtype()));
      show(Part.BESIDE_OUTPUT, View.line(sum, rows.dtype()));
    }
  }

  @Override
  Matrix input() {
    return input;
  }

  @Override
  void layOut() {
    multiplication.begin();
    switch (companion) {
      case Gather gather -> gather.gathering.layOut(this);
      case Scatter scatter -> {
        there = scatter.scattering.communication().mark();
        scatter.scattering.layOut(this, this);
      }
    }
    if (rig.how.method() != Method.UNFUSED) {
      multiplyInPieces();
    }
  }

  private void multiplyInPieces() {
    var all = new Slice(0, spec.m());
    for (int piece = 0; piece < rig.how.splits(); piece++) {
      multiply(piece, all.part(rig.how.splits(), piece), multiplication.turn(piece));
    }
  }

  private void multiplyAfter(Event communicated) {
    var stream = multiplication.turn(0);
    stream.await(rig.work(0, () -> "the collective"), communicated);
    multiply(0, new Slice(0, spec.m()), stream);
  }

  private void multiply(int piece, Slice some, Stream stream) {
    multiplication.whole(
        piece,
        input.rows(some.start(), some.length()),
        output.rows(some.start(), some.length()),
        multiplication.epilogue(false, some, preActivation),
        stream);
  }

  @Override
  public void own(int chunk, Slice some) {}

  @Override
  public void arrived(int chunk, List<Slice> some, Event arrived) {}

  @Override
  public void all(Event arrived) {
    if (rig.how.method() == Method.UNFUSED) {
      multiplyAfter(arrived);
    }
  }

  /// What is added up was there from the start.
  @Override
  public Event make(int chunk, Slice some) {
    return makeAll();
  }

  @Override
  public Event makeAll() {
    var ready = there;
    if (ready == null) {
      throw new IllegalStateException("asked for before an iteration was laid out");
    }
    return ready;
  }

  @Override
  public Scattering.Target target(int chunk, Slice some, Stream stream) {
    return switch (companion) {
      case Gather _ -> throw new IllegalStateException("a gathering has no sums");
      case Scatter scatter -> {
        int first = layout.rows(rig.place.rank(), 0).start();
        yield new Scattering.Target(
            scatter.sum.rows(some.start() - first, some.length()), Epilogue.NONE);
      }
    };
  }

  @Override
  public void summed(int chunk, Slice some, Stream stream) {
    if (rig.how.method() == Method.UNFUSED) {
      multiplyAfter(stream.mark());
    }
  }

  @Override
  String origin(int row) {
    var all = new Slice(0, spec.m());
    int piece = 0;
    while (!all.part(rig.how.splits(), piece).contains(row)) {
      piece++;
    }
    return "piece " + piece;
  }

  /// Which chunk of the collective brought that number of what is communicated beside.
  String besideOrigin(int index) {
    int at =
        index
            + switch (companion) {
              case Gather _ -> 0;
              case Scatter _ -> layout.rows(rig.place.rank(), 0).start();
            };
    for (int part = 0; part < layout.parts(); part++) {
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        if (layout.rows(part, chunk).contains(at)) {
          return "chunk %d of rank %d's".formatted(chunk, part);
        }
      }
    }
    throw new IllegalArgumentException("no chunk has number " + index);
  }
}
