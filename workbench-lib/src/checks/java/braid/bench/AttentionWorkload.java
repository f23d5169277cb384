package braid.bench;

import braid.ProcessGroup;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Problem;
import braid.model.TokenLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Causal attention to a sequence whose tokens are divided among the ranks.
///
/// @param hasBackward true if an iteration is the forward and the backward pass, false if it is the
///   forward pass
/// @param isLong true if an iteration takes so long that a few are enough
public record AttentionWorkload(AttentionSpec spec, int ranks, boolean hasBackward, boolean isLong)
    implements Workload {
  private static final int HEADS = 32;
  private static final int HEAD_SIZE = 128;
  private static final List<Integer> KV_HEADS = List.of(32, 8);
  private static final List<Integer> TOKENS = List.of(8192, 16384, 32768, 131_072);
  private static final int LONG_TOKENS = 131_072;
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
        var spec =
            AttentionSpec.of(tokens / divisor, HEADS, HEAD_SIZE)
                .kvHeads(kvHeads)
                .causal()
                // One rank has all tokens, in order by either layout.
                .layout(ranks == 1 ? TokenLayout.CONTIGUOUS : TokenLayout.ZIGZAG)
                .dtype(dtype);
        for (boolean hasBackward : List.of(false, true)) {
          all.add(new AttentionWorkload(spec, ranks, hasBackward, tokens >= LONG_TOKENS));
        }
      }
    }
    return List.copyOf(all);
  }

  @Override
  public String name() {
    return "attention %d tokens, %d KV heads, %s"
        .formatted(
            spec.sequence(), spec.kvHeads(), hasBackward ? "forward + backward" : "forward only");
  }

  @Override
  public List<Problem> problems() {
    return hasBackward ? List.of(spec, spec.backward()) : List.of(spec);
  }

  /// Returns one rank's attention to a contiguous sequence, with as many multiplications as a rank
  /// has of the divided one.
  public AttentionSpec equalWork() {
    double tokens = spec.sequence() / Math.sqrt(ranks);
    int rounded = TILE * Math.max(1, Math.toIntExact(Math.round(tokens / TILE)));
    return AttentionSpec.of(rounded, spec.heads(), spec.headSize())
        .kvHeads(spec.kvHeads())
        .causal()
        .dtype(spec.dtype());
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
    return groups().isEmpty()
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
    return hasBackward ? BOTH_PASSES * forward : forward;
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
    return ranks == 1 ? OptionalDouble.empty() : OptionalDouble.of(hasBackward ? both : forward);
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
