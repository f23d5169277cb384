package braid.internal.selftest;

import braid.Capabilities;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.Packing;
import braid.model.TokenLayout;
import braid.model.Transport;
import braid.natives.kernels.Integers;
import braid.natives.kernels.PlainAttention;
import braid.schedule.Part;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.function.IntSupplier;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Attention over a divided sequence, and in some cases its backward pass, compared with plain
/// loops in double precision over the whole sequence. A seed determines the problem and the options
/// of the method.
public record AttentionCase(AttentionSpec spec, ContextParallel tuning, Pass pass)
    implements TabledCase {
  /// Results that are compared.
  public enum Pass {
    FORWARD("attention"),
    /// The gradients too.
    BACKWARD("attention-backward"),
    /// The gradients too, which must be equal to the last bit in a second run.
    DETERMINISTIC("attention-deterministic-backward");

    private final String text;

    Pass(String text) {
      this.text = text;
    }

    private String text(boolean isPacked) {
      return isPacked ? "packed-" + text : text;
    }
  }

  static final List<DType> DTYPES = List.of(DType.FP32, DType.BF16, DType.FP16);
  private static final List<Fused> FUSED = List.of(Fused.values());
  private static final List<ContextParallel> METHODS =
      List.of(
          ContextParallel.ring(),
          ContextParallel.ring().neighborToNeighbor(),
          ContextParallel.allGatherKv(),
          ContextParallel.ulysses(),
          ContextParallel.unfused());

  /// Powers of two and odd sizes; multiples of 8 and others; more than tensor cores take.
  private static final int[] HEAD_SIZES = {1, 3, 8, 16, 24, 33, 40, 64, 64, 72, 128, 128, 136, 260};

  private static final int MOST_TOKENS = 200;

  /// Most multiplications of the scores of all heads, which plain loops repeat on every rank.
  private static final long MOST_PRODUCTS = 40_000_000;

  /// Draws until a larger problem is taken, as many ranks need it.
  private static final int MOST_DRAWS = 50;

  private static final int MOST_KV_HEADS = 3;
  private static final int MOST_GROUP = 3;
  private static final int MOST_SEQUENCES = 5;
  private static final int MOST_SPLITS = 4;

  /// A multiple of all numbers of splits.
  private static final int EQUAL_SPLITS = 12;

  private static final int MOST_STREAMS = 3;

  /// Factor of the integers in query and key: scores then differ by a few units.
  private static final float FRACTION = 0.5f;

  /// Returns a random case of every method, pass, transport and of these types that attention has,
  /// of one sequence and packed.
  public static List<AttentionCase> table(List<DType> dtypes, int ranks, long seed) {
    return drawn(dtypes, ranks, seed, false);
  }

  /// Returns a random case of every method and pass, of one sequence and packed. Types and
  /// transports take turns.
  public static List<AttentionCase> quick(List<DType> dtypes, int ranks, long seed) {
    return drawn(dtypes, ranks, seed, true);
  }

  private record Way(DType dtype, Transport transport) {}

  private static List<AttentionCase> drawn(
      List<DType> dtypes, int ranks, long seed, boolean takesTurns) {
    var ways =
        DTYPES.stream()
            .filter(dtypes::contains)
            .flatMap(
                dtype ->
                    Arrays.stream(Transport.values())
                        .filter(each -> !each.isLibrary())
                        .map(each -> new Way(dtype, each)))
            .toList();
    if (ways.isEmpty()) {
      return List.of();
    }
    var random = new SplittableRandom(seed);
    var cases = new ArrayList<AttentionCase>();
    int turn = 0;
    for (boolean isPacked : List.of(false, true)) {
      var compiled =
          methods(ranks).stream().map(each -> compiled(random, each, ranks, isPacked)).toList();
      for (var pass : Pass.values()) {
        for (var common : compiled) {
          for (var way : takesTurns ? List.of(ways.get(turn++ % ways.size())) : ways) {
            cases.add(
                way.dtype == DType.FP32
                    ? random(random, ranks, isPacked, common.method).of(way, pass)
                    : common.of(way, pass));
          }
        }
        // So that a method's turns differ between passes.
        turn++;
      }
    }
    return cases;
  }

  /// Returns a case of each library whose rows are supported, of each layout with equal parts, in
  /// each type.
  public static List<AttentionCase> byLibrary(
      List<Capabilities.Row> rows, List<DType> dtypes, int ranks) {
    var cases = new ArrayList<AttentionCase>();
    var libraries =
        rows.stream()
            .filter(row -> row.supported() && row.transport().isLibrary())
            .map(Capabilities.Row::transport)
            .distinct()
            .toList();
    for (var library : libraries) {
      for (var dtype : DTYPES.stream().filter(dtypes::contains).toList()) {
        for (var layout : List.of(TokenLayout.CONTIGUOUS, TokenLayout.ZIGZAG)) {
          var spec =
              AttentionSpec.of(EQUAL_SPLITS * ranks, 2 * MOST_KV_HEADS, 16)
                  .kvHeads(MOST_KV_HEADS)
                  .dtype(dtype)
                  .layout(layout);
          var chunks = ContextParallel.allGatherKv().splits(3).streams(2).over(library);
          cases.add(new AttentionCase(spec.causal(), chunks, Pass.FORWARD));
          cases.add(new AttentionCase(spec.fused(Fused.KV), chunks.replay(), Pass.FORWARD));
          cases.add(
              new AttentionCase(
                  spec.causal().fused(Fused.QKV),
                  ContextParallel.unfused().over(library),
                  Pass.FORWARD));
        }
      }
    }
    return cases;
  }

  /// A problem with a tuning of a method, in any type, over any transport.
  private record Drawn(AttentionSpec spec, ContextParallel method, ContextParallel chosen) {
    AttentionCase of(Way way, Pass pass) {
      return new AttentionCase(spec.dtype(way.dtype), chosen.over(way.transport), pass);
    }
  }

  private static Drawn random(
      SplittableRandom random, int ranks, boolean isPacked, ContextParallel method) {
    return random(random, isPacked, () -> ranks + random.nextInt(MOST_TOKENS), method, ranks);
  }

  private static Drawn random(
      SplittableRandom random,
      boolean isPacked,
      IntSupplier tokens,
      ContextParallel method,
      int ranks) {
    int sharing = method.headRanks(ranks);
    for (int draw = 1; ; draw++) {
      var drawn = spec(random, isPacked, tokens.getAsInt(), ranks);
      var part =
          AttentionOracle.canDivide(drawn, method, ranks)
              ? drawn
              : drawn.layout(TokenLayout.ZIGZAG);
      var whole = part.heads(part.heads() * sharing, part.kvHeads() * sharing);
      if ((long) whole.sequence() * whole.keys() * whole.heads() * whole.headSize() <= MOST_PRODUCTS
          || draw == MOST_DRAWS) {
        return new Drawn(whole, method, how(random, method, whole, ranks));
      }
    }
  }

  /// Returns the problem of all cases of a method in 16-bit types. cuDNN compiles a plan for every
  /// size of a block, so blocks are of few sizes: equal parts of one sequence, whole blocks of
  /// packed ones that are divided as one.
  private static Drawn compiled(
      SplittableRandom random, ContextParallel method, int ranks, boolean isPacked) {
    if (!isPacked) {
      return random(
          random, false, () -> 2 * ranks * EQUAL_SPLITS * (1 + random.nextInt(2)), method, ranks);
    }
    var drawn = random(random, ranks, true, method);
    if (AttentionOracle.dividesSequences(drawn.spec.layout())) {
      drawn = new Drawn(drawn.spec.layout(TokenLayout.ZIGZAG), method, drawn.chosen);
    }
    return method.method() == ContextParallel.Method.UNFUSED
        ? drawn
        : new Drawn(drawn.spec, method, drawn.chosen.streams(1).splits(1));
  }

  /// Returns the methods that the number of ranks allows, with the forms of their exchange.
  private static List<ContextParallel> methods(int ranks) {
    var methods = new ArrayList<>(METHODS);
    IntStream.range(2, ranks)
        .filter(group -> ranks % group == 0)
        .forEach(group -> methods.add(ContextParallel.twoLevel(group)));
    return methods;
  }

  /// Returns the names of the cases that the number of ranks does not allow: two levels need
  /// several groups of several ranks.
  public static List<String> missing(int ranks) {
    return methods(ranks).size() > METHODS.size()
        ? List.of()
        : Stream.of(false, true)
            .flatMap(isPacked -> Arrays.stream(Pass.values()).map(pass -> pass.text(isPacked)))
            .toList();
  }

  private static AttentionSpec spec(
      SplittableRandom random, boolean isPacked, int tokens, int ranks) {
    int kvHeads = 1 + random.nextInt(MOST_KV_HEADS);
    int headSize = HEAD_SIZES[random.nextInt(HEAD_SIZES.length)];
    var layouts = TokenLayout.values();
    var spec =
        AttentionSpec.of(tokens, kvHeads * (1 + random.nextInt(MOST_GROUP)), headSize)
            .kvHeads(kvHeads)
            .layout(layouts[random.nextInt(layouts.length)])
            .fused(FUSED.get(random.nextInt(FUSED.size())));
    if (random.nextInt(4) == 0) {
      spec = spec.scale(0.25f);
    }
    if (random.nextInt(4) == 0) {
      spec = spec.exchanged(DType.FP8_E4M3);
    }
    if (isPacked) {
      spec = packed(random, spec);
    }
    var masked =
        switch (random.nextInt(4)) {
          case 0 -> spec;
          case 1 ->
              (random.nextBoolean() ? spec.causal() : spec).window(1 + random.nextInt(tokens));
          default -> spec.causal();
        };
    var drawn = random.nextInt(3) == 0 ? withKeys(random, masked, isPacked) : masked;
    return AttentionOracle.canDivide(drawn, ranks) ? drawn : masked.layout(TokenLayout.ZIGZAG);
  }

  /// Gives keys a number of their own: of one sequence a ratio of few, so that blocks are of few
  /// sizes; of packed ones any, also none for some sequences. Some have padding after them.
  ///
  /// @param any true for any numbers
  public static AttentionSpec withKeys(RandomGenerator random, AttentionSpec spec, boolean any) {
    var separate = spec.fused() == Fused.QKV ? spec.fused(Fused.KV) : spec;
    if (!any) {
      boolean fewer = !spec.isCausal() && random.nextInt(3) == 0;
      return separate.keys(
          fewer ? (spec.sequence() + 1) / 2 : (2 + random.nextInt(2)) * spec.sequence() / 2);
    }
    int sequences = spec.packing().sequences();
    var cumulative = new int[sequences + 1];
    var padded = new int[sequences + 1];
    for (int i = 0; i < sequences; i++) {
      var lengths = spec.packing().cumulative();
      int queries = lengths.get(i + 1) - lengths.get(i);
      int keys =
          spec.isCausal() ? queries + random.nextInt(queries + 3) : random.nextInt(2 * queries + 3);
      int padding = random.nextInt(3) == 0 ? random.nextInt(5) : 0;
      cumulative[i + 1] = cumulative[i] + keys;
      padded[i + 1] = padded[i] + keys + padding;
    }
    return separate.packedKeys(cumulative, padded);
  }

  /// Divides the tokens into some sequences, with or without padding.
  private static AttentionSpec packed(SplittableRandom random, AttentionSpec spec) {
    int sequences = 2 + random.nextInt(MOST_SEQUENCES - 1);
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

  /// Returns the errors of a GPU, which rounds weights to a 16-bit type.
  private PlainAttention.Errors errors() {
    return switch (spec.dtype()) {
      case BF16 -> PlainAttention.Errors.BF16;
      case FP16 -> PlainAttention.Errors.FP16;
      default -> PlainAttention.Errors.FP32;
    };
  }

  /// Returns a random tuning. Where heads are divided, splits divide the heads of keys per rank.
  private static ContextParallel how(
      SplittableRandom random, ContextParallel method, AttentionSpec spec, int ranks) {
    var tuning = method;
    if (method.method() != ContextParallel.Method.UNFUSED) {
      boolean areHeads = method.headRanks(ranks) > 1;
      int most = method.mostSplits(spec, ranks);
      int splits =
          areHeads
              ? random.nextBoolean() ? most : 1
              : 1 + random.nextInt(Math.min(MOST_SPLITS, most));
      int streams = 1 + random.nextInt(MOST_STREAMS);
      tuning = tuning.splits(splits).streams(areHeads ? Math.min(streams, splits) : streams);
    }
    return random.nextInt(3) == 0 ? tuning.replay() : tuning;
  }

  @Override
  public String what() {
    return pass.text(!spec.packing().isSingle());
  }

  @Override
  public String method() {
    return tuning.method() + (tuning.neighborsOnly() ? "-exchange" : "");
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
    return "%s: %s, %s".formatted(what(), spec, tuning);
  }

  @Override
  public boolean isReplayed() {
    return tuning.replayed();
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var attention =
        Pipeline.on(context.group()).attention(spec).overlap(tuning).memory(context.kind()).build();
    try {
      PipelineCase.verify(attention, findings);
      return new Running(this, attention, gradient(attention, context), context);
    } catch (RuntimeException | Error e) {
      attention.close();
      throw e;
    }
  }

  private @Nullable Pipeline gradient(Pipeline attention, CaseContext context) {
    if (pass == Pass.FORWARD) {
      return null;
    }
    var problem = spec.backward();
    return Pipeline.on(context.group())
        .attention(pass == Pass.DETERMINISTIC ? problem.deterministic() : problem)
        .overlap(tuning)
        .memory(context.kind())
        .backward(attention)
        .build();
  }

  private record Running(
      AttentionCase tested, Pipeline attention, @Nullable Pipeline gradient, CaseContext context)
      implements Opened {
    /// Runs with other inputs in every round, every second round in flight.
    @Override
    public void round(int round, Findings findings) {
      var inputs = tested.inputs(round);
      inputs.fill(attention);
      PipelineCase.inTurn(attention, round);
      if (gradient != null) {
        inputs.fillGradient(gradient);
        PipelineCase.inTurn(gradient, round);
        if (tested.pass == Pass.DETERMINISTIC) {
          runAgain(findings);
        }
        for (var each : tested.gradients()) {
          context.alteration().accept(gradient.tensor(each.tensor()));
        }
        inputs.compareGradient(gradient, findings);
      }
      context.alteration().accept(attention.output());
      inputs.compare(attention, findings);
    }

    /// Requires the same gradients of a second run.
    private void runAgain(Findings findings) {
      var once = gradients();
      var built = Objects.requireNonNull(gradient);
      built.run();
      context.alteration().accept(built.tensor(tested.gradients().getFirst().tensor()));
      var twice = gradients();
      for (int i = 0; i < once.size(); i++) {
        findings.same(
            "%s on rank %s: gradient %d of a second run"
                .formatted(tested.text(), context.group().place(), i),
            once.get(i),
            twice.get(i));
      }
    }

    /// Returns the gradients of query, key and value.
    private List<float[]> gradients() {
      var built = Objects.requireNonNull(gradient);
      return tested.gradients().stream().map(each -> each.load(built)).toList();
    }

    @Override
    public void close() {
      if (gradient != null) {
        gradient.close();
      }
      attention.close();
    }
  }

  /// Returns the gradients of query, key and value.
  private List<PartColumns> gradients() {
    return Stream.of(Part.QUERY_GRADIENT, Part.KEY_GRADIENT, Part.VALUE_GRADIENT)
        .map(part -> PartColumns.of(spec, part))
        .toList();
  }

  /// Returns the inputs of a round: small integers, or halves of them, and other fractions of keys
  /// and values that are rounded. Keys, values and gradients of the output are NaN for padding,
  /// which nobody may see.
  private Inputs inputs(int round) {
    var queries = AttentionOracle.sequences(spec.packing().queries());
    var keys = AttentionOracle.sequences(spec.packing().keys());
    return new Inputs(
        this,
        round,
        numbers(1000L * round, spec.heads(), FRACTION, new int[spec.sequence()]),
        numbers(1000L * round + 1, spec.kvHeads(), fraction(FRACTION), keys),
        numbers(1000L * round + 2, spec.kvHeads(), fraction(1), keys),
        numbers(1000L * round + 3, spec.heads(), FRACTION, queries));
  }

  private float fraction(float otherwise) {
    return spec.isRounded() ? otherwise * 0.85f : otherwise;
  }

  private float[] numbers(long seed, int heads, float factor, int[] sequences) {
    int columns = heads * spec.headSize();
    var numbers = new float[sequences.length * columns];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] =
          sequences[i / columns] < 0
              ? Float.NaN
              : spec.dtype().round(factor * Integers.at(seed, i));
    }
    return numbers;
  }

  private int[] positions(Packing rows, ProcessGroup group) {
    return AttentionOracle.positions(spec, rows, group.place().size(), group.place().rank());
  }

  /// Inputs of the whole sequence, a row per query or per key.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Inputs(
      AttentionCase outer,
      int round,
      float[] query,
      float[] key,
      float[] value,
      float[] outputGradient) {
    void fill(Pipeline attention) {
      put(attention, Part.QUERY, query);
      put(attention, Part.KEY, key);
      put(attention, Part.VALUE, value);
    }

    void fillGradient(Pipeline gradient) {
      put(gradient, Part.OUTPUT_GRADIENT, outputGradient);
    }

    private void put(Pipeline pipeline, Part part, float[] numbers) {
      var packing = outer.spec.packing();
      var all = part == Part.KEY || part == Part.VALUE ? packing.keys() : packing.queries();
      int columns = numbers.length / all.positions();
      var rows = AttentionOracle.rows(numbers, columns, outer.positions(all, pipeline.group()));
      if (part == Part.OUTPUT_GRADIENT) {
        var _ = pipeline.outputGradient().copyFrom(rows);
      } else {
        PartColumns.of(outer.spec, part).store(pipeline, rows);
      }
    }

    void compare(Pipeline attention, Findings findings) {
      var group = attention.group();
      var expected =
          AttentionOracle.plain(outer.spec, query, key, value)
              .forward(outer.errors(), outer.positions(outer.spec.packing().queries(), group));
      within("output", group, expected.output(), attention.output().toFloats(), findings);
      found("lse", group, expected.lse(), attention.lse().toFloats(), findings);
    }

    void compareGradient(Pipeline gradient, Findings findings) {
      var group = gradient.group();
      var mine = outer.positions(outer.spec.packing().queries(), group);
      var mineOfKeys = outer.positions(outer.spec.packing().keys(), group);
      int columns = outer.spec.heads() * outer.spec.headSize();
      var expected =
          AttentionOracle.plain(outer.spec, query, key, value)
              .backward(
                  outer.errors(),
                  PlainAttention.numbers(columns, outputGradient),
                  mine,
                  mineOfKeys);
      var got = outer.gradients().stream().map(each -> each.load(gradient)).toList();
      within("query gradient", group, expected.query(), got.get(0), findings);
      within("key gradient", group, expected.key(), got.get(1), findings);
      within("value gradient", group, expected.value(), got.get(2), findings);
    }

    private void within(
        String subject,
        ProcessGroup group,
        PlainAttention.Bounded expected,
        float[] got,
        Findings findings) {
      found(subject, group, expected.stored(outer.errors()), got, findings);
    }

    private void found(
        String subject,
        ProcessGroup group,
        PlainAttention.Bounded expected,
        float[] got,
        Findings findings) {
      findings.within(
          "%s on rank %s, round %d: %s".formatted(outer.text(), group.place(), round, subject),
          expected.values(),
          expected.bounds(),
          got);
    }
  }
}
