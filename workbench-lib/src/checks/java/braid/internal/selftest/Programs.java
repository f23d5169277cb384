package braid.internal.selftest;

import braid.Capabilities;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Draws [Program]s: a seed determines a whole program, given the number of ranks and the supported
/// rows.
///
/// @param pipelines rows of pipelines, reduced to the supported ones; their kinds of memory are
///   used
/// @param collectives rows of collectives, reduced to the supported ones
/// @param dtypes types to use
public record Programs(
    int ranks,
    List<Capabilities.Row> pipelines,
    List<Capabilities.CollectiveRow> collectives,
    List<DType> dtypes) {

  public Programs {
    // A library that multiplies takes few of the options that are drawn.
    pipelines =
        pipelines.stream().filter(row -> row.supported() && !row.transport().multiplies()).toList();
    collectives = collectives.stream().filter(Capabilities.CollectiveRow::supported).toList();
    dtypes = List.copyOf(dtypes);
  }

  /// Returns the kinds of memory that programs use.
  public String kindNames() {
    return pipelines.stream()
        .map(row -> row.kind().toString())
        .distinct()
        .collect(Collectors.joining(" "));
  }

  /// Returns the program of a seed.
  public Program draw(long seed) {
    return new Draw(new SplittableRandom(seed)).program();
  }

  /// Returns the feasible pipeline of a seed, of a row's pattern, method and transport, on all
  /// ranks.
  public PipelineCase pipeline(long seed, Capabilities.Row row) {
    var draw = new Draw(new SplittableRandom(seed));
    var drawn = draw.pipeline(row, ranks);
    while (!PipelineCases.feasible(drawn, ranks)) {
      drawn = draw.pipeline(row, ranks);
    }
    return drawn;
  }

  /// A program under construction.
  private final class Draw {
    private static final int MOST_PARTS = 5;
    private static final int MOST_ROUNDS = 3;
    private static final int MOST_SPLITS = 8;
    private static final int MOST_STREAMS = 4;
    private static final int MOST_WORKERS = 3;
    private static final int MOST_REFUSED_BUILDS = 2;

    /// Small numbers, primes, multiples of 8 and their neighbors.
    private static final int[] SIZES = {
      1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 23, 24, 31, 32, 40, 47, 49, 64, 97
    };

    private static final int LARGEST = 3;

    /// Products of integers of up to 63 are rounded by bf16 and fp16, and yet exact in fp32.
    private static final int WIDE_FACTOR = 21;

    /// Depth at which wide sums are still finite in fp16.
    private static final int WIDE_FP16_DEPTH = 14;

    private final SplittableRandom random;
    private final List<Program.Part> parts = new ArrayList<>();
    private int drawnAgain;
    private int refusedBuilds;

    Draw(SplittableRandom random) {
      this.random = random;
    }

    Program program() {
      int count = 1 + random.nextInt(MOST_PARTS);
      for (int i = 0; i < count; i++) {
        parts.add(part());
      }
      return new Program(ranks, parts, turns(), random.nextInt(3) == 0, drawnAgain);
    }

    private List<Integer> turns() {
      var turns = new ArrayList<Integer>();
      for (int part = 0; part < parts.size(); part++) {
        int count =
            parts.get(part).tested() instanceof RefusedCase ? 1 : 3 + random.nextInt(MOST_ROUNDS);
        for (int turn = 0; turn < count; turn++) {
          turns.add(part);
        }
      }
      for (int i = turns.size() - 1; i > 0; i--) {
        int other = random.nextInt(i + 1);
        turns.set(i, turns.set(other, turns.get(i)));
      }
      return turns;
    }

    private Program.Part part() {
      if (!parts.isEmpty() && random.nextInt(6) == 0) {
        // The same part again, open beside the first, or reusing its memory and plans.
        return parts.get(random.nextInt(parts.size()));
      }
      var members = members();
      int index = random.nextInt(16);
      return index < 8
          ? pipeline(members)
          : index < 12
              ? collective(members)
              : new Program.Part(index < 14 ? views() : refused(members), members, any(kinds()));
    }

    private List<Integer> members() {
      var all = IntStream.range(0, ranks).boxed().toList();
      if (random.nextBoolean()) {
        return all;
      }
      var some = all.stream().filter(_ -> random.nextBoolean()).toList();
      return some.isEmpty() ? all : some;
    }

    private List<MemoryKind> kinds() {
      return pipelines.stream().map(Capabilities.Row::kind).distinct().toList();
    }

    private ViewCase views() {
      return new ViewCase(any(dtypes), size(), size(), random.nextInt(1_000_000));
    }

    /// Refused builds come from infeasible pipelines instead.
    private RefusedCase refused(List<Integer> members) {
      var possible =
          RefusedCase.possible().stream()
              .filter(each -> each != RefusedCase.Mistake.BUILD && each.feasible(members.size()))
              .toList();
      return new RefusedCase(any(possible), Optional.empty());
    }

    private Program.Part collective(List<Integer> members) {
      var kind = any(kinds());
      var rows = collectives.stream().filter(row -> row.kind() == kind).toList();
      var one =
          any(
              CollectiveCase.supported(CollectiveCase.table(), rows).stream()
                  .filter(each -> dtypes.contains(each.dtype()))
                  .toList());
      return new Program.Part(
          new CollectiveCase(one.operation(), one.dtype(), one.route(), size(), size()),
          members,
          kind);
    }

    /// Draws again until the pipeline is feasible; the first infeasible ones become refused builds.
    private Program.Part pipeline(List<Integer> members) {
      while (true) {
        var row = any(pipelines);
        var drawn = pipeline(row, members.size());
        if (PipelineCases.feasible(drawn, members.size())) {
          return new Program.Part(drawn, members, row.kind());
        }
        drawnAgain++;
        if (refusedBuilds < MOST_REFUSED_BUILDS) {
          refusedBuilds++;
          parts.add(
              new Program.Part(
                  new RefusedCase(RefusedCase.Mistake.BUILD, Optional.of(drawn)),
                  members,
                  row.kind()));
        }
      }
    }

    private PipelineCase pipeline(Capabilities.Row row, int members) {
      var dtype = any(dtypes);
      var pattern = row.pattern();
      var spec =
          PipelineCases.spec(
                  pattern, size(), size(), size(), size() * (long) any(List.of(1, 1, 11)))
              .dtype(dtype);
      if (random.nextInt(4) == 0) {
        spec = spec.weight(partner(dtype));
      }
      if (random.nextInt(4) == 0) {
        var outputs = new ArrayList<>(List.of(DType.FP32, DType.BF16, DType.FP16));
        if (spec.isScaled()) {
          outputs.addAll(List.of(DType.FP8_E4M3, DType.FP8_E5M2));
        }
        spec = spec.output(any(outputs));
      }
      var features = features(spec);
      if (row.transport().isLibrary() && pattern == Pattern.ALL_GATHER_GEMM) {
        features.remove(Feature.TRANSPOSED_INPUT);
      }
      spec = PipelineCases.with(PipelineCases.fitting(spec, row.transport(), members), features);
      // A sum that is passed on is rounded, and a library may round, where plain loops round once.
      boolean rounds =
          (row.method().passesOn() || row.transport().isLibrary())
              && (pattern.reduces() || pattern == Pattern.GEMM_BESIDE_REDUCE_SCATTER);
      boolean wide = !spec.isScaled() && !rounds && random.nextInt(3) == 0;
      return new PipelineCase(shallow(spec, wide), how(row, spec, members), wide ? WIDE_FACTOR : 1);
    }

    /// Returns another type that every backend multiplies with this one, if any.
    private DType partner(DType dtype) {
      return switch (dtype) {
        case FP32 -> DType.TF32;
        case TF32 -> DType.FP32;
        case FP8_E4M3 -> DType.FP8_E5M2;
        case FP8_E5M2 -> DType.FP8_E4M3;
        case BF16, FP16 -> dtype;
      };
    }

    /// Limits the depth so that results are exact.
    private GemmSpec shallow(GemmSpec spec, boolean wide) {
      var out = spec.outputDtype();
      double exact = out.isStoredAsFp32() ? 0x1p24 : 2 / spec.sumDtype().epsilon();
      float scale = spec.isScaled() ? PipelineCase.INPUT_SCALE * PipelineCase.WEIGHT_SCALE : 1;
      double most =
          wide
              ? out == DType.FP16 ? WIDE_FP16_DEPTH : Integer.MAX_VALUE
              : (exact - 2 * LARGEST) / (LARGEST * LARGEST * scale);
      return new GemmSpec(
          spec.pattern(),
          spec.m(),
          spec.n(),
          (int) Math.min(spec.k(), most),
          spec.besideElements(),
          spec.dtype(),
          spec.weightDtype(),
          out,
          spec.features());
    }

    private EnumSet<Feature> features(GemmSpec spec) {
      var pattern = spec.pattern();
      var features = EnumSet.noneOf(Feature.class);
      for (var feature : Feature.values()) {
        boolean legal =
            switch (feature) {
              case GATHERED_INPUT -> pattern == Pattern.ALL_GATHER_GEMM;
              case GELU -> !features.contains(Feature.ACCUMULATE);
              case ACCUMULATE -> !spec.outputDtype().isFp8();
              case TRANSPOSED_INPUT, TRANSPOSED_WEIGHT, BIAS -> true;
            };
        if (legal && random.nextInt(3) == 0) {
          features.add(feature);
        }
      }
      return features;
    }

    private Overlap how(Capabilities.Row row, GemmSpec spec, int members) {
      var method = row.method();
      var tuning =
          PipelineCases.tuning(method, 1 + random.nextInt(MOST_SPLITS), members)
              .over(row.transport())
              .priority(any(List.of(Priority.values())));
      var ordered = tuning.order(any(orders(method)));
      tuning = PipelineCases.isPossible(spec, ordered, members) ? ordered : tuning;
      if (row.transport() == Transport.WORKERS) {
        tuning = tuning.workers(1 + random.nextInt(MOST_WORKERS));
      }
      if (method != Method.BULK && method != Method.UNFUSED) {
        int most =
            row.transport() == Transport.ONE_KERNEL ? Overlap.MAX_ONE_KERNEL_STREAMS : MOST_STREAMS;
        tuning = tuning.streams(1 + random.nextInt(most));
        int largest = PipelineCases.largestPart(spec, method, members);
        if (largest > 1 && random.nextInt(3) == 0) {
          tuning = tuning.boundaries(cuts(largest));
        }
      }
      if (random.nextInt(3) == 0) {
        tuning = tuning.replay();
      }
      var placed = tuning.outputInSymmetricMemory();
      return random.nextInt(3) == 0 && PipelineCases.isPossible(spec, placed, members)
          ? placed
          : tuning;
    }

    private static List<ChunkOrder> orders(Method method) {
      return switch (method) {
        case RING -> List.of(ChunkOrder.NEXT_FIRST, ChunkOrder.PREVIOUS_FIRST);
        case DOUBLING -> List.of(Overlap.DEFAULT_ORDER);
        case PIPELINED, DIRECT, TWO_LEVEL, BULK, UNFUSED -> List.of(ChunkOrder.values());
      };
    }

    private int[] cuts(int end) {
      int inner = 1 + random.nextInt(MOST_SPLITS - 1);
      var cuts = random.ints(inner, 1, end).sorted().distinct();
      return IntStream.concat(IntStream.concat(IntStream.of(0), cuts), IntStream.of(end)).toArray();
    }

    private int size() {
      return SIZES[random.nextInt(SIZES.length)];
    }

    private <T> T any(List<T> choices) {
      return choices.get(random.nextInt(choices.size()));
    }
  }
}
