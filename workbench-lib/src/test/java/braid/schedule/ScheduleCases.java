package braid.schedule;

import static braid.internal.selftest.AttentionOracle.canDivide;
import static braid.internal.selftest.AttentionOracle.dividesSequences;

import braid.Capabilities;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.TokenLayout;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/// Problems and tunings whose schedules the tests check.
final class ScheduleCases {
  private static final int MOST_RANKS_OF_STRIPES = 3;

  static final int MOST_RANKS = 16;

  /// Up to this number of ranks GEMMs have all cases, and attention a third; beyond it fewer, but
  /// of every way.
  private static final int ALL_CASES_RANKS = 6;

  /// More than any rank has keys: some chunks are empty.
  private static final int MOST_SPLITS = 30;

  private ScheduleCases() {}

  /// A problem, its tuning and a number of ranks.
  sealed interface Case {
    Schedule schedule();
  }

  record GemmCase(GemmSpec spec, Overlap how, int ranks) implements Case {
    @Override
    public Schedule schedule() {
      return Schedule.of(spec, how, ranks);
    }

    @Override
    public String toString() {
      return "%s, %s, %d ranks".formatted(spec, how, ranks);
    }
  }

  record AttentionCase(AttentionSpec spec, ContextParallel how, int ranks) implements Case {
    @Override
    public Schedule schedule() {
      return Schedule.of(spec, how, ranks);
    }

    @Override
    public String toString() {
      return "%s, %s, %d ranks".formatted(spec, how, ranks);
    }
  }

  record BackwardCase(AttentionSpec spec, ContextParallel how, int ranks) implements Case {
    @Override
    public Schedule schedule() {
      return Schedule.of(spec.backward(), how, ranks);
    }

    @Override
    public String toString() {
      return "backward of %s, %s, %d ranks".formatted(spec, how, ranks);
    }
  }

  /// The problems of one pattern that one method solves.
  sealed interface Way {
    /// Returns all cases on a number of ranks.
    List<Case> cases(int ranks);
  }

  /// A pattern and a method that support each other.
  record GemmWay(Pattern pattern, Method method) implements Way {
    @Override
    public List<Case> cases(int ranks) {
      return ScheduleCases.of(this, ranks);
    }
  }

  /// Attention by one method.
  record AttentionWay(ContextParallel.Method method) implements Way {
    @Override
    public List<Case> cases(int ranks) {
      return share(ScheduleCases.of(this, ranks), ranks);
    }
  }

  /// The backward pass of attention by one method.
  record BackwardWay(ContextParallel.Method method) implements Way {
    @Override
    public List<Case> cases(int ranks) {
      var cases =
          ScheduleCases.of(new AttentionWay(method), ranks).stream()
              .map(AttentionCase.class::cast)
              .filter(BackwardWay::isTested)
              .<Case>map(each -> new BackwardCase(each.spec(), each.how(), each.ranks()))
              .toList();
      return share(cases, ranks);
    }

    /// Leaves out some of the cases of most steps, which take most of the time.
    private static boolean isTested(AttentionCase each) {
      var how = each.how();
      if (how.headRanks(each.ranks()) == 1) {
        return how.splits() < MOST_SPLITS || how.streams() == 2;
      }
      return each.ranks() <= ALL_CASES_RANKS
          ? how.streams() == Math.min(2, how.splits())
          : how.splits() == 2 && each.spec().layout() == TokenLayout.ZIGZAG;
    }
  }

  /// Returns some of the cases, others for each number of ranks.
  private static List<Case> share(List<Case> cases, int ranks) {
    var random = new Random(ranks);
    int parts = ranks <= ALL_CASES_RANKS ? 3 : 6;
    return cases.stream().filter(_ -> random.nextInt(parts) == 0).toList();
  }

  static List<Way> ways() {
    var ways = new ArrayList<Way>(gemmWays());
    for (var method : ContextParallel.Method.values()) {
      ways.add(new AttentionWay(method));
      ways.add(new BackwardWay(method));
    }
    return ways;
  }

  static List<GemmWay> gemmWays() {
    return Capabilities.host().stream()
        .filter(Capabilities.Row::supported)
        .map(row -> new GemmWay(row.pattern(), row.method()))
        .distinct()
        .sorted(Comparator.comparing(GemmWay::pattern).thenComparing(GemmWay::method))
        .toList();
  }

  static GemmSpec spec(Pattern pattern, int m, int n, int k, long beside) {
    return switch (pattern) {
      case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(m, n, k);
      case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(m, n, k);
      case GEMM_ALL_REDUCE -> GemmSpec.gemmAllReduce(m, n, k);
      case GEMM_BESIDE_ALL_GATHER -> GemmSpec.besideAllGather(m, n, k, beside);
      case GEMM_BESIDE_REDUCE_SCATTER -> GemmSpec.besideReduceScatter(m, n, k, beside);
    };
  }

  private static List<Case> of(AttentionWay way, int ranks) {
    var cases = new ArrayList<Case>();
    // Chooses between the exchanges of a ring.
    var random = new Random(ranks);
    for (var layout : TokenLayout.values()) {
      var even = AttentionSpec.of(16 * ranks, 4, 8).layout(layout);
      var uneven = AttentionSpec.of(23 * ranks - 1, 4, 8).kvHeads(2).layout(layout);
      var tiny = AttentionSpec.of(ranks, 1, 1).layout(layout);
      for (var spec : List.of(even, uneven, tiny)) {
        for (var masked :
            List.of(
                spec,
                spec.causal(),
                spec.causal().window(1),
                spec.causal().window(5),
                spec.causal().window(40),
                padded(spec.window(9)),
                spec.keys(2 * spec.sequence() + 1).causal().exchanged(DType.FP8_E4M3),
                spec.keys(spec.sequence() + 3).dtype(DType.BF16).fused(Fused.KV),
                separate(spec.causal()),
                separate(spec.window(4)).dtype(DType.BF16),
                spec.causal().dtype(DType.BF16),
                packed(spec),
                packed(spec.causal()).fused(Fused.QKV),
                packed(spec.causal()).dtype(DType.BF16),
                many(spec.causal()),
                padded(spec).dtype(DType.BF16).fused(Fused.KV),
                padded(spec.causal().window(5)).fused(Fused.QKV).exchanged(DType.FP8_E4M3),
                spec.causal().window(5).dtype(DType.BF16).fused(Fused.QKV))) {
          boolean isSame = masked.packing().isSingle() && dividesSequences(layout);
          // A check of stripes has a run for each token; ScheduleCheckTest has more ranks.
          boolean isLong = layout == TokenLayout.STRIPED && ranks > MOST_RANKS_OF_STRIPES;
          // Exchanged heads need a value for each sequence and head.
          boolean isWide =
              masked.equals(many(spec.causal()))
                  && ranks > ALL_CASES_RANKS
                  && (way.method() == ContextParallel.Method.ULYSSES
                      || way.method() == ContextParallel.Method.TWO_LEVEL);
          if (!isSame && !isLong && !isWide && canDivide(masked, ranks)) {
            add(cases, masked, way.method(), ranks, random);
          }
        }
      }
    }
    return cases;
  }

  /// One token, none, about half of the tokens, and the rest.
  private static AttentionSpec packed(AttentionSpec spec) {
    int end = spec.sequence();
    return spec.packed(0, 1, 1, Math.max(1, end / 2 - 1), end);
  }

  /// Sequences of equal length, more than are fetched one by one.
  private static AttentionSpec many(AttentionSpec spec) {
    int count = Math.min(12, spec.sequence());
    return spec.packed(
        IntStream.rangeClosed(0, count).map(i -> i * spec.sequence() / count).toArray());
  }

  /// Gives two sequences other numbers of keys, with padding after one's.
  private static AttentionSpec separate(AttentionSpec spec) {
    int half = spec.sequence() / 2;
    int more = 2 * spec.sequence() - half;
    return spec.packed(0, half, spec.sequence())
        .packedKeys(
            new int[] {0, half + 2, half + 2 + more}, new int[] {0, half + 5, half + 5 + more});
  }

  /// The same number of tokens in each half. The second half begins with padding.
  private static AttentionSpec padded(AttentionSpec spec) {
    int half = spec.sequence() / 2;
    int tokens = Math.max(0, half - 3);
    return spec.packed(
        new int[] {0, tokens, tokens, 2 * tokens},
        new int[] {0, half, half + Math.min(2, half - tokens), spec.sequence()});
  }

  private static void add(
      List<Case> cases,
      AttentionSpec spec,
      ContextParallel.Method method,
      int ranks,
      Random random) {
    switch (method) {
      case UNFUSED -> cases.add(new AttentionCase(spec, ContextParallel.unfused(), ranks));
      case ULYSSES -> addHeads(cases, spec, ContextParallel.ulysses(), ranks);
      case TWO_LEVEL -> {
        for (int group = 2; group <= ranks; group++) {
          if (ranks % group == 0) {
            addHeads(cases, spec, ContextParallel.twoLevel(group), ranks);
          }
        }
      }
      case RING, ALL_GATHER_KV -> {
        for (int splits : ranks <= ALL_CASES_RANKS ? List.of(1, 3, MOST_SPLITS) : List.of(3)) {
          for (int streams : ranks <= ALL_CASES_RANKS ? List.of(1, 2, 3) : List.of(2)) {
            var how =
                method != ContextParallel.Method.RING
                    ? ContextParallel.allGatherKv()
                    : random.nextBoolean()
                        ? ContextParallel.ring()
                        : ContextParallel.ring().neighborToNeighbor();
            cases.add(new AttentionCase(spec, how.splits(splits).streams(streams), ranks));
          }
        }
      }
    }
  }

  /// Adds cases with the numbers of heads of the problem for each rank that heads are divided
  /// among.
  private static void addHeads(
      List<Case> cases, AttentionSpec spec, ContextParallel how, int ranks) {
    int sharing = how.headRanks(ranks);
    var divided = spec.heads(spec.heads() * sharing, spec.kvHeads() * sharing);
    for (int splits : ranks <= ALL_CASES_RANKS ? List.of(1, 2, 4) : List.of(spec.kvHeads())) {
      for (int streams : ranks <= ALL_CASES_RANKS ? List.of(1, 2, 3) : List.of(1)) {
        if (spec.kvHeads() % splits == 0 && streams <= splits && canDivide(divided, how, ranks)) {
          cases.add(new AttentionCase(divided, how.splits(splits).streams(streams), ranks));
        }
      }
    }
  }

  private static List<Case> of(GemmWay way, int ranks) {
    var cases = new ArrayList<Case>();
    var even = spec(way.pattern(), 64 * ranks, 16 * ranks, 8 * ranks, 48L * ranks + 3);
    var uneven = spec(way.pattern(), 23 * ranks - 1, 13 + ranks, 7 + ranks, 31L * ranks - 2);
    var tiny = spec(way.pattern(), ranks, ranks, ranks, 2L * ranks);
    for (var order : ChunkOrder.values()) {
      for (int splits : ranks <= ALL_CASES_RANKS ? List.of(1, 4, 7) : List.of(3)) {
        add(cases, even, way.method(), splits, ranks, how -> how.order(order));
        add(cases, uneven, way.method(), splits, ranks, how -> how.order(order));
      }
      add(cases, tiny, way.method(), 1, ranks, how -> how.order(order));
    }
    for (var spec :
        ranks <= ALL_CASES_RANKS
            ? features(uneven)
            : List.of(uneven, uneven.bias().gelu(), uneven.accumulate().dtype(DType.FP8_E4M3))) {
      add(cases, spec, way.method(), 3, ranks, UnaryOperator.identity());
      add(cases, spec, way.method(), 3, ranks, Overlap::outputInSymmetricMemory);
    }
    if (way.method() == Method.DIRECT
        && (way.pattern() == Pattern.GEMM_REDUCE_SCATTER
            || way.pattern() == Pattern.GEMM_ALL_REDUCE)) {
      addInOneKernel(cases, way, List.of(even, uneven, tiny), ranks);
    }
    boolean whole = way.method() == Method.BULK || way.method() == Method.UNFUSED;
    if (!whole) {
      for (int streams : ranks <= ALL_CASES_RANKS ? List.of(2, 5) : List.of(2)) {
        add(cases, uneven, way.method(), 3, ranks, how -> how.streams(streams));
      }
      boolean ofAll = way.pattern() == Pattern.GEMM_ALL_REDUCE && !way.method().passesOn();
      int rows = way.pattern().beside() ? (int) uneven.besideElements() : uneven.m();
      int end = ofAll ? rows : Math.ceilDiv(rows, ranks);
      add(cases, uneven, way.method(), 3, ranks, how -> how.boundaries(0, 1, end / 2, end));
      if (ofAll) {
        // Fewer rows than ranks: some own none.
        add(cases, spec(way.pattern(), 1, 3, ranks, 0), way.method(), 1, ranks, how -> how);
        add(cases, spec(way.pattern(), 3, 3, ranks, 0), way.method(), 3, ranks, how -> how);
      }
    }
    return cases;
  }

  /// Adds sums of what lies in the peers' memory.
  private static void addInOneKernel(
      List<Case> cases, GemmWay way, List<GemmSpec> specs, int ranks) {
    for (var spec : specs) {
      for (int splits : ranks <= ALL_CASES_RANKS ? List.of(1, 3, 4) : List.of(1, 3)) {
        if (splits * ranks <= spec.m()) {
          for (int streams = 1; streams <= Overlap.MAX_ONE_KERNEL_STREAMS; streams++) {
            int count = streams;
            add(
                cases,
                spec,
                way.method(),
                splits,
                ranks,
                how -> how.streams(count).over(Transport.ONE_KERNEL));
          }
        }
      }
    }
    for (var spec : features(specs.get(1))) {
      add(cases, spec, way.method(), 2, ranks, how -> how.over(Transport.ONE_KERNEL));
    }
  }

  private static List<GemmSpec> features(GemmSpec spec) {
    var specs = new ArrayList<GemmSpec>();
    specs.add(spec);
    specs.add(spec.bias().gelu());
    specs.add(spec.bias().accumulate());
    specs.add(spec.accumulate().transposedWeight());
    specs.add(spec.dtype(DType.FP8_E4M3).gelu());
    specs.add(spec.dtype(DType.FP8_E4M3).output(DType.FP8_E4M3));
    specs.add(spec.dtype(DType.FP8_E4M3).output(DType.FP8_E5M2).bias().gelu());
    specs.add(spec.dtype(DType.FP8_E4M3).bias().accumulate());
    if (spec.pattern() == Pattern.ALL_GATHER_GEMM) {
      specs.add(spec.gatheredInput().bias());
      specs.add(spec.gatheredInput().transposedInput());
    }
    specs.add(spec.transposedInput());
    return specs;
  }

  private static void add(
      List<Case> cases,
      GemmSpec spec,
      Method method,
      int splits,
      int ranks,
      UnaryOperator<Overlap> change) {
    boolean whole = method == Method.BULK || method == Method.UNFUSED;
    var sizes =
        method == Method.TWO_LEVEL && ranks > 1
            ? IntStream.rangeClosed(2, ranks).filter(size -> ranks % size == 0)
            : IntStream.of(0);
    for (int size : sizes.toArray()) {
      var tuning = change.apply(Overlap.of(method, whole ? 1 : splits).groupRanks(size));
      if ((!whole || splits == 1 || splits == 3) && isPossible(spec, tuning, ranks)) {
        cases.add(new GemmCase(spec, tuning, ranks));
      }
    }
  }

  private static boolean isPossible(GemmSpec spec, Overlap how, int ranks) {
    try {
      how.check(spec, ranks);
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  static List<Integer> ranks() {
    return IntStream.rangeClosed(1, MOST_RANKS).boxed().toList();
  }
}
