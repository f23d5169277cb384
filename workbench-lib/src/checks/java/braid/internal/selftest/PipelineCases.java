package braid.internal.selftest;

import braid.Capabilities;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.stream.IntStream;

/// Cases of the contract of all pipelines.
public final class PipelineCases {
  private static final int SPLITS = 3;

  /// Size of one rank's part in each direction; fp8 needs multiples of 16.
  private static final int ALIGNED = 32;

  private PipelineCases() {}

  /// Returns cases of every pair of types that the host multiplies; uneven sizes.
  public static List<PipelineCase> mixed(Pattern pattern) {
    var cases = new ArrayList<PipelineCase>();
    for (var input : DType.values()) {
      for (var weight : DType.values()) {
        var spec = uneven(pattern, 2).dtype(input).weight(weight);
        cases.add(new PipelineCase(spec, Overlap.pipelined(2)));
      }
    }
    return cases;
  }

  /// Returns cases for every supported row, in every type, at even, uneven and tiny sizes.
  public static List<PipelineCase> table(List<Capabilities.Row> rows, int ranks) {
    return rows.stream()
        .filter(Capabilities.Row::supported)
        .flatMap(
            row ->
                Arrays.stream(DType.values())
                    .flatMap(
                        dtype ->
                            sizes(row.pattern(), ranks).stream()
                                .map(spec -> of(row, spec.dtype(dtype), ranks))))
        .filter(each -> isTaken(each, ranks))
        .toList();
  }

  /// Returns one case per supported row and type.
  public static List<PipelineCase> quick(List<Capabilities.Row> rows, int ranks) {
    return rows.stream()
        .filter(Capabilities.Row::supported)
        .flatMap(
            row ->
                Arrays.stream(DType.values())
                    .map(dtype -> of(row, uneven(row.pattern(), ranks).dtype(dtype), ranks)))
        .filter(each -> isTaken(each, ranks))
        .toList();
  }

  /// Returns whether a library that multiplies takes the types of a case. Others take all.
  private static boolean isTaken(PipelineCase tested, int ranks) {
    return !tested.tuning().transport().multiplies()
        || isPossible(tested.spec(), tested.tuning(), ranks);
  }

  private static PipelineCase of(Capabilities.Row row, GemmSpec spec, int ranks) {
    var fitting = fitting(spec, row.transport(), ranks);
    return new PipelineCase(fitting, how(row, fitting, ranks));
  }

  /// Returns the problem with sizes that the transport takes. A library takes equal parts of all
  /// ranks, and NCCL's symmetric kernels rows of a multiple of some bytes. One that multiplies
  /// takes equal parts of the weight too, and a transposed one for an all-reduce.
  static GemmSpec fitting(GemmSpec spec, Transport transport, int ranks) {
    if (!transport.isLibrary()) {
      return spec;
    }
    int columns =
        transport == Transport.NCCL_SYMMETRIC
            ? Transport.SYMMETRIC_ALIGNMENT_BYTES
            : transport.multiplies() ? ranks : 1;
    var fitting =
        new GemmSpec(
            spec.pattern(),
            Math.ceilDiv(spec.m(), ranks) * ranks,
            Math.ceilDiv(spec.n(), columns) * columns,
            Math.ceilDiv(spec.k(), columns) * columns,
            Math.ceilDiv(spec.besideElements(), ranks) * ranks,
            spec.dtype(),
            spec.weightDtype(),
            spec.outputDtype(),
            spec.features());
    return transport.multiplies() && spec.pattern() == Pattern.GEMM_ALL_REDUCE
        ? fitting.transposedWeight()
        : fitting;
  }

  /// Returns a problem of which every rank has a part, of another size than the next rank's.
  private static GemmSpec uneven(Pattern pattern, int ranks) {
    int m = Math.max(23, (SPLITS + 1) * ranks - 1);
    return spec(pattern, m, Math.max(13, ranks + 3), Math.max(7, ranks + 3), m * 3L + 1);
  }

  private static GemmSpec even(Pattern pattern, int ranks) {
    int m = Math.max(24, SPLITS * ranks);
    return spec(pattern, m, Math.max(16, 2 * ranks), Math.max(8, ranks), m * 3L + 1);
  }

  private static Overlap how(Capabilities.Row row, GemmSpec spec, int ranks) {
    int splits = Math.min(splits(row.transport()), mostSplits(spec, row.method(), ranks));
    return tuning(row.method(), splits, ranks).over(row.transport());
  }

  private static int splits(Transport transport) {
    return transport.multiplies() ? 1 : SPLITS;
  }

  /// Returns a method in that number of chunks; two levels with as few groups as possible, but
  /// several if the ranks allow them.
  public static Overlap tuning(Method method, int splits, int ranks) {
    var tuning = Overlap.of(method, splits);
    return method == Method.TWO_LEVEL && ranks > 1
        ? tuning.groupRanks(groupSizes(ranks).max().orElse(ranks))
        : tuning;
  }

  private static IntStream groupSizes(int ranks) {
    return IntStream.range(2, ranks).filter(size -> ranks % size == 0);
  }

  /// Returns the rows without the methods that the number of ranks does not allow: two levels need
  /// several groups of several ranks.
  public static List<Capabilities.Row> possible(List<Capabilities.Row> rows, int ranks) {
    return rows.stream().filter(row -> !missing(ranks).contains(row.method())).toList();
  }

  /// Returns the methods that the number of ranks does not allow.
  public static List<Method> missing(int ranks) {
    return groupSizes(ranks).findAny().isPresent() ? List.of() : List.of(Method.TWO_LEVEL);
  }

  private static List<GemmSpec> sizes(Pattern pattern, int ranks) {
    return List.of(
        even(pattern, ranks), uneven(pattern, ranks), spec(pattern, ranks, ranks, ranks, ranks));
  }

  public static GemmSpec spec(Pattern pattern, int m, int n, int k, long beside) {
    return switch (pattern) {
      case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(m, n, k);
      case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(m, n, k);
      case GEMM_ALL_REDUCE -> GemmSpec.gemmAllReduce(m, n, k);
      case GEMM_BESIDE_ALL_GATHER -> GemmSpec.besideAllGather(m, n, k, beside);
      case GEMM_BESIDE_REDUCE_SCATTER -> GemmSpec.besideReduceScatter(m, n, k, beside);
    };
  }

  public static int mostSplits(GemmSpec spec, Method method, int ranks) {
    long total = spec.pattern().beside() ? spec.besideElements() : spec.m();
    boolean ofAll = spec.pattern() == Pattern.GEMM_ALL_REDUCE && !method.passesOn();
    return Math.toIntExact(ofAll ? total : total / ranks);
  }

  /// Returns cases for every feature and every tuning option, of every supported pattern and
  /// method.
  public static List<PipelineCase> featuresAndOptions(List<Capabilities.Row> rows, int ranks) {
    var supported = rows.stream().filter(Capabilities.Row::supported).toList();
    var cases = new ArrayList<PipelineCase>();
    for (var pattern : Pattern.values()) {
      for (var method : Method.values()) {
        if (supported.stream()
            .anyMatch(row -> row.pattern() == pattern && row.method() == method)) {
          addFeaturesAndOptions(pattern, tuning(method, SPLITS, ranks), ranks, cases);
        }
      }
    }
    // Collectives of libraries have a planner of their own.
    supported.stream()
        .filter(row -> row.transport().isLibrary())
        .forEach(row -> addByLibrary(row, ranks, cases));
    // These sums have a planner of their own.
    for (var pattern : List.of(Pattern.GEMM_REDUCE_SCATTER, Pattern.GEMM_ALL_REDUCE)) {
      addFeaturesAndOptions(
          pattern, Overlap.direct(SPLITS).over(Transport.ONE_KERNEL), ranks, cases);
    }
    addFeaturesAndOptions(
        Pattern.GEMM_ALL_REDUCE, Overlap.unfused().over(Transport.ONE_KERNEL), ranks, cases);
    return cases.stream()
        .filter(
            each ->
                supported.stream().anyMatch(row -> row.transport() == each.tuning().transport()))
        .toList();
  }

  /// Adds every feature and option with which a library's collectives can be planned.
  private static void addByLibrary(Capabilities.Row row, int ranks, List<PipelineCase> cases) {
    var all = new ArrayList<PipelineCase>();
    var tuning = Overlap.of(row.method(), splits(row.transport())).over(row.transport());
    addFeaturesAndOptions(row.pattern(), tuning, ranks, all);
    all.removeIf(each -> each.tuning().transport() != row.transport());
    all.removeIf(each -> !isPossible(each.spec(), each.tuning(), ranks));
    cases.addAll(all);
  }

  private static void addFeaturesAndOptions(
      Pattern pattern, Overlap tuning, int ranks, List<PipelineCase> cases) {
    var spec = fitting(uneven(pattern, ranks), tuning.transport(), ranks);
    var aligned = fitting(aligned(pattern, ranks), tuning.transport(), ranks);
    for (var features : features(pattern)) {
      for (var dtype : List.of(DType.FP32, DType.BF16, DType.FP16, DType.FP8_E4M3)) {
        cases.add(new PipelineCase(with(spec.dtype(dtype), features), tuning));
      }
    }
    cases.add(new PipelineCase(spec.dtype(DType.BF16).output(DType.FP32), tuning));
    cases.add(new PipelineCase(spec.dtype(DType.FP8_E5M2).output(DType.FP16), tuning));
    for (var some : List.of(spec, aligned)) {
      cases.add(new PipelineCase(some.dtype(DType.FP8_E4M3).weight(DType.FP8_E5M2), tuning));
      cases.add(new PipelineCase(some.dtype(DType.FP8_E5M2).weight(DType.FP8_E4M3), tuning));
    }
    for (var output : List.of(DType.FP8_E4M3, DType.FP8_E5M2)) {
      var narrow = spec.dtype(DType.FP8_E4M3).output(output);
      cases.add(new PipelineCase(narrow, tuning));
      cases.add(new PipelineCase(narrow.bias().gelu(), tuning.replay()));
      cases.add(new PipelineCase(narrow.bias(), tuning.outputInSymmetricMemory()));
      cases.add(
          new PipelineCase(
              aligned.dtype(DType.FP8_E5M2).weight(DType.FP8_E4M3).output(output), tuning));
    }
    cases.add(new PipelineCase(spec.weight(DType.TF32), tuning));
    cases.add(new PipelineCase(spec.dtype(DType.TF32).weight(DType.FP32), tuning));
    for (var option : options(spec, tuning, ranks)) {
      cases.add(new PipelineCase(spec, option));
      if (pattern == Pattern.ALL_GATHER_GEMM) {
        // Chunks of data stored by columns are not contiguous.
        cases.add(new PipelineCase(spec.dtype(DType.BF16).transposedInput(), option));
      }
    }
    if (pattern == Pattern.ALL_GATHER_GEMM) {
      var turned = aligned.transposedInput().gatheredInput();
      cases.add(new PipelineCase(turned.dtype(DType.BF16), tuning));
      cases.add(new PipelineCase(turned.dtype(DType.FP8_E4M3), tuning.replay()));
    }
    cases.add(
        new PipelineCase(
            with(spec, EnumSet.of(Feature.ACCUMULATE)), tuning.outputInSymmetricMemory()));
    cases.add(
        new PipelineCase(
            with(spec.dtype(DType.BF16), EnumSet.of(Feature.BIAS, Feature.GELU)),
            tuning.outputInSymmetricMemory()));
  }

  /// Returns a problem whose operands fit the fp8 tensor cores on every rank.
  private static GemmSpec aligned(Pattern pattern, int ranks) {
    return spec(pattern, Math.max(24, SPLITS * ranks), ALIGNED * ranks, ALIGNED * ranks, 53);
  }

  private static List<EnumSet<Feature>> features(Pattern pattern) {
    var sets = new ArrayList<EnumSet<Feature>>();
    sets.add(EnumSet.of(Feature.BIAS));
    sets.add(EnumSet.of(Feature.ACCUMULATE, Feature.BIAS));
    sets.add(EnumSet.of(Feature.BIAS, Feature.GELU));
    sets.add(EnumSet.of(Feature.TRANSPOSED_WEIGHT));
    if (pattern == Pattern.ALL_GATHER_GEMM) {
      sets.add(EnumSet.of(Feature.GATHERED_INPUT, Feature.TRANSPOSED_WEIGHT));
      sets.add(EnumSet.of(Feature.GATHERED_INPUT, Feature.TRANSPOSED_INPUT));
    }
    sets.add(EnumSet.of(Feature.TRANSPOSED_INPUT));
    sets.add(EnumSet.of(Feature.TRANSPOSED_INPUT, Feature.TRANSPOSED_WEIGHT, Feature.GELU));
    return sets;
  }

  public static GemmSpec with(GemmSpec spec, EnumSet<Feature> features) {
    return new GemmSpec(
        spec.pattern(),
        spec.m(),
        spec.n(),
        spec.k(),
        spec.besideElements(),
        spec.dtype(),
        spec.weightDtype(),
        spec.outputDtype(),
        features);
  }

  private static List<Overlap> options(GemmSpec spec, Overlap tuning, int ranks) {
    var options = new ArrayList<Overlap>();
    for (var order : ChunkOrder.values()) {
      options.add(tuning.order(order));
    }
    options.add(tuning.outputInSymmetricMemory());
    options.removeIf(option -> !isPossible(spec, option, ranks));
    for (var priority : Priority.values()) {
      options.add(tuning.priority(priority));
    }
    options.add(tuning.over(Transport.WORKERS).workers(3));
    var joined = tuning.over(Transport.ONE_KERNEL);
    options.add(joined);
    options.add(joined.replay());
    options.add(tuning.replay());
    if (tuning.method() != Method.BULK && tuning.method() != Method.UNFUSED) {
      options.add(joined.streams(2).replay());
      options.add(tuning.streams(2));
      if (tuning.transport() != Transport.ONE_KERNEL) {
        options.add(tuning.streams(4).replay());
      }
      int largest = largestPart(spec, tuning.method(), ranks);
      if (largest > 1) {
        options.add(tuning.boundaries(0, 1, largest));
        options.add(tuning.boundaries(0, largest - 1, largest));
      }
      if (largest > 3) {
        options.add(tuning.boundaries(0, 2, 3, largest).streams(2));
      }
    }
    return options;
  }

  /// Returns true if each option of the tuning has an effect on the problem.
  public static boolean isPossible(GemmSpec spec, Overlap tuning, int ranks) {
    try {
      tuning.check(spec, ranks);
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  static int largestPart(GemmSpec spec, Method method, int ranks) {
    long total = spec.pattern().beside() ? spec.besideElements() : spec.m();
    boolean ofAll = spec.pattern() == Pattern.GEMM_ALL_REDUCE && !method.passesOn();
    return Math.toIntExact(ofAll ? total : (total + ranks - 1) / ranks);
  }

  /// Returns true if that number of ranks can solve the problem with the tuning.
  static boolean feasible(PipelineCase tested, int ranks) {
    var spec = tested.spec();
    var tuning = tested.tuning();
    boolean parts = tuning.method().passesOn();
    boolean enough =
        switch (spec.pattern()) {
          case ALL_GATHER_GEMM -> spec.m() >= ranks && spec.n() >= ranks;
          case GEMM_REDUCE_SCATTER -> spec.m() >= ranks && spec.k() >= ranks;
          case GEMM_ALL_REDUCE -> spec.k() >= ranks && (!parts || spec.m() >= ranks);
          case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> spec.besideElements() >= ranks;
        };
    return enough && tuning.splits() <= mostSplits(spec, tuning.method(), ranks);
  }
}
