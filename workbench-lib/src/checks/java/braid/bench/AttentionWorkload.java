package braid.bench;

import braid.ProcessGroup;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Problem;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.shapes.Lengths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Causal attention to one sequence, or to packed ones, whose tokens are divided among the ranks.
///
/// @param isLong true if an iteration takes so long that a few are enough
public record AttentionWorkload(AttentionSpec spec, int ranks, Passes passes, boolean isLong)
    implements Workload {
  /// Passes of an iteration.
  public enum Passes {
    FORWARD("forward only"),
    BOTH("forward + backward"),
    /// The backward pass of equal bits in every run.
    BOTH_DETERMINISTIC("forward + deterministic backward");

    private final String words;

    Passes(String words) {
      this.words = words;
    }

    @Override
    public String toString() {
      return words;
    }
  }

  private static final int HEADS = 32;
  private static final int HEAD_SIZE = 128;
  private static final List<Integer> KV_HEADS = List.of(32, 8);
  private static final List<Integer> TOKENS = List.of(8192, 16384, 32768, 131_072);
  private static final int LONG_TOKENS = 131_072;

  /// Sequences packed into 32,768 tokens: documents of a few lengths far apart, in no order.
  private static final List<Integer> PACKED =
      List.of(
          768, 4096, 128, 2560, 8192, 384, 1280, 640, 3072, 256, 2048, 512, 6144, 128, 1536, 1024);

  /// Sequences packed into 32,768 tokens of one rank, by number: equal ones, and documents of
  /// log-normal lengths.
  private static final List<Integer> EQUAL = List.of(16, 64, 256);

  private static final Lengths DOCUMENTS = Lengths.logNormal(32_768, 400, 1, 7);

  private static final List<TokenLayout> DIVISIONS =
      List.of(TokenLayout.PER_SEQUENCE, TokenLayout.BY_WORK, TokenLayout.WHOLE_SEQUENCES);

  /// Tokens of the row of deterministic gradients.
  private static final int MIDDLE_TOKENS = 32_768;

  private static final int FEW_KV_HEADS = 8;
  private static final int FEWER = 10;
  private static final int LEAST_ITERATIONS = 3;

  /// Tokens of equal work are a multiple of this.
  private static final int TILE = 64;

  /// Products of the forward and the backward pass, 2 and 5, ÷ those of the forward pass.
  private static final double BOTH_PASSES = 3.5;

  private static final double FORWARD_GOAL = 1.10;
  private static final double BOTH_GOAL = 1.06;
  private static final double RING_FORWARD_GOAL = 1.12;
  private static final double RING_BOTH_GOAL = 1.10;

  static List<AttentionWorkload> all(int ranks, DType dtype, int divisor) {
    var all = new ArrayList<AttentionWorkload>();
    for (int tokens : TOKENS) {
      for (int kvHeads : KV_HEADS) {
        var spec = spec(tokens / divisor, kvHeads, ranks, dtype);
        var both = List.of(Passes.FORWARD, Passes.BOTH);
        both.forEach(each -> all.add(new AttentionWorkload(spec, ranks, each, isLong(tokens))));
        if (ranks > 1 && tokens == MIDDLE_TOKENS && kvHeads == FEW_KV_HEADS) {
          all.add(new AttentionWorkload(spec, ranks, Passes.BOTH_DETERMINISTIC, false));
        }
      }
    }
    all.addAll(ranks > 1 ? packed(ranks, dtype, divisor) : packedAlone(dtype, divisor));
    return List.copyOf(all);
  }

  private static boolean isLong(int tokens) {
    return tokens >= LONG_TOKENS;
  }

  private static AttentionSpec spec(int tokens, int kvHeads, int ranks, DType dtype) {
    return AttentionSpec.of(tokens, HEADS, HEAD_SIZE)
        .kvHeads(kvHeads)
        .causal()
        // One rank has all tokens, in order by either layout.
        .layout(ranks == 1 ? TokenLayout.CONTIGUOUS : TokenLayout.ZIGZAG)
        .dtype(dtype);
  }

  /// Returns packed sequences in each division that leaves no rank without tokens.
  private static List<AttentionWorkload> packed(int ranks, DType dtype, int divisor) {
    var lengths = shorter(PACKED, divisor);
    var ends = ends(lengths);
    var spec = spec(ends[PACKED.size()], FEW_KV_HEADS, ranks, dtype).packed(ends);
    return DIVISIONS.stream()
        .map(spec::layout)
        .filter(divided -> Tokens.without(divided, ranks).isEmpty())
        .flatMap(divided -> passes(divided, ranks))
        .toList();
  }

  private static Stream<AttentionWorkload> passes(AttentionSpec spec, int ranks) {
    return Stream.of(Passes.FORWARD, Passes.BOTH)
        .map(passes -> new AttentionWorkload(spec, ranks, passes, false));
  }

  /// Returns packed sequences of one rank. Each head has its keys, as PyTorch's form needs.
  private static List<AttentionWorkload> packedAlone(DType dtype, int divisor) {
    var equal =
        EQUAL.stream().map(count -> Collections.nCopies(count, MIDDLE_TOKENS / count / divisor));
    var random = Stream.of(PACKED, DOCUMENTS.tokens()).map(lengths -> shorter(lengths, divisor));
    return Stream.concat(equal, random)
        .map(AttentionWorkload::ends)
        .map(ends -> spec(ends[ends.length - 1], HEADS, 1, dtype).packed(ends))
        .flatMap(packed -> passes(packed, 1))
        .toList();
  }

  private static List<Integer> shorter(List<Integer> lengths, int divisor) {
    return lengths.stream().map(length -> Math.max(1, length / divisor)).toList();
  }

  /// Returns 0 and the end of each sequence.
  private static int[] ends(List<Integer> lengths) {
    var ends = new int[lengths.size() + 1];
    for (int i = 0; i < lengths.size(); i++) {
      ends[i + 1] = ends[i] + lengths.get(i);
    }
    return ends;
  }

  /// Returns true if an iteration has a backward pass.
  public boolean hasBackward() {
    return passes != Passes.FORWARD;
  }

  /// Returns true if PyTorch has a form of this: of one sequence, or of packed ones on one rank,
  /// with its default gradients.
  public boolean hasPeers() {
    return (spec.packing().isSingle() || ranks == 1) && passes != Passes.BOTH_DETERMINISTIC;
  }

  AttentionGradientSpec gradient(AttentionSpec forward) {
    var gradient = forward.backward();
    return passes == Passes.BOTH_DETERMINISTIC ? gradient.deterministic() : gradient;
  }

  @Override
  public String name() {
    var packing = spec.packing();
    var sequences = packing.isSingle() ? "" : " in %d sequences".formatted(packing.sequences());
    if (!packing.isSingle() && packing.sequences() * packing.longest() == spec.sequence()) {
      sequences += " of " + packing.longest();
    }
    var division = packing.isSingle() || ranks == 1 ? "" : ", " + spec.layout();
    return "attention %d tokens%s, %d KV heads%s, %s"
        .formatted(spec.sequence(), sequences, spec.kvHeads(), division, passes);
  }

  @Override
  public List<Problem> problems() {
    return hasBackward() ? List.of(spec, gradient(spec)) : List.of(spec);
  }

  /// Returns one rank's attention to contiguous sequences, as many and with as many multiplications
  /// as a rank has of the divided ones.
  public AttentionSpec equalWork() {
    var offsets = spec.packing().cumulative();
    var lengths =
        IntStream.range(1, offsets.size())
            .map(i -> shorter(offsets.get(i) - offsets.get(i - 1)))
            .boxed()
            .toList();
    var ends = ends(lengths);
    var equal = spec(ends[lengths.size()], spec.kvHeads(), 1, spec.dtype());
    return lengths.size() == 1 ? equal : equal.packed(ends);
  }

  private int shorter(int tokens) {
    return TILE * Math.max(1, Math.toIntExact(Math.round(tokens / Math.sqrt(ranks) / TILE)));
  }

  /// Returns equal work and every method, replayed. On one rank, all methods are the same. Two
  /// levels are those of [#groups].
  @Override
  public List<Form> forms() {
    if (ranks == 1) {
      return List.of(form(ContextParallel.ring()));
    }
    var equal = ContextParallel.ring().replay();
    var methods =
        Stream.of(
            ContextParallel.unfused(),
            ContextParallel.ring(),
            ContextParallel.ring().neighborToNeighbor(),
            ContextParallel.allGatherKv(),
            ContextParallel.ulysses(),
            ContextParallel.ulysses().splits(2));
    var twoLevel = groups().stream().map(ContextParallel::twoLevel);
    return Stream.concat(
            Stream.of(Form.of(alone(), alone(), equal)),
            Stream.concat(methods, twoLevel).map(AttentionWorkload::form))
        .toList();
  }

  /// Returns the sizes of two or more groups of two or more ranks.
  private List<Integer> groups() {
    return IntStream.range(2, ranks).filter(group -> ranks % group == 0).boxed().toList();
  }

  @Override
  public List<String> leftOut() {
    return ranks > 1 && groups().isEmpty()
        ? List.of(
            "%s leaves out %s: it needs two or more groups of two or more ranks but there are %d; try 4 ranks"
                .formatted(name(), ContextParallel.Method.TWO_LEVEL, ranks))
        : List.of();
  }

  private static Form form(ContextParallel tuning) {
    return Form.of(tuning.toString(), tuning.replay());
  }

  @Override
  public boolean isPossible(Form form) {
    try {
      form.tuning().require(ContextParallel.class, spec).check(spec, ranks);
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  @Override
  public String alone() {
    return "equal work alone";
  }

  @Override
  public double flops(String form) {
    double forward = form.startsWith(alone()) ? equalWork().flops() : spec.flops() / ranks;
    return hasBackward() ? BOTH_PASSES * forward : forward;
  }

  @Override
  public OptionalDouble goal() {
    return goal(FORWARD_GOAL, BOTH_GOAL);
  }

  @Override
  public OptionalDouble goal(String form) {
    return form.startsWith(ContextParallel.Method.RING.toString())
        ? goal(RING_FORWARD_GOAL, RING_BOTH_GOAL)
        : OptionalDouble.empty();
  }

  private OptionalDouble goal(double forward, double both) {
    return ranks == 1 || !hasPeers()
        ? OptionalDouble.empty()
        : OptionalDouble.of(hasBackward() ? both : forward);
  }

  @Override
  public int iterations(int most) {
    return isLong ? Math.min(most, Math.max(LEAST_ITERATIONS, most / FEWER)) : most;
  }

  @Override
  public OpenWorkload open(ProcessGroup group) {
    return new OpenAttention(group, this);
  }
}
