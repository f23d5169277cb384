package braid.internal.selftest;

import braid.ChunkOrder;
import braid.DType;
import braid.GemmSpec;
import braid.GemmSpec.Feature;
import braid.GemmSpec.Pattern;
import braid.Method;
import braid.Overlap;
import braid.Pipeline;
import braid.Place;
import braid.Priority;
import braid.Timing;
import braid.Transport;
import braid.VerificationFailed;
import braid.natives.kernels.Integers;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.stream.Collectors;

/// One case of the contract that every way of every pattern keeps on every kind of rank: what it
/// computes is, to the last bit, what plain loops compute from the same integers.
public record PipelineCase(GemmSpec spec, Overlap how) implements Case {
  static final float INPUT_SCALE = 0.5f;
  static final float WEIGHT_SCALE = 4;
  private static final int ROUNDS = 2;
  private static final int ITERATIONS_IN_FLIGHT = 3;

  /// How far a GELU in fp32 may be off where it is near 0.
  private static final double ACTIVATED_ATOL = 1e-6;

  private static final double AMAX_RTOL = 1e-6;

  @Override
  public String what() {
    return spec.pattern().toString();
  }

  @Override
  public String method() {
    return how.method().toString();
  }

  @Override
  public String over() {
    return how.transport().toString();
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
        spec.outputDtype().name(),
        spec.features().stream().map(Enum::name).collect(Collectors.joining("+")),
        how.method().name(),
        Integer.toString(how.splits()),
        how.boundaries().stream().map(String::valueOf).collect(Collectors.joining("-")),
        Integer.toString(how.streams()),
        how.order().name(),
        how.transport().name(),
        Integer.toString(how.workers()),
        how.priority().name(),
        Boolean.toString(how.replayed()),
        Boolean.toString(how.symmetricOutput()));
  }

  public static PipelineCase parse(String text) {
    var part = text.split(",", -1);
    var features = EnumSet.noneOf(Feature.class);
    Arrays.stream(part[7].split("\\+"))
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
            features),
        new Overlap(
            Method.valueOf(part[8]),
            Integer.parseInt(part[9]),
            Arrays.stream(part[10].split("-"))
                .filter(cut -> !cut.isEmpty())
                .map(Integer::valueOf)
                .toList(),
            Integer.parseInt(part[11]),
            ChunkOrder.valueOf(part[12]),
            Transport.valueOf(part[13]),
            Integer.parseInt(part[14]),
            Priority.valueOf(part[15]),
            Boolean.parseBoolean(part[16]),
            Boolean.parseBoolean(part[17])));
  }

  @Override
  public void check(Trial trial) {
    try (var pipe = build(trial)) {
      verify(pipe);
      var findings = new Findings();
      // Other inputs in every round: what an earlier one left must not be taken for this one's.
      for (int round = 0; round < ROUNDS; round++) {
        fill(pipe, round);
        run(pipe, round);
        trial.handled().accept(pipe.output());
        compare(pipe, round, findings);
      }
      findings.orThrow();
    }
  }

  /// The last round in flight, but where each iteration adds to what the one before left.
  private void run(Pipeline pipe, int round) {
    if (round < ROUNDS - 1 || spec.has(Feature.ACCUMULATE)) {
      pipe.run();
    } else {
      var _ = pipe.time(ITERATIONS_IN_FLIGHT, Timing.BACK_TO_BACK);
    }
  }

  private Pipeline build(Trial trial) {
    var builder = Pipeline.on(trial.group()).gemm(spec).overlap(how).memory(trial.kind());
    if (spec.dtype().isFp8()) {
      builder.scales(INPUT_SCALE, WEIGHT_SCALE);
    }
    return builder.build();
  }

  /// What is wrong is thrown on every rank alike.
  private static void verify(Pipeline pipe) {
    try {
      pipe.verify();
    } catch (VerificationFailed e) {
      throw new CaseFailed(String.valueOf(e.getMessage()));
    }
  }

  private void fill(Pipeline pipe, int round) {
    int rank = pipe.group().rank();
    pipe.input().fillIntegers(seed(round, rank, PlainCase.What.INPUT.seed()));
    pipe.weight().fillIntegers(seed(round, rank, PlainCase.What.WEIGHT.seed()));
    if (spec.has(Feature.BIAS)) {
      pipe.bias().fillIntegers(seed(round, 0, PlainCase.What.BIAS.seed()));
    }
    if (spec.pattern().beside()) {
      pipe.besideInput().fillIntegers(seed(round, rank, PlainCase.What.BESIDE.seed()));
    }
    if (spec.has(Feature.ACCUMULATE)) {
      pipe.output().fillIntegers(seed(round, outputSeedRank(rank), PlainCase.What.OUTPUT.seed()));
    }
  }

  /// An all-reduce adds to what all ranks have alike.
  private int outputSeedRank(int rank) {
    return spec.pattern() == Pattern.GEMM_ALL_REDUCE ? 0 : rank;
  }

  private static long seed(int round, int rank, int what) {
    return 1_000_000L * round + 1000L * rank + what;
  }

  private void compare(Pipeline pipe, int round, Findings findings) {
    var place = pipe.group().place();
    var as = "%s, %s on rank %s, round %d: ".formatted(spec, how, place, round);
    var plain = plain(place, round);
    var sums = plain.output();
    var dtype = spec.outputDtype();
    var got = pipe.output().toFloats();
    if (spec.has(Feature.GELU)) {
      findings.same(
          as + "pre-activation", PlainCase.rounded(dtype, sums), pipe.preActivation().toFloats());
      findings.near(as + "output", plain.activated(), got, ACTIVATED_ATOL, dtype.epsilon());
    } else {
      findings.same(as + "output", PlainCase.rounded(dtype, sums), got);
    }
    if (spec.has(Feature.GATHERED_INPUT)) {
      findings.same(as + "gathered input", plain.wholeInput(), pipe.gatheredInput().toFloats());
    }
    if (spec.pattern().beside()) {
      findings.same(as + "output beside", plain.besideOutput(), pipe.besideOutput().toFloats());
    }
    if (spec.dtype().isFp8()) {
      compareAmax(pipe, PlainCase.largest(plain.activated()), as, findings);
    }
    if (how.symmetricOutput()) {
      comparePeer(pipe, round, as, findings);
    }
  }

  private PlainCase plain(Place place, int round) {
    return new PlainCase(spec, place, what -> rank -> size -> integers(round, rank, what, size));
  }

  private static void compareAmax(Pipeline pipe, float mine, String as, Findings findings) {
    float largest = 0;
    for (double each : pipe.group().gather((double) mine)) {
      largest = Math.max(largest, (float) each);
    }
    findings.near(as + "amax", new float[] {largest}, new float[] {pipe.amax()}, 0, AMAX_RTOL);
  }

  private void comparePeer(Pipeline pipe, int round, String as, Findings findings) {
    var place = pipe.group().place();
    pipe.group().barrier();
    int peer = (place.rank() + 1) % place.size();
    var ofPeer = pipe.output(peer).toFloats();
    pipe.group().barrier();
    if (!spec.has(Feature.GELU)) {
      findings.same(
          as + "rank " + peer + "'s output",
          PlainCase.rounded(
              spec.outputDtype(), plain(new Place(peer, place.size()), round).output()),
          ofPeer);
    }
  }

  /// What that rank filled that with.
  private float[] integers(int round, int rank, PlainCase.What what, int size) {
    int seedRank =
        switch (what) {
          case INPUT, WEIGHT, BESIDE -> rank;
          case BIAS -> 0;
          case OUTPUT -> outputSeedRank(rank);
        };
    return Integers.first(seed(round, seedRank, what.seed()), size);
  }
}
