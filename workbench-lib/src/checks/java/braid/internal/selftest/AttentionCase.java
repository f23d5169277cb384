package braid.internal.selftest;

import braid.Attention;
import braid.AttentionGradient;
import braid.ChainLink;
import braid.ProcessGroup;
import braid.Tensor;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Transport;
import braid.model.VerificationFailed;
import braid.natives.kernels.Integers;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Attention over a divided sequence, and in some cases its backward pass, compared with plain
/// loops in double precision over the whole sequence. A seed determines the problem and the options
/// of the method.
///
/// @param backward true to compare the gradients too
public record AttentionCase(AttentionSpec spec, ContextParallel how, boolean backward)
    implements TabledCase {
  private static final int ITERATIONS_IN_FLIGHT = 3;
  private static final List<DType> DTYPES = List.of(DType.FP32, DType.BF16, DType.FP16);
  private static final List<ContextParallel> METHODS =
      List.of(
          ContextParallel.ring(),
          ContextParallel.allGatherKv(),
          ContextParallel.ulysses(),
          ContextParallel.unfused());

  /// Cases per method, transport and type.
  private static final int CASES = 6;

  /// Powers of two and odd sizes; multiples of 8 and others; more than tensor cores take.
  private static final int[] HEAD_SIZES = {1, 3, 8, 16, 24, 33, 40, 64, 64, 72, 128, 128, 136, 260};

  private static final int MOST_TOKENS = 200;
  private static final int MOST_KV_HEADS = 3;
  private static final int MOST_GROUP = 3;
  private static final int MOST_SEQUENCES = 5;
  private static final int MOST_SPLITS = 4;
  private static final int MOST_STREAMS = 3;

  /// Factor of the integers in query and key: scores then differ by a few units.
  private static final float FRACTION = 0.5f;

  /// One of so many cases has a backward pass.
  private static final int PER_BACKWARD = 4;

  /// Errors of fp32, relative to the sum of weighted values or to the LSE.
  static final double FP32_ERROR = 1e-5;

  /// Returns random cases of every method, transport and type.
  public static List<AttentionCase> table(int ranks, long seed) {
    return drawn(ranks, seed, CASES);
  }

  /// Returns one random case per method, transport and type.
  public static List<AttentionCase> quick(int ranks, long seed) {
    return drawn(ranks, seed, 1);
  }

  private static List<AttentionCase> drawn(int ranks, long seed, int count) {
    var random = new SplittableRandom(seed);
    var cases = new ArrayList<AttentionCase>();
    for (var method : METHODS) {
      for (var transport : Transport.values()) {
        for (var dtype : DTYPES) {
          for (int i = 0; i < count; i++) {
            int sharing = method.headRanks(ranks);
            var spec = spec(random, ranks).dtype(dtype);
            cases.add(
                new AttentionCase(
                    spec.heads(spec.heads() * sharing, spec.kvHeads() * sharing),
                    how(random, method.over(transport), spec, ranks),
                    random.nextInt(PER_BACKWARD) == 0));
          }
        }
      }
    }
    return cases;
  }

  private static AttentionSpec spec(SplittableRandom random, int ranks) {
    int tokens = ranks + random.nextInt(MOST_TOKENS);
    int kvHeads = 1 + random.nextInt(MOST_KV_HEADS);
    int headSize = HEAD_SIZES[random.nextInt(HEAD_SIZES.length)];
    var layouts = TokenLayout.values();
    var spec =
        AttentionSpec.of(tokens, kvHeads * (1 + random.nextInt(MOST_GROUP)), headSize)
            .kvHeads(kvHeads)
            .layout(layouts[random.nextInt(layouts.length)]);
    if (random.nextInt(4) == 0) {
      spec = spec.scale(0.25f);
    }
    if (random.nextInt(3) == 0) {
      spec = packed(random, spec);
    }
    return switch (random.nextInt(4)) {
      case 0 -> spec;
      case 1 -> spec.causal().window(1 + random.nextInt(tokens));
      default -> spec.causal();
    };
  }

  /// Divides the tokens into a few sequences, some of them with padding.
  private static AttentionSpec packed(SplittableRandom random, AttentionSpec spec) {
    int sequences = 1 + random.nextInt(MOST_SEQUENCES);
    var padded = new int[sequences + 1];
    for (int i = 1; i < sequences; i++) {
      padded[i] = random.nextInt(spec.sequence() + 1);
    }
    padded[sequences] = spec.sequence();
    Arrays.sort(padded);
    var cumulative = new int[sequences + 1];
    for (int i = 0; i < sequences; i++) {
      int room = padded[i + 1] - padded[i];
      int padding = random.nextBoolean() ? random.nextInt(room + 1) : 0;
      cumulative[i + 1] = cumulative[i] + room - padding;
    }
    return spec.packed(cumulative, padded);
  }

  /// Returns the number of the sequence that a position belongs to; -1 for padding.
  private int sequence(int position) {
    var cumulative = spec.packing().cumulative();
    var padded = spec.packing().padded();
    for (int i = 0; i + 1 < padded.size(); i++) {
      int tokens = cumulative.get(i + 1) - cumulative.get(i);
      if (position >= padded.get(i) && position < padded.get(i) + tokens) {
        return i;
      }
    }
    return -1;
  }

  /// Returns a random tuning; with one split if heads are divided.
  private static ContextParallel how(
      SplittableRandom random, ContextParallel method, AttentionSpec spec, int ranks) {
    var how = method;
    if (method.method() == ContextParallel.Method.RING && random.nextBoolean()) {
      how = how.neighborToNeighbor();
    }
    if (method.headRanks(ranks) == 1 && method.method() != ContextParallel.Method.UNFUSED) {
      int most = Math.min(MOST_SPLITS, method.mostSplits(spec, ranks));
      how = how.splits(1 + random.nextInt(most)).streams(1 + random.nextInt(MOST_STREAMS));
    }
    return random.nextInt(3) == 0 ? how.replay() : how;
  }

  @Override
  public String what() {
    return "attention";
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
    return spec + ", " + how + (backward ? ", with its backward pass" : "");
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var attention =
        Attention.on(context.group()).spec(spec).method(how).memory(context.kind()).build();
    try {
      attention.verify();
    } catch (VerificationFailed e) {
      findings.found(String.valueOf(e.getMessage()));
    } catch (RuntimeException | Error e) {
      attention.close();
      throw e;
    }
    if (!backward) {
      return new Running(this, attention, null, context);
    }
    try {
      var gradient =
          Attention.on(context.group())
              .method(how)
              .memory(context.kind())
              .backward()
              .forward(attention)
              .build();
      return new Running(this, attention, gradient, context);
    } catch (RuntimeException | Error e) {
      attention.close();
      throw e;
    }
  }

  private record Running(
      AttentionCase tested,
      Attention attention,
      @Nullable AttentionGradient gradient,
      CaseContext context)
      implements Opened {
    /// Runs with other inputs in every round, every second round in flight.
    @Override
    public void round(int round, Findings findings) {
      var inputs = tested.inputs(round);
      inputs.fill(attention);
      run(attention, round);
      if (gradient != null) {
        inputs.fill(gradient);
        run(gradient, round);
        context.alteration().accept(gradient.queryGradient());
        context.alteration().accept(gradient.keyGradient());
        context.alteration().accept(gradient.valueGradient());
        inputs.compare(gradient, findings);
      }
      context.alteration().accept(attention.output());
      inputs.compare(attention, findings);
    }

    private static void run(ChainLink link, int round) {
      if (round % 2 == 0) {
        link.run();
      } else {
        var _ = link.time(ITERATIONS_IN_FLIGHT, Timing.BACK_TO_BACK);
      }
    }

    @Override
    public void close() {
      if (gradient != null) {
        gradient.close();
      }
      attention.close();
    }
  }

  /// Returns the inputs of a round: small integers, or halves of them. Keys, values and gradients
  /// of the output are NaN for padding, which nobody may see.
  private Inputs inputs(int round) {
    var sequences = IntStream.range(0, spec.sequence()).map(this::sequence).toArray();
    return new Inputs(
        this,
        round,
        sequences,
        numbers(1000L * round, spec.heads(), FRACTION, new int[spec.sequence()]),
        numbers(1000L * round + 1, spec.kvHeads(), FRACTION, sequences),
        numbers(1000L * round + 2, spec.kvHeads(), 1, sequences),
        numbers(1000L * round + 3, spec.heads(), FRACTION, sequences));
  }

  private float[] numbers(long seed, int heads, float factor, int[] sequences) {
    int columns = heads * spec.headSize();
    var numbers = new float[spec.sequence() * columns];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = sequences[i / columns] < 0 ? Float.NaN : factor * Integers.at(seed, i);
    }
    return numbers;
  }

  /// Positions of this rank's rows, by the definition of the layouts: parts of equal length, of
  /// which the first ones have one position more.
  private List<Integer> positions(ProcessGroup group) {
    int ranks = group.size();
    int rank = group.rank();
    boolean zigzag = spec.layout() == TokenLayout.ZIGZAG;
    int parts = zigzag ? 2 * ranks : ranks;
    var positions = new ArrayList<Integer>();
    for (int part = 0, next = 0; part < parts; part++) {
      int length = spec.sequence() / parts + (part < spec.sequence() % parts ? 1 : 0);
      for (int i = 0; i < length; i++, next++) {
        if (part == rank || (zigzag && part == 2 * ranks - 1 - rank)) {
          positions.add(next);
        }
      }
    }
    return positions;
  }

  /// Inputs of the whole sequence, a row per position, and the number of each position's sequence.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Inputs(
      AttentionCase of,
      int round,
      int[] sequences,
      float[] query,
      float[] key,
      float[] value,
      float[] outputGradient) {
    void fill(Attention attention) {
      var mine = of.positions(attention.group());
      put(attention.query(), query, mine);
      put(attention.key(), key, mine);
      put(attention.value(), value, mine);
    }

    void fill(AttentionGradient gradient) {
      put(gradient.outputGradient(), outputGradient, of.positions(gradient.group()));
    }

    private void put(Tensor tensor, float[] numbers, List<Integer> positions) {
      int columns = numbers.length / sequences.length;
      var mine = new float[positions.size() * columns];
      for (int i = 0; i < positions.size(); i++) {
        System.arraycopy(numbers, positions.get(i) * columns, mine, i * columns, columns);
      }
      var _ = tensor.copyFrom(mine);
    }

    void compare(Attention attention, Findings findings) {
      var spec = of.spec();
      var mine = of.positions(attention.group());
      int size = spec.headSize();
      int kvColumns = spec.kvHeads() * size;
      int rows = mine.size() * spec.heads();
      var output = new double[rows * size];
      var outputBounds = new double[rows * size];
      var lse = new double[rows];
      var lseBounds = new double[rows];
      // A GPU rounds weights to a 16-bit type, and every backend the output.
      double rounding = spec.dtype() == DType.FP32 ? 0 : spec.dtype().epsilon() / 2;
      for (int at = 0; at < rows; at++) {
        var weights = weights(mine.get(at / spec.heads()), at % spec.heads());
        double sum = Arrays.stream(weights).sum();
        lse[at] = Math.log(sum);
        lseBounds[at] = FP32_ERROR * (1 + Math.abs(lse[at]));
        int column = at % spec.heads() / spec.group() * size;
        for (int j = 0; j < weights.length; j++) {
          for (int c = 0; c < size && weights[j] > 0; c++) {
            double each = weights[j] / sum * value[j * kvColumns + column + c];
            output[at * size + c] += each;
            outputBounds[at * size + c] += (FP32_ERROR + rounding) * Math.abs(each);
          }
        }
        for (int c = at * size; c < (at + 1) * size && sum > 0; c++) {
          outputBounds[c] += 2 * rounding * Math.abs(output[c]) + FP32_ERROR;
        }
      }
      var as = as(attention.group());
      findings.within(as + "output", output, outputBounds, attention.output().toFloats());
      findings.within(as + "lse", lse, lseBounds, attention.lse().toFloats());
    }

    void compare(AttentionGradient gradient, Findings findings) {
      var group = gradient.group();
      new AttentionGradientLoops(this, of.positions(group)).compare(gradient, as(group), findings);
    }

    private String as(ProcessGroup group) {
      return String.format(
          Locale.ROOT, "%s on rank %s, round %d: ", of.text(), group.place(), round);
    }

    /// Exponentials of the scores of all positions; 0 for those that the query does not see. Scores
    /// are small enough for double precision.
    double[] weights(int position, int head) {
      var spec = of.spec();
      int size = spec.headSize();
      int kvColumns = spec.kvHeads() * size;
      int column = head / spec.group() * size;
      int row = (position * spec.heads() + head) * size;
      var weights = new double[sequences.length];
      for (int j = 0; j < weights.length; j++) {
        boolean later = spec.isCausal() && j > position;
        boolean tooEarly = spec.window() > 0 && position - j >= spec.window();
        if (!later
            && !tooEarly
            && sequences[position] >= 0
            && sequences[j] == sequences[position]) {
          double score = 0;
          for (int c = 0; c < size; c++) {
            score += (double) query[row + c] * key[j * kvColumns + column + c];
          }
          weights[j] = Math.exp(score * spec.scale());
        }
      }
      return weights;
    }
  }
}
