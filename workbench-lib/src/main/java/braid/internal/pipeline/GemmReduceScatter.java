package braid.internal.pipeline;

import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.exchange.Cut;
import braid.internal.exchange.Handshake;
import braid.internal.exchange.Layout;
import braid.internal.exchange.Rig;
import braid.internal.exchange.Rows;
import braid.internal.exchange.Scattering;
import braid.internal.exchange.Slice;
import braid.internal.work.Matrix;
import braid.schedule.Part;

/// GEMM→reduce-scatter: rows of the partial product are sent to their owners as they are made.
final class GemmReduceScatter extends Plan implements Scattering.Production, Scattering.Sums {
  private final Matrix input;
  private final Matrix partial;
  private final Scattering scattering;
  private final Layout layout;

  GemmReduceScatter(Rig rig, GemmSpec spec) {
    super(rig, spec);
    input =
        Multiplication.matrix(
            rig,
            spec.dtype(),
            spec.m(),
            sizes.inner().length(),
            spec.has(Feature.TRANSPOSED_INPUT));
    partial = Multiplication.matrix(rig, spec.outputDtype(), spec.m(), spec.n(), false);
    layout =
        Layout.byPart(spec.m(), rig.place.size(), new Cut(rig.how.splits(), rig.how.boundaries()));
    scattering =
        new Scattering(
            rig,
            new Handshake(rig, layout.chunks()),
            layout,
            new Rows(spec.outputDtype(), spec.n()),
            partial.segment(),
            partial.segment());
    show(Part.INPUT, View.of(input));
  }

  @Override
  Matrix input() {
    return input;
  }

  @Override
  void layOut() {
    multiplication.begin();
    scattering.layOut(this, this);
  }

  @Override
  public Event make(int chunk, Slice some) {
    return multiplication.partial(
        chunk, input.rows(some.start(), some.length()), partial.rows(some.start(), some.length()));
  }

  @Override
  public Event makeAll() {
    return make(0, new Slice(0, spec.m()));
  }

  @Override
  public Scattering.Target target(int chunk, Slice some, Stream stream) {
    var mine = new Slice(some.start() - sizes.output().start(), some.length());
    return new Scattering.Target(
        output.rows(mine.start(), mine.length()),
        multiplication.epilogue(true, mine, preActivation));
  }

  @Override
  public void summed(int chunk, Slice some, Stream stream) {}

  @Override
  String origin(int row) {
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      if (layout.rows(rig.place.rank(), chunk).contains(row + sizes.output().start())) {
        return "chunk %d of rank %d's rows".formatted(chunk, rig.place.rank());
      }
    }
    throw new IllegalArgumentException("no chunk has row " + row);
  }
}
