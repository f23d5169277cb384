package braid.internal.pipeline;

import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.Method;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.exchange.Cut;
import braid.internal.exchange.Handshake;
import braid.internal.exchange.Layout;
import braid.internal.exchange.OneShot;
import braid.internal.exchange.Rig;
import braid.internal.exchange.Rows;
import braid.internal.exchange.Scattering;
import braid.internal.exchange.Slice;
import braid.internal.exchange.Spreading;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.schedule.Part;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// GEMM→all-reduce: chunks of the partial product are added up by their owners as they are made,
/// and their sums sent to all (two shots); or all fetch all and each adds up everything (one shot:
/// the direct method, and a rank without others).
///
/// Owners send sums and nothing more: bias, activation and adding to the output are each rank's own
/// work, on the same rounded sum that a one-shot exchange comes to.
final class GemmAllReduce extends Plan implements Scattering.Production, Scattering.Sums {
  private final Matrix input;
  private final Matrix partial;
  private final Layout layout;
  private final Rows rows;
  private final Shots shots;

  /// The chunk that was laid out last, and when it is made.
  private int lastChunk;

  private @Nullable Event lastMade;

  /// What the two ways have of their own.
  private sealed interface Shots {}

  private record Two(SymmetricMemory sums, Scattering scattering, Spreading spreading)
      implements Shots {}

  private record One(OneShot exchange) implements Shots {}

  GemmAllReduce(Rig rig, GemmSpec spec) {
    super(rig, spec);
    var dtype = spec.outputDtype();
    rows = new Rows(dtype, spec.n());
    var cut = new Cut(rig.how.splits(), rig.how.boundaries());
    input =
        Multiplication.matrix(
            rig,
            spec.dtype(),
            spec.m(),
            sizes.inner().length(),
            spec.has(Feature.TRANSPOSED_INPUT));
    if (rig.how.method() == Method.DIRECT || rig.place.size() == 1) {
      layout = Layout.byPart(spec.m(), 1, cut);
      var partials = rig.symmetric("partial products", rows.bytes(spec.m()));
      partial = Matrix.of(partials.on(rig.place.rank()), dtype, spec.m(), spec.n());
      var handshake = new Handshake(rig, layout.chunks());
      shots = new One(new OneShot(rig, handshake, layout, rows, partials));
    } else {
      // A ring passes on whole parts; else a chunk is rows in one piece, and so one multiplication.
      layout =
          rig.how.method() == Method.RING
              ? Layout.byPart(spec.m(), rig.place.size(), cut)
              : Layout.byChunk(spec.m(), rig.place.size(), cut);
      partial = Multiplication.matrix(rig, dtype, spec.m(), spec.n(), false);
      // Where a sum is finished, owners still send it while its rank does that: not in one place.
      var sums =
          sharedOutput
              .filter(_ -> !finishes(spec))
              .orElseGet(() -> rig.symmetric("sums", rows.bytes(spec.m())));
      var handshake = new Handshake(rig, layout.chunks());
      shots =
          new Two(
              sums,
              new Scattering(rig, handshake, layout, rows, partial.segment(), partial.segment()),
              new Spreading(rig, handshake, layout, rows, sums));
    }
    show(Part.INPUT, View.of(input));
  }

  @Override
  Matrix input() {
    return input;
  }

  @Override
  void layOut() {
    lastMade = null;
    multiplication.begin();
    switch (shots) {
      case One one -> one.exchange.layOut(this, this);
      case Two two -> {
        two.scattering.layOut(this, this);
        two.spreading.receive(this::finish);
      }
    }
  }

  @Override
  public Event make(int chunk, Slice some) {
    if (rig.how.method() != Method.PIPELINED) {
      return multiply(chunk, some);
    }
    // All owners' rows of a chunk follow each other: one multiplication makes them.
    var made = lastMade;
    if (made == null || lastChunk != chunk) {
      int start = layout.rows(0, chunk).start();
      made =
          multiply(chunk, new Slice(start, layout.rows(layout.parts() - 1, chunk).end() - start));
      lastMade = made;
      lastChunk = chunk;
    }
    return made;
  }

  @Override
  public Event makeAll() {
    return multiply(0, new Slice(0, spec.m()));
  }

  /// Whether more is done to the sum than storing it.
  private static boolean finishes(GemmSpec spec) {
    return spec.has(Feature.ACCUMULATE) || spec.has(Feature.BIAS) || spec.has(Feature.GELU);
  }

  /// Whether owners write into outputs although no tuning asks for it: the best unfused all-reduce
  /// leaves its result where it belongs and copies nothing afterwards.
  static boolean writesOutputs(GemmSpec spec, Rig rig) {
    return spec.pattern() == GemmSpec.Pattern.GEMM_ALL_REDUCE
        && rig.how.method() == Method.UNFUSED
        && rig.place.size() > 1
        && !finishes(spec);
  }

  private Event multiply(int chunk, Slice some) {
    return multiplication.partial(
        chunk, input.rows(some.start(), some.length()), partial.rows(some.start(), some.length()));
  }

  @Override
  public Scattering.Target target(int chunk, Slice some, Stream stream) {
    return switch (shots) {
      case One _ ->
          new Scattering.Target(
              output.rows(some.start(), some.length()),
              multiplication.epilogue(true, some, preActivation));
      case Two two ->
          new Scattering.Target(
              rows.matrix(two.sums.on(rig.place.rank()), some),
              finishes(spec) ? Epilogue.NONE : multiplication.epilogue(true, some, preActivation));
    };
  }

  @Override
  public void summed(int chunk, Slice some, Stream stream) {
    switch (shots) {
      case One _ -> {}
      case Two two -> two.spreading.send(chunk, some, stream, this::finish);
    }
  }

  /// Makes the output of sums that are there.
  private void finish(int chunk, Slice some, Stream stream) {
    switch (shots) {
      case One _ -> {}
      case Two two -> {
        var sum = rows.matrix(two.sums.on(rig.place.rank()), some);
        var out = output.rows(some.start(), some.length());
        if (finishes(spec)) {
          stream.reduce(
              rig.work(chunk, () -> "all-reduce, output of chunk %d,".formatted(chunk)),
              new Reduction(List.of(sum), out, multiplication.epilogue(true, some, preActivation)));
        } else if (sharedOutput.isEmpty()) {
          stream.copyLocal(
              rig.work(chunk, () -> "all-reduce, chunk %d to the output,".formatted(chunk)),
              sum.bytes(),
              out.bytes());
        }
      }
    }
  }

  @Override
  String origin(int row) {
    for (int owner = 0; owner < layout.parts(); owner++) {
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        if (layout.rows(owner, chunk).contains(row)) {
          return layout.parts() == 1
              ? "chunk %d".formatted(chunk)
              : "chunk %d of rank %d's rows".formatted(chunk, owner);
        }
      }
    }
    throw new IllegalArgumentException("no chunk has row " + row);
  }
}
