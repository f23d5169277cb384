package braid.internal.pipeline;

import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.Overlap;
import braid.Place;
import braid.internal.backend.Event;
import braid.internal.backend.Replay;
import braid.internal.backend.Stream;
import braid.internal.exchange.Rig;
import braid.internal.rank.Closing;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Matrix;
import braid.internal.work.Work;
import braid.schedule.Part;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A problem set up to be solved in one way, again and again: its memory, its streams, its signals,
/// and what an iteration lays out on them. It only gives out work; who runs it waits.
public abstract sealed class Plan implements AutoCloseable
    permits AllGatherGemm, GemmReduceScatter, GemmAllReduce, GemmBeside {
  private static final Work FORK = Work.of(() -> "the end of the iteration before");

  final Rig rig;
  final GemmSpec spec;
  final Sizes sizes;
  final Multiplication multiplication;
  final Optional<SymmetricMemory> sharedOutput;
  final Matrix output;
  final Optional<Matrix> preActivation;
  private final Map<Part, View> views = new EnumMap<>(Part.class);
  private final Map<Part, List<View>> apart = new EnumMap<>(Part.class);
  private @Nullable Replay replay;
  private int step;

  Plan(Rig rig, GemmSpec spec) {
    this.rig = rig;
    this.spec = spec;
    this.sizes = Sizes.of(spec, rig.place);
    this.multiplication = new Multiplication(rig, spec, sizes);
    this.sharedOutput =
        rig.how.symmetricOutput() || GemmAllReduce.writesOutputs(spec, rig)
            ? Optional.of(sharedOutput(rig, spec))
            : Optional.empty();
    this.output =
        sharedOutput
            .map(all -> outputOf(rig.place.rank(), all))
            .orElseGet(
                () ->
                    Multiplication.matrix(
                        rig,
                        spec.outputDtype(),
                        sizes.output().length(),
                        sizes.columns().length(),
                        false));
    this.preActivation =
        spec.has(Feature.GELU)
            ? Optional.of(
                Multiplication.matrix(
                    rig, spec.outputDtype(), output.rows(), output.columns(), false))
            : Optional.empty();
    show(Part.WEIGHT, View.of(multiplication.weight()));
    show(Part.OUTPUT, View.of(output));
    multiplication.bias().ifPresent(bias -> show(Part.BIAS, View.line(bias, spec.outputDtype())));
    preActivation.ifPresent(kept -> show(Part.PRE_ACTIVATION, View.of(kept)));
  }

  /// Sets up that problem. All ranks do it together; what fails leaves nothing behind.
  public static Plan of(Rig rig, GemmSpec spec) {
    try {
      var plan =
          switch (spec.pattern()) {
            case ALL_GATHER_GEMM -> new AllGatherGemm(rig, spec);
            case GEMM_REDUCE_SCATTER -> new GemmReduceScatter(rig, spec);
            case GEMM_ALL_REDUCE -> new GemmAllReduce(rig, spec);
            case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> new GemmBeside(rig, spec);
          };
      plan.multiplication.openStreams();
      return plan;
    } catch (RuntimeException | Error e) {
      rig.undo(e);
      throw e;
    }
  }

  private static SymmetricMemory sharedOutput(Rig rig, GemmSpec spec) {
    // Every part has room for the longest, which is rank 0's.
    var largest = Sizes.of(spec, new Place(0, rig.place.size()));
    return rig.symmetric(
        "output",
        (long) largest.output().length() * largest.columns().length() * spec.outputDtype().bytes());
  }

  private Matrix outputOf(int rank, SymmetricMemory all) {
    var there = Sizes.of(spec, new Place(rank, rig.place.size()));
    return Matrix.of(
        all.on(rank), spec.outputDtype(), there.output().length(), there.columns().length());
  }

  /// That rank's output, where the tuning puts outputs into symmetric memory.
  public final Optional<View> outputOn(int rank) {
    return sharedOutput
        .filter(_ -> rig.how.symmetricOutput())
        .map(all -> View.of(outputOf(rank, all)));
  }

  final void show(Part part, View view) {
    show(part, view, List.of(view));
  }

  /// @param filled its memory, without what is another part's too
  final void show(Part part, View view, List<View> filled) {
    views.put(part, view);
    apart.put(part, filled);
  }

  /// The memory of that part that is no other part's: filling it changes no other.
  public final List<View> apart(Part part) {
    return apart.getOrDefault(part, List.of());
  }

  /// This rank's numbers of that part; none where the problem has none.
  public final Optional<View> view(Part part) {
    return Optional.ofNullable(views.get(part));
  }

  /// All of them.
  public final Map<Part, View> views() {
    return views;
  }

  public final GemmSpec spec() {
    return spec;
  }

  public final Overlap how() {
    return rig.how;
  }

  public final Place place() {
    return rig.place;
  }

  public final Rig rig() {
    return rig;
  }

  /// Where the largest size of the output is kept, where it is.
  public final Optional<MemorySegment> amax() {
    return multiplication.amax();
  }

  /// Multiplies the sums of stored products by that from the next run on.
  public final void scale(float both) {
    if (multiplication.scale() != both) {
      multiplication.scale(both);
      // What was recorded has the old scale in it.
      forget();
    }
  }

  private void forget() {
    var recorded = replay;
    replay = null;
    if (recorded != null) {
      recorded.close();
    }
  }

  final float scale() {
    return multiplication.scale();
  }

  /// This rank's part of the input.
  abstract Matrix input();

  /// Lays out one iteration.
  abstract void layOut();

  /// Which piece of communication or multiplication made that row of the output, for people.
  abstract String origin(int row);

  /// The steps of an epoch begin with 1.
  public final void beginEpoch() {
    step = 0;
  }

  /// Turns to the next iteration, and readies its work where that is not ready yet. Returns whether
  /// it is recorded already.
  public final boolean turn(int iteration) {
    step++;
    streams().forEach(stream -> stream.turn(iteration, step));
    if (replay != null) {
      return rig.how.replayed();
    }
    replay =
        rig.how.replayed()
            ? rig.backend.record(streams(), this::layOut)
            : rig.backend.prepare(streams(), this::layOut);
    return false;
  }

  /// Gives out the iteration that was turned to.
  public final void launch() {
    ready().launch();
  }

  private Replay ready() {
    var ready = replay;
    if (ready == null) {
      throw new IllegalStateException("launched before an iteration was turned to");
    }
    return ready;
  }

  /// How many iterations may be in flight.
  final int mostInFlight() {
    return ready().mostInFlight();
  }

  /// Makes the first stream wait for all others: it comes to the end of the iteration when all of
  /// them have.
  final void join() {
    if (!ready().isWhole()) {
      var first = streams().getFirst();
      for (var stream : streams().subList(1, streams().size())) {
        first.await(
            Work.of(() -> stream.waitingFor().orElse("the end of " + stream.name())),
            stream.mark());
      }
    }
  }

  /// Makes all other streams wait for that end of an iteration on the first.
  final void fork(Event end) {
    if (!ready().isWhole()) {
      for (var stream : streams().subList(1, streams().size())) {
        stream.await(FORK, end);
      }
    }
  }

  /// What any of the streams waits for, for messages.
  final Optional<String> waitingFor() {
    return streams().stream().flatMap(stream -> stream.waitingFor().stream()).findFirst();
  }

  /// All iterations but the last `inFlight` have ended.
  final void settled(int inFlight) {
    streams().forEach(stream -> stream.settled(inFlight));
  }

  /// Waits until all that was laid out is done. Communication comes first, since what it waits for
  /// is what people want to know.
  public final void synchronize(Supplier<String> description) {
    streams().forEach(stream -> stream.synchronize(description));
  }

  public final List<Stream> streams() {
    return rig.streams();
  }

  /// Frees everything. No rank waits for another.
  @Override
  public final void close() {
    Closing.each(this::forget, rig);
  }
}
