package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.VerifiedInputs.Kind;
import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Programs;
import braid.internal.selftest.Sweep;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Overlap;
import braid.model.Transport;
import braid.model.VerificationFailed;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Verification accepts every correct result and finds planted errors. Errors are planted by plain
/// loops in fp64, between the run and the comparison. A failure prints its seed; `-Dbraid.seed=…`
/// repeats it.
@Timeout(400)
class VerifyRandomTest {
  private static final long SEED = Sweep.SEED;
  private static final int MOST_RANKS = 5;
  private static final int KINDS_A_CASE = 4;
  private static final double LEAST_FOUND = 0.99;

  private static final List<Kind> KINDS = List.of(Kind.values());

  /// Inputs whose outputs are usually all finite.
  private static final List<Kind> PLANTED_INTO =
      List.of(Kind.GAUSSIAN, Kind.WIDE, Kind.CANCELLING, Kind.SMALL_INTEGERS, Kind.LARGER_INTEGERS);

  /// Kinds of planted errors.
  private enum Planted {
    STEP_DROPPED,
    OLD_CHUNK,
    PARTIAL_MISSING,
    PARTIAL_TWICE,
    FOUR_ULP
  }

  /// Numbers of errors planted and found.
  private record Tally(LongAdder planted, LongAdder found) {
    Tally() {
      this(new LongAdder(), new LongAdder());
    }

    double share() {
      return found.sum() / (double) planted.sum();
    }

    @Override
    public String toString() {
      return "%d of %d (%.1f%%)".formatted(found.sum(), planted.sum(), 100 * share());
    }
  }

  private record Verified(PipelineCase pipeline, List<Kind> kinds, long seed) {}

  /// Returns a case per pattern, method and type, otherwise random.
  private static List<Verified> cases(int ranks, SplittableRandom random) {
    var cases = new ArrayList<Verified>();
    var programs = new Programs(ranks, Capabilities.host(), List.of(), List.of(DType.values()));
    for (var row : Capabilities.host()) {
      if (!row.supported() || row.transport() != Transport.COPY_ENGINE) {
        continue;
      }
      for (var dtype : DType.values()) {
        var pipeline = drawn(programs, row, dtype, ranks, random);
        // Some options have no effect with another type.
        while (!PipelineCases.isPossible(pipeline.spec(), pipeline.tuning(), ranks)) {
          pipeline = drawn(programs, row, dtype, ranks, random);
        }
        var kinds = new ArrayList<Kind>();
        for (int i = 0; i < KINDS_A_CASE; i++) {
          kinds.add(KINDS.get(random.nextInt(KINDS.size())));
        }
        cases.add(new Verified(pipeline, kinds, random.nextLong(1L << 40)));
      }
    }
    return cases;
  }

  /// Returns a random problem with another depth and in another type.
  private static PipelineCase drawn(
      Programs programs, Capabilities.Row row, DType dtype, int ranks, SplittableRandom random) {
    var any = programs.pipeline(random.nextLong(), row);
    var spec = any.spec();
    var output =
        dtype.isFp8()
            ? List.of(DType.BF16, DType.FP16, DType.FP32, DType.FP8_E4M3, DType.FP8_E5M2)
                .get(random.nextInt(5))
            : random.nextInt(4) == 0 ? DType.FP32 : dtype;
    var features = EnumSet.noneOf(Feature.class);
    features.addAll(spec.features());
    if (output.isFp8()) {
      features.remove(Feature.ACCUMULATE);
    }
    var deeper =
        new GemmSpec(
            spec.pattern(),
            spec.m(),
            spec.n(),
            depth(ranks, random),
            spec.besideElements(),
            dtype,
            dtype,
            output,
            features);
    return new PipelineCase(deeper, any.tuning());
  }

  private static int depth(int ranks, SplittableRandom random) {
    return switch (random.nextInt(10)) {
      case 0, 1, 2 -> random.nextInt(ranks, 16);
      case 3 -> random.nextInt(300, 1025);
      default -> random.nextInt(16, 130);
    };
  }

  private static Pipeline build(PipelineCase each, ProcessGroup world) {
    var builder = Pipeline.on(world).gemm(each.spec()).overlap(each.tuning());
    if (each.spec().outputDtype().isFp8()) {
      builder.scales(
          VerifiedInputs.INPUT_SCALE, VerifiedInputs.WEIGHT_SCALE, VerifiedInputs.OUTPUT_SCALE);
    } else if (each.spec().isScaled()) {
      builder.scales(VerifiedInputs.INPUT_SCALE, VerifiedInputs.WEIGHT_SCALE);
    }
    return builder.build();
  }

  @Test
  void noRightResultIsRefused() {
    var verified = new LongAdder();
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
      int size = ranks;
      var cases = Sweep.oneOf(8, cases(ranks, new SplittableRandom(SEED + ranks)));
      LocalRanks.run(
          ranks,
          world -> {
            for (var each : cases) {
              try (var pipe = build(each.pipeline(), world)) {
                for (int i = 0; i < each.kinds().size(); i++) {
                  var inputs =
                      new VerifiedInputs(
                          ((GemmSpec) pipe.problem()),
                          size,
                          each.kinds().get(i),
                          each.seed() + 100_000L * i);
                  inputs.fill(pipe);
                  passes(pipe, inputs);
                  if (world.rank() == 0) {
                    verified.increment();
                  }
                }
              }
            }
          });
    }
    System.out.printf("%d verifications, none refused%n", verified.sum());
    assertThat(verified.sum()).isGreaterThanOrEqualTo(Sweep.times(250, 2000));
  }

  private static void passes(Pipeline pipe, VerifiedInputs inputs) {
    passes(pipe::verify, inputs);
  }

  private static void passes(Runnable verify, VerifiedInputs inputs) {
    try {
      verify.run();
    } catch (VerificationFailed e) {
      throw new AssertionError(
          "with -Dbraid.seed=%d, %s: %s".formatted(SEED, inputs, e.getMessage()), e);
    }
  }

  @Test
  void deepSumsAreNotRefusedEither() {
    var verified = new LongAdder();
    var specs =
        List.of(
            GemmSpec.allGatherGemm(9, 7, 8192),
            GemmSpec.gemmReduceScatter(9, 7, 8192),
            GemmSpec.gemmAllReduce(9, 7, 8192));
    var kinds = Sweep.oneOf(3, KINDS);
    LocalRanks.run(
        4,
        world -> {
          for (var spec : specs) {
            for (var dtype : DType.values()) {
              for (var tuning : List.of(Overlap.pipelined(2), Overlap.ring(), Overlap.direct(2))) {
                try (var pipe = build(new PipelineCase(spec.dtype(dtype), tuning), world)) {
                  for (var kind : kinds) {
                    var inputs = new VerifiedInputs((GemmSpec) pipe.problem(), 4, kind, SEED);
                    inputs.fill(pipe);
                    passes(pipe, inputs);
                    verified.increment();
                  }
                }
              }
            }
          }
        });
    assertThat(verified.sum())
        .isEqualTo(4L * specs.size() * 3 * DType.values().length * kinds.size());
  }

  /// Plain loops that add all products in order are correct too. With constant inputs their
  /// roundings all have the same sign, in every element.
  @Test
  void sumsOfConstantsAreRightInAnotherOrderToo() {
    var off = new LongAdder();
    LocalRanks.run(
        1,
        world -> {
          var spec = GemmSpec.allGatherGemm(49, 31, 768).dtype(DType.TF32);
          try (var pipe = build(new PipelineCase(spec, Overlap.pipelined(1)), world)) {
            for (int seed = 0; seed < 200; seed++) {
              var inputs = new VerifiedInputs((GemmSpec) pipe.problem(), 1, Kind.CONSTANT, seed);
              inputs.fill(pipe);
              var sides = inputs.held(0);
              float sum = 0;
              for (int k = 0; k < 768; k++) {
                sum = Math.fma(sides.left()[0][k], sides.right()[k][0], sum);
              }
              var sums = new float[49 * 31];
              Arrays.fill(sums, sum);
              double exact = 768.0 * sides.left()[0][0] * sides.right()[0][0];
              if (Math.abs(sum - exact) > 3 * Math.sqrt(768) * 0x1p-24 * exact) {
                off.increment();
              }
              passes(() -> pipe.verify(null, () -> pipe.output().copyFrom(sums)), inputs);
            }
          }
        });
    // More than three standard deviations of a random walk.
    assertThat(off.sum()).isPositive();
  }

  @Test
  void plantedErrorsAreFound() {
    var tallies = new ConcurrentSkipListMap<String, Tally>();
    var totals = new ConcurrentSkipListMap<Planted, Tally>();
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
      int size = ranks;
      var cases = Sweep.oneOf(4, cases(ranks, new SplittableRandom(~SEED + ranks)));
      LocalRanks.run(
          ranks,
          world -> {
            for (var each : cases) {
              var kind = PLANTED_INTO.get((int) (each.seed() % PLANTED_INTO.size()));
              try (var pipe = build(each.pipeline(), world)) {
                var inputs = new VerifiedInputs((GemmSpec) pipe.problem(), size, kind, each.seed());
                for (var planted : Planted.values()) {
                  plant(pipe, inputs, planted)
                      .ifPresent(
                          found -> {
                            if (world.rank() == 0) {
                              count(
                                  tallies,
                                  planted + " " + ((GemmSpec) pipe.problem()).dtype(),
                                  found);
                              count(totals, planted, found);
                            }
                          });
                }
              }
            }
          });
    }
    System.out.println("planted and found: " + tallies);
    System.out.println("planted and found: " + totals);
    assertThat(totals).containsOnlyKeys(Planted.values());
    assertThat(totals)
        .as("with -Dbraid.seed=" + SEED)
        .allSatisfy((_, tally) -> assertThat(tally.share()).isGreaterThanOrEqualTo(LEAST_FOUND));
  }

  private static <K> void count(Map<K, Tally> tallies, K key, boolean found) {
    var tally = tallies.computeIfAbsent(key, _ -> new Tally());
    tally.planted().increment();
    if (found) {
      tally.found().increment();
    }
  }

  /// Returns whether an error was found on all ranks; empty if it is not possible or does not
  /// change the output.
  private static Optional<Boolean> plant(Pipeline pipe, VerifiedInputs inputs, Planted planted) {
    var spec = (GemmSpec) pipe.problem();
    var world = pipe.group();
    var random = new SplittableRandom(inputs.seed() + planted.name().hashCode());
    int victim = random.nextInt(world.size());
    boolean reduces = spec.pattern().reduces();
    boolean twice = planted == Planted.PARTIAL_TWICE;
    boolean ofPartials = planted == Planted.PARTIAL_MISSING || twice;
    boolean sixteenBits = spec.outputDtype().bytes() == Short.BYTES && !spec.has(Feature.GELU);
    if ((ofPartials && !reduces) || (planted == Planted.FOUR_ULP && !sixteenBits)) {
      return Optional.empty();
    }
    var possible =
        ofPartials
            ? weightyRank(inputs, victim, random)
            : OptionalInt.of(random.nextInt(world.size()));
    if (possible.isEmpty()) {
      return Optional.empty();
    }
    int source = possible.getAsInt();
    var old = new float[][] {new float[0], new float[0]};
    if (planted == Planted.OLD_CHUNK) {
      new VerifiedInputs(spec, world.size(), inputs.kind(), ~inputs.seed()).fill(pipe);
      pipe.run();
      old[0] = pipe.output().toFloats();
      old[1] = spec.has(Feature.GELU) ? pipe.preActivation().toFloats() : old[0];
    }
    inputs.fill(pipe);
    var changed = new boolean[1];
    Runnable change =
        () -> {
          if (world.rank() != victim) {
            return;
          }
          var output = new Output(pipe);
          switch (planted) {
            case STEP_DROPPED -> {
              int from = reduces ? source : victim;
              int step = weightyStep(inputs, from, victim, random);
              output.add(-1, inputs.products(from, victim, step, step + 1, false));
            }
            case OLD_CHUNK -> output.takeRows(old[0], old[1], random);
            case PARTIAL_MISSING, PARTIAL_TWICE -> {
              int depth = (int) inputs.sizes(source).inner().length();
              output.add(twice ? 1 : -1, inputs.products(source, victim, 0, depth, false));
            }
            case FOUR_ULP -> output.fourUlp(sizes(inputs, victim), random);
          }
          changed[0] = output.write();
        };
    boolean found = false;
    try {
      pipe.verify(null, change);
    } catch (VerificationFailed e) {
      found = true;
    }
    boolean planting =
        Arrays.stream(world.gather(changed[0] ? 1L : 0L)).anyMatch(each -> each == 1);
    if (!found && planting && world.rank() == 0) {
      System.out.println("missed " + planted + ": " + inputs + ", " + pipe.tuning());
    }
    return planting ? Optional.of(found) : Optional.empty();
  }

  /// Returns a random step whose products are at least an average part of |A| · |B| in some
  /// element. A smaller one may vanish in the roundings of the others.
  private static int weightyStep(
      VerifiedInputs inputs, int from, int victim, SplittableRandom random) {
    int depth = (int) inputs.sizes(from).inner().length();
    double[] all = sizes(inputs, victim);
    int step = random.nextInt(depth);
    for (int tried = 0; tried < depth; tried++) {
      double[] one = inputs.products(from, victim, step, step + 1, true);
      for (int i = 0; i < all.length; i++) {
        if (one[i] > 0 && one[i] * depth >= all[i]) {
          return step;
        }
      }
      step = (step + 1) % depth;
    }
    return step;
  }

  /// Returns a random rank whose sum is at least an average product in some element; empty if there
  /// is none. A smaller sum may vanish in the roundings: products of few steps may cancel.
  private static OptionalInt weightyRank(
      VerifiedInputs inputs, int victim, SplittableRandom random) {
    double[] all = sizes(inputs, victim);
    int depth =
        IntStream.range(0, inputs.ranks())
            .map(rank -> (int) inputs.sizes(rank).inner().length())
            .sum();
    int first = random.nextInt(inputs.ranks());
    return IntStream.range(0, inputs.ranks())
        .map(i -> (first + i) % inputs.ranks())
        .filter(
            rank -> {
              int own = (int) inputs.sizes(rank).inner().length();
              double[] sum = inputs.products(rank, victim, 0, own, false);
              return IntStream.range(0, sum.length)
                  .anyMatch(i -> sum[i] != 0 && Math.abs(sum[i]) * depth >= all[i]);
            })
        .findFirst();
  }

  /// Returns |A| · |B|, summed over all ranks if the pattern sums them.
  private static double[] sizes(VerifiedInputs inputs, int victim) {
    int first = inputs.spec().pattern().reduces() ? 0 : victim;
    int last = inputs.spec().pattern().reduces() ? inputs.ranks() - 1 : victim;
    double[] sizes = {};
    for (int rank = first; rank <= last; rank++) {
      int depth = (int) inputs.sizes(rank).inner().length();
      var products = inputs.products(rank, victim, 0, depth, true);
      sizes = sizes.length == 0 ? products : sizes;
      for (int i = 0; rank > first && i < products.length; i++) {
        sizes[i] += products[i];
      }
    }
    return sizes;
  }

  /// The output of a run, to be modified.
  private static final class Output {
    private final Pipeline pipe;
    private final DType dtype;

    /// Type of the values before the activation.
    private final DType kept;

    /// Scale of the stored output.
    private final float outScale;

    private final boolean activated;
    private final float[] values;
    private final float[] result;

    Output(Pipeline pipe) {
      this.pipe = pipe;
      dtype = ((GemmSpec) pipe.problem()).outputDtype();
      kept = ((GemmSpec) pipe.problem()).sumDtype();
      outScale = dtype.isFp8() ? 1 / VerifiedInputs.OUTPUT_SCALE : 1;
      activated = ((GemmSpec) pipe.problem()).has(Feature.GELU);
      result = pipe.output().toFloats();
      values = activated ? pipe.preActivation().toFloats() : result.clone();
    }

    void add(int sign, double[] addends) {
      for (int i = 0; i < values.length; i++) {
        set(i, values[i] + sign * addends[i] * (activated ? 1 : outScale));
      }
    }

    private void set(int i, double value) {
      float before = values[i];
      values[i] = (activated ? kept : dtype).round((float) value);
      if (!activated) {
        result[i] = values[i];
      } else if (values[i] != before) {
        result[i] = dtype.round((float) gelu(values[i]) * outScale);
      }
    }

    private static double gelu(double x) {
      return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * Math.pow(x, 3))));
    }

    void takeRows(float[] from, float[] preActivation, SplittableRandom random) {
      int columns = Math.toIntExact(pipe.output().shape().get(1));
      int rows = values.length / columns;
      int first = random.nextInt(rows);
      int count = random.nextInt(1, rows - first + 1);
      System.arraycopy(from, first * columns, result, first * columns, count * columns);
      System.arraycopy(preActivation, first * columns, values, first * columns, count * columns);
    }

    void fourUlp(double[] sizes, SplittableRandom random) {
      int i = random.nextInt(values.length);
      for (int tried = 0; sizes[i] == 0 && tried < sizes.length; tried++) {
        i = (i + 1) % sizes.length;
      }
      if (sizes[i] == 0) {
        return; // No input has a size there.
      }
      // The number before an accumulation may be larger than all products.
      double size = Math.max(sizes[i], Math.abs(values[i]));
      double ulp = dtype.epsilon() * Math.scalb(1.0, Math.getExponent(size));
      set(i, values[i] + (random.nextBoolean() ? 4 : -4) * ulp);
    }

    /// Writes the output. Returns whether any number changed.
    boolean write() {
      boolean changed = !Arrays.equals(result, pipe.output().toFloats());
      pipe.output().copyFrom(result);
      if (activated) {
        changed |= !Arrays.equals(values, pipe.preActivation().toFloats());
        pipe.preActivation().copyFrom(values);
      }
      return changed;
    }
  }
}
