package braid.internal.selftest;

import braid.Pipeline;
import braid.TensorView;
import braid.internal.context.RankContext;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Priority;
import braid.model.Timing;
import braid.model.Transport;
import braid.model.VerificationFailed;
import braid.natives.kernels.Integers;
import braid.schedule.Part;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.function.Function;
import java.util.stream.Collectors;

/// One case of the contract of all pipelines, on every kind of rank: the result is, to the last
/// bit, that of plain loops over the same numbers. Inputs are integers, so that the order of a sum
/// does not matter. Bias and output are fractions, so that results are rounded, and it matters
/// where.
///
/// @param factor factor of the integers -3 to 3 in the rounds. If it is more than 1, sums of
///   products exceed the precision of the output's type and show where and how often they were
///   rounded, and bias and output are integers too
public record PipelineCase(GemmSpec spec, Overlap tuning, int factor) implements TabledCase {
  static final float INPUT_SCALE = 0.5f;
  static final float WEIGHT_SCALE = 4;

  /// Small enough that some stored numbers are the largest of their type.
  static final float OUTPUT_SCALE = 0.125f;

  private static final int ITERATIONS_IN_FLIGHT = 3;

  /// A sum of integers and such fractions needs more than 16 bits.
  private static final float FRACTIONS = 256;

  private static final double AMAX_RTOL = 1e-6;

  public PipelineCase(GemmSpec spec, Overlap chosen) {
    this(spec, chosen, 1);
  }

  @Override
  public String what() {
    return spec.pattern().toString();
  }

  @Override
  public String method() {
    return tuning.method().toString();
  }

  @Override
  public String over() {
    return tuning.transport().toString();
  }

  @Override
  public DType dtype() {
    return spec.dtype();
  }

  @Override
  public String text() {
    return String.join(
        ",",
        spec.pattern().name(),
        Integer.toString(spec.m()),
        Integer.toString(spec.n()),
        Integer.toString(spec.k()),
        Long.toString(spec.besideElements()),
        spec.dtype().name(),
        spec.weightDtype().name(),
        spec.outputDtype().name(),
        spec.features().stream().map(Enum::name).collect(Collectors.joining("+")),
        tuning.method().name(),
        Integer.toString(tuning.splits()),
        tuning.boundaries().stream().map(String::valueOf).collect(Collectors.joining("-")),
        Integer.toString(tuning.streams()),
        tuning.order().name(),
        tuning.transport().name(),
        Integer.toString(tuning.workers()),
        tuning.priority().name(),
        Boolean.toString(tuning.replayed()),
        Boolean.toString(tuning.symmetricOutput()),
        Integer.toString(factor),
        Integer.toString(tuning.groupRanks()));
  }

  public static PipelineCase parse(String text) {
    var part = text.split(",", -1);
    var features = EnumSet.noneOf(Feature.class);
    Arrays.stream(part[8].split("\\+"))
        .filter(name -> !name.isEmpty())
        .map(Feature::valueOf)
        .forEach(features::add);
    return new PipelineCase(
        new GemmSpec(
            Pattern.valueOf(part[0]),
            Integer.parseInt(part[1]),
            Integer.parseInt(part[2]),
            Integer.parseInt(part[3]),
            Long.parseLong(part[4]),
            DType.valueOf(part[5]),
            DType.valueOf(part[6]),
            DType.valueOf(part[7]),
            features),
        new Overlap(
            Method.valueOf(part[9]),
            Integer.parseInt(part[20]),
            Integer.parseInt(part[10]),
            Arrays.stream(part[11].split("-"))
                .filter(cut -> !cut.isEmpty())
                .map(Integer::valueOf)
                .toList(),
            Integer.parseInt(part[12]),
            ChunkOrder.valueOf(part[13]),
            Transport.valueOf(part[14]),
            Integer.parseInt(part[15]),
            Priority.valueOf(part[16]),
            Boolean.parseBoolean(part[17]),
            Boolean.parseBoolean(part[18])),
        Integer.parseInt(part[19]));
  }

  @Override
  public boolean isReplayed() {
    return tuning.replayed();
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var pipe = build(context);
    return open(pipe, part -> tensor(pipe, part), context, findings);
  }

  /// Opens the case on a pipeline of the problem, which it closes.
  ///
  /// @param tensors this rank's tensors
  Opened open(
      Pipeline pipe, Function<Part, TensorView> tensors, CaseContext context, Findings findings) {
    try {
      verify(pipe, findings);
    } catch (RuntimeException | Error e) {
      pipe.close();
      throw e;
    }
    return new Running(this, pipe, tensors, context);
  }

  /// Returns a tensor of a pipeline.
  static TensorView tensor(Pipeline pipe, Part part) {
    return switch (part) {
      case INPUT -> pipe.input();
      case WEIGHT -> pipe.weight();
      case BIAS -> pipe.bias();
      case BESIDE_INPUT -> pipe.besideInput();
      case OUTPUT -> pipe.output();
      case PRE_ACTIVATION -> pipe.preActivation();
      case GATHERED_INPUT -> pipe.gatheredInput();
      case BESIDE_OUTPUT -> pipe.besideOutput();
      default -> throw new IllegalArgumentException("a GEMM has no " + part);
    };
  }

  private record Running(
      PipelineCase tested, Pipeline pipe, Function<Part, TensorView> tensors, CaseContext context)
      implements Opened {
    /// Runs with other inputs in every round, so that an earlier result cannot pass for this one.
    @Override
    public void round(int round, Findings findings) {
      tested.fill(tensors, pipe.group().rank(), round);
      for (int run = 1; run <= tested.runs(); run++) {
        tested.run(pipe, round);
        context.alteration().accept(tensors.apply(Part.OUTPUT));
        tested.compare(pipe, tensors, round, run, findings);
      }
    }

    @Override
    public void close() {
      pipe.close();
    }
  }

  /// Returns the number of runs per round. If the problem accumulates, a second run adds to the
  /// result of the first; wide sums of two runs would be infinite in fp16.
  private int runs() {
    return spec.has(Feature.ACCUMULATE) && factor == 1 ? 2 : 1;
  }

  /// Runs every second round in flight, unless each iteration adds to the result of the one before.
  private void run(Pipeline pipe, int round) {
    inTurn(pipe, spec.has(Feature.ACCUMULATE) ? 0 : round);
  }

  /// Runs a pipeline, every second round in flight.
  static void inTurn(Pipeline pipe, int round) {
    if (round % 2 == 0) {
      pipe.run();
    } else {
      var _ = pipe.time(ITERATIONS_IN_FLIGHT, Timing.BACK_TO_BACK);
    }
  }

  Pipeline build(CaseContext context) {
    return builder(context).build();
  }

  Pipeline.Builder builder(CaseContext context) {
    var builder = Pipeline.on(context.group()).gemm(spec).overlap(tuning).memory(context.kind());
    if (spec.outputDtype().isFp8()) {
      builder.scales(INPUT_SCALE, WEIGHT_SCALE, OUTPUT_SCALE);
    } else if (spec.isScaled()) {
      builder.scales(INPUT_SCALE, WEIGHT_SCALE);
    }
    return builder;
  }

  /// Records a failed verification, which every rank sees.
  static void verify(Pipeline pipe, Findings findings) {
    try {
      pipe.verify();
    } catch (VerificationFailed e) {
      findings.found(String.valueOf(e.getMessage()));
    }
  }

  private void fill(Function<Part, TensorView> tensors, int rank, int round) {
    fill(tensors.apply(Part.INPUT), round, rank, PlainCase.Operand.INPUT);
    fill(tensors.apply(Part.WEIGHT), round, rank, PlainCase.Operand.WEIGHT);
    if (spec.has(Feature.BIAS)) {
      fill(tensors.apply(Part.BIAS), round, rank, PlainCase.Operand.BIAS);
    }
    if (spec.pattern().beside()) {
      fill(tensors.apply(Part.BESIDE_INPUT), round, rank, PlainCase.Operand.BESIDE);
    }
    if (spec.has(Feature.ACCUMULATE)) {
      fill(tensors.apply(Part.OUTPUT), round, rank, PlainCase.Operand.OUTPUT);
    }
  }

  private void fill(TensorView tensor, int round, int rank, PlainCase.Operand operand) {
    var _ = tensor.copyFrom(given(round, rank, operand, Math.toIntExact(tensor.elements())));
  }

  private static long seed(int round, int rank, int operand) {
    return 1_000_000L * round + 1000L * rank + operand;
  }

  private void compare(
      Pipeline pipe, Function<Part, TensorView> tensors, int round, int run, Findings findings) {
    var place = pipe.group().place();
    var name =
        "%s, %s%s on rank %s, round %d, run %d: "
            .formatted(
                spec, tuning, factor == 1 ? "" : ", integers x " + factor, place, round, run);
    var plain = plain(place, round, run);
    var sums = plain.output();
    var dtype = spec.outputDtype();
    var got = tensors.apply(Part.OUTPUT).toFloats();
    if (spec.has(Feature.GELU)) {
      findings.same(
          name + "pre-activation",
          PlainCase.rounded(PlainCase.beside(dtype), sums),
          tensors.apply(Part.PRE_ACTIVATION).toFloats());
      findings.activated(name + "output", dtype, plain.activated(), PlainCase.outScale(spec), got);
    } else {
      findings.same(name + "output", stored(plain, got), got);
    }
    if (spec.has(Feature.GATHERED_INPUT)) {
      findings.same(
          name + "gathered input",
          plain.wholeInput(),
          tensors.apply(Part.GATHERED_INPUT).toFloats());
    }
    if (spec.pattern().beside()) {
      var beside = tensors.apply(Part.BESIDE_OUTPUT);
      findings.same(
          name + "output beside",
          PlainCase.rounded(beside.dtype(), plain.besideOutput()),
          beside.toFloats());
    }
    if (spec.isScaled()) {
      compareAmax(pipe, PlainCase.largest(plain.activated()), name, findings);
    }
    if (tuning.symmetricOutput()) {
      comparePeer(pipe, round, run, name, findings);
    }
  }

  /// Returns the numbers that must be stored: where both are right, those that were found.
  private float[] stored(PlainCase plain, float[] found) {
    var wanted = PlainCase.stored(spec, plain.output());
    var backend = RankContext.current().backend();
    if (spec.has(Feature.ACCUMULATE)
        && spec.outputDtype().bytes() == Short.BYTES
        && backend.precision(spec.dtype(), spec.weightDtype()).roundsProducts()) {
      var rounded = PlainCase.stored(spec, plain.outputOfRoundedProducts());
      for (int i = 0; i < wanted.length && i < found.length; i++) {
        wanted[i] = found[i] == rounded[i] ? rounded[i] : wanted[i];
      }
    }
    return wanted;
  }

  /// Returns the plain computation of a run; a later run adds to the result of the one before.
  private PlainCase plain(Place place, int round, int run) {
    return new PlainCase(
        spec,
        tuning,
        place,
        operand ->
            rank ->
                size ->
                    operand == PlainCase.Operand.OUTPUT && run > 1
                        ? PlainCase.rounded(
                            spec.outputDtype(), plain(place, round, run - 1).output())
                        : given(round, rank, operand, size));
  }

  private static void compareAmax(Pipeline pipe, float mine, String name, Findings findings) {
    float largest = 0;
    for (double each : pipe.group().gather((double) mine)) {
      largest = Math.max(largest, (float) each);
    }
    findings.near(name + "amax", new float[] {largest}, new float[] {pipe.amax()}, 0, AMAX_RTOL);
  }

  private void comparePeer(Pipeline pipe, int round, int run, String name, Findings findings) {
    var place = pipe.group().place();
    pipe.group().barrier();
    int peer = (place.rank() + 1) % place.size();
    var ofPeer = pipe.output(peer).toFloats();
    pipe.group().barrier();
    if (!spec.has(Feature.GELU)) {
      var plain = plain(new Place(peer, place.size()), round, run);
      findings.same(name + "rank " + peer + "'s output", stored(plain, ofPeer), ofPeer);
    }
  }

  /// Returns the numbers that a rank put into an operand.
  private float[] given(int round, int rank, PlainCase.Operand operand, int size) {
    return switch (operand) {
      case INPUT, WEIGHT, BESIDE -> integers(seed(round, rank, operand.seed()), size);
      // The same on all ranks, since it is added once.
      case BIAS -> addends(seed(round, 0, operand.seed()), size);
      case OUTPUT -> addends(seed(round, rank, operand.seed()), size);
    };
  }

  private float[] integers(long seed, int size) {
    var integers = Integers.first(seed, size);
    for (int i = 0; i < size; i++) {
      integers[i] *= factor;
    }
    return integers;
  }

  /// Returns fractions, if the type can hold them beside the integers of the sums.
  private float[] addends(long seed, int size) {
    var addends = integers(seed, size);
    for (int i = 0; i < size && factor == 1; i++) {
      addends[i] /= FRACTIONS;
    }
    return addends;
  }
}
