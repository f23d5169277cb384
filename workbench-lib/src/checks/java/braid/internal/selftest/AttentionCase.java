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
import braid.model.Tokens;
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
      var part = canDivide(drawn, method, ranks) ? drawn : drawn.layout(TokenLayout.ZIGZAG);
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
    if (dividesSequences(drawn.spec.layout())) {
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
    return canDivide(drawn, ranks) ? drawn : masked.layout(TokenLayout.ZIGZAG);
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

  /// Returns the number of the sequence of each row; -1 for padding.
  ///
  /// @param rows those of the queries, or of the keys
  public static int[] sequences(Packing rows) {
    var cumulative = rows.cumulative();
    var padded = rows.padded();
    var sequences = new int[rows.positions()];
    Arrays.fill(sequences, -1);
    for (int i = 0; i + 1 < padded.size(); i++) {
      int tokens = cumulative.get(i + 1) - cumulative.get(i);
      Arrays.fill(sequences, padded.get(i), padded.get(i) + tokens, i);
    }
    return sequences;
  }

  /// Returns the pairs of a query's row and a key's row that see each other. In a sequence, the
  /// last query is where the last key is.
  public static PlainAttention.Mask mask(AttentionSpec spec) {
    var queries = sequences(spec.packing().queries());
    var keys = sequences(spec.packing().keys());
    return (row, key) -> {
      int sequence = queries[row];
      if (sequence < 0 || keys[key] != sequence) {
        return false;
      }
      int after = end(spec.packing().keys(), sequence) - key;
      int back = after - (end(spec.packing().queries(), sequence) - row);
      boolean later = spec.isCausal() && back < 0;
      return !later && (spec.window() == 0 || Math.abs(back) < spec.window());
    };
  }

  private static int end(Packing rows, int sequence) {
    return rows.padded().get(sequence) + tokens(rows, sequence);
  }

  /// Returns the length of a sequence, without padding.
  private static int tokens(Packing rows, int sequence) {
    return rows.cumulative().get(sequence + 1) - rows.cumulative().get(sequence);
  }

  /// Returns which keys no query sees, padding included.
  public static boolean[] unseen(AttentionSpec spec) {
    var mask = mask(spec);
    var unseen = new boolean[spec.keys()];
    for (int key = 0; key < unseen.length; key++) {
      int each = key;
      unseen[key] = IntStream.range(0, spec.sequence()).noneMatch(row -> mask.sees(row, each));
    }
    return unseen;
  }

  /// Returns plain loops over the whole sequence, from inputs with a row per query, and per key.
  public static PlainAttention plain(
      AttentionSpec spec, float[] query, float[] key, float[] value) {
    int columns = spec.heads() * spec.headSize();
    int kvColumns = spec.kvHeads() * spec.headSize();
    return new PlainAttention(
        new PlainAttention.Shape(
            spec.sequence(),
            spec.keys(),
            spec.heads(),
            spec.group(),
            spec.headSize(),
            spec.scale()),
        mask(spec),
        PlainAttention.numbers(columns, query),
        PlainAttention.numbers(kvColumns, spec.isRounded() ? RoundedHeads.of(spec, key) : key),
        PlainAttention.numbers(kvColumns, spec.isRounded() ? RoundedHeads.of(spec, value) : value));
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
    var queries = sequences(spec.packing().queries());
    var keys = sequences(spec.packing().keys());
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

  /// Returns the queries of a rank, and its keys if there are as many.
  public static int[] positions(AttentionSpec spec, int ranks, int rank) {
    return positions(spec, spec.packing().queries(), ranks, rank);
  }

  /// Returns the rows of a rank among those of all ranks, by the definition of the layouts. Parts
  /// have equal length; the first ones have one row more.
  ///
  /// @param all rows of the queries, or of the keys
  public static int[] positions(AttentionSpec spec, Packing all, int ranks, int rank) {
    var padded = all.padded();
    int end = all.positions();
    return switch (spec.layout()) {
      case CONTIGUOUS -> divided(0, end, ranks, rank, rank).toArray();
      case ZIGZAG -> divided(0, end, 2 * ranks, rank, 2 * ranks - 1 - rank).toArray();
      case PER_SEQUENCE ->
          IntStream.range(1, padded.size())
              .flatMap(
                  i ->
                      divided(
                          padded.get(i - 1), padded.get(i), 2 * ranks, rank, 2 * ranks - 1 - rank))
              .toArray();
      case WHOLE_SEQUENCES -> {
        var owners = owners(spec, ranks);
        yield IntStream.range(1, padded.size())
            .filter(i -> owners[i - 1] == rank)
            .flatMap(i -> IntStream.range(padded.get(i - 1), padded.get(i)))
            .toArray();
      }
      // Which ranks share a sequence is a choice; a test of it looks at the outcome.
      case BY_WORK ->
          Tokens.rowsOf(spec, all, ranks, rank).runs().stream()
              .flatMapToInt(run -> IntStream.range((int) run.first(), (int) run.end()))
              .toArray();
      case STRIPED -> IntStream.range(0, end).filter(each -> each % ranks == rank).toArray();
    };
  }

  /// Returns the positions of two parts of some positions; of one part if both are the same.
  private static IntStream divided(int start, int end, int parts, int one, int other) {
    var positions = IntStream.builder();
    for (int part = 0, next = start; part < parts; part++) {
      int length = (end - start) / parts + (part < (end - start) % parts ? 1 : 0);
      for (int i = 0; i < length; i++, next++) {
        if (part == one || part == other) {
          positions.add(next);
        }
      }
    }
    return positions.build();
  }

  /// Returns the rank of each sequence that has tokens or padding. Sequences with more pairs of a
  /// query and a key come first, each to the rank with the fewest pairs, then the fewest tokens.
  private static int[] owners(AttentionSpec spec, int ranks) {
    int count = spec.packing().sequences();
    var pairs = new long[count];
    for (int i = 0; i < count; i++) {
      int queries = tokens(spec.packing().queries(), i);
      int keys = tokens(spec.packing().keys(), i);
      int ahead = spec.isCausal() ? 0 : spec.window() > 0 ? spec.window() - 1 : keys + queries;
      int back = spec.window() > 0 ? spec.window() - 1 : keys + queries;
      for (int query = 0; query < queries; query++) {
        int same = query + keys - queries;
        int first = Math.max(0, same - back);
        int last = Math.min(keys - 1, same + ahead);
        pairs[i] += Math.max(0, last - first + 1);
      }
    }
    var owners = new int[count];
    var work = new long[ranks];
    var tokens = new long[ranks];
    var left = new ArrayList<>(IntStream.range(0, count).boxed().toList());
    while (!left.isEmpty()) {
      int most = left.getFirst();
      for (int each : left) {
        most = pairs[each] > pairs[most] ? each : most;
      }
      left.remove(Integer.valueOf(most));
      int length = length(spec.packing(), most);
      if (length == 0) {
        continue;
      }
      int least = 0;
      for (int rank = 1; rank < ranks; rank++) {
        boolean isLess =
            work[rank] < work[least] || (work[rank] == work[least] && tokens[rank] < tokens[least]);
        least = isLess ? rank : least;
      }
      owners[most] = least;
      work[least] += pairs[most];
      tokens[least] += length;
    }
    return owners;
  }

  /// Returns the longer of a sequence's queries and keys, and of their paddings.
  private static int length(Packing packing, int sequence) {
    int longest = 0;
    int padding = 0;
    for (var rows : List.of(packing.queries(), packing.keys())) {
      int own = tokens(rows, sequence);
      longest = Math.max(longest, own);
      padding =
          Math.max(padding, rows.padded().get(sequence + 1) - rows.padded().get(sequence) - own);
    }
    return longest + padding;
  }

  /// Returns whether a layout divides packed sequences, not all tokens as one sequence.
  public static boolean dividesSequences(TokenLayout layout) {
    return layout == TokenLayout.PER_SEQUENCE
        || layout == TokenLayout.WHOLE_SEQUENCES
        || layout == TokenLayout.BY_WORK;
  }

  /// Returns whether ranks that exchange keys can divide the tokens: every rank has some, and
  /// stripes have no window.
  public static boolean canDivide(AttentionSpec spec, int ranks) {
    boolean masked = ranks == 1 || spec.layout() != TokenLayout.STRIPED || spec.window() == 0;
    return masked
        && Stream.of(spec.packing().queries(), spec.packing().keys())
            .allMatch(
                rows ->
                    IntStream.range(0, ranks)
                        .allMatch(rank -> positions(spec, rows, ranks, rank).length > 0));
  }

  /// Returns whether a method can divide the tokens: heads are not exchanged in stripes.
  public static boolean canDivide(AttentionSpec spec, ContextParallel method, int ranks) {
    return canDivide(spec, ranks)
        && (spec.layout() != TokenLayout.STRIPED || method.headRanks(ranks) == 1);
  }

  private int[] positions(Packing rows, ProcessGroup group) {
    return positions(spec, rows, group.place().size(), group.place().rank());
  }

  /// Returns the rows of those positions.
  public static float[] rows(float[] all, int columns, int... positions) {
    var rows = new float[positions.length * columns];
    for (int row = 0; row < positions.length; row++) {
      System.arraycopy(all, positions[row] * columns, rows, row * columns, columns);
    }
    return rows;
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
      var rows = rows(numbers, columns, outer.positions(all, pipeline.group()));
      if (part == Part.OUTPUT_GRADIENT) {
        var _ = pipeline.outputGradient().copyFrom(rows);
      } else {
        PartColumns.of(outer.spec, part).store(pipeline, rows);
      }
    }

    void compare(Pipeline attention, Findings findings) {
      var group = attention.group();
      var expected =
          plain(outer.spec, query, key, value)
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
          plain(outer.spec, query, key, value)
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
