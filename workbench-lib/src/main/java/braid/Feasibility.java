package braid;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Tokens;
import braid.model.Transport;
import braid.model.Tuning;
import java.util.stream.IntStream;

/// Checks whether a group can solve a problem with an overlap; an error names the nearest feasible
/// choice.
final class Feasibility {
  private Feasibility() {}

  /// Refuses a tuning that the problem or the size of the group does not allow.
  static void check(Problem problem, Tuning tuning, ProcessGroup group) {
    switch (problem) {
      case GemmSpec spec -> check(spec, tuning.require(Overlap.class, spec), Members.of(group));
      case AttentionSpec spec -> check(spec, tuning.require(ContextParallel.class, spec), group);
      case AttentionGradientSpec spec -> {
        var chosen = tuning.require(ContextParallel.class, spec);
        chosen.checkGradient(spec.forward(), group.size());
        check(spec.forward(), chosen, group);
      }
    }
    var backend = group.context().backend();
    if (backend.kind() == BackendKind.CUDA && group.hosts().size() > 1) {
      checkCrossing(tuning, group);
    }
    backend
        .missing(tuning.transport())
        .ifPresent(
            reason -> {
              throw new BraidException(reason);
            });
  }

  /// Refuses what stays within a host of GPUs.
  private static void checkCrossing(Tuning tuning, ProcessGroup group) {
    if (tuning.replayed()) {
      throw new BraidException(
          "replayed iterations stay within a host but group `%s` is on %d hosts; leave out replay()"
              .formatted(group.name(), group.hosts().size()));
    }
    if (tuning.transport().isLibrary() && tuning.transport() != Transport.NCCL_KERNELS) {
      throw new BraidException(
          "%s stays within a host but group `%s` is on %d hosts; take over(NCCL_KERNELS), or world.local()"
              .formatted(tuning.transport(), group.name(), group.hosts().size()));
    }
  }

  /// Returns a tuning with groups of the ranks of each host, if it leaves their size open.
  static Tuning grouped(Tuning tuning, ProcessGroup group) {
    if (!(tuning instanceof Overlap overlap)
        || overlap.method() != Method.TWO_LEVEL
        || overlap.groupRanks() > 0
        || group.size() == 1) {
      return tuning;
    }
    int size = ranksPerHost(group);
    if (size < 2) {
      throw new BraidException(
          "twoLevel() needs hosts with the same number of consecutive ranks, 2 or more, but group `%s` has %s; try twoLevel(n) with groups of your own, or direct()"
              .formatted(group.name(), group.hosts()));
    }
    return overlap.groupRanks(size);
  }

  /// Returns the number of consecutive ranks that each host of the group has; 0 if hosts differ.
  static int ranksPerHost(ProcessGroup group) {
    var hosts = group.hosts();
    int size = group.size() / hosts.size();
    for (int number = 0; number < hosts.size(); number++) {
      int first = number * size;
      var consecutive = IntStream.range(first, first + size).boxed().toList();
      if (!hosts.get(number).ranks().equals(consecutive)) {
        return 0;
      }
    }
    return size;
  }

  /// Returns true if that number of ranks could solve a problem with a tuning.
  static boolean isPossible(GemmSpec spec, Overlap tuning, int ranks, BackendKind backend) {
    try {
      check(spec, tuning, new Members("world", ranks, backend));
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  /// Ranks of a group, which need not exist.
  private record Members(String group, int ranks, BackendKind backend) {
    static Members of(ProcessGroup group) {
      return new Members(group.name(), group.size(), group.context().backend().kind());
    }
  }

  private static void check(GemmSpec spec, Overlap tuning, Members members) {
    var pattern = spec.pattern();
    tuning.check(spec, members.ranks());
    if (!tuning.transport().isLibrary()) {
      checkSum(CollectiveRules.of(members.backend()), pattern, tuning, members.ranks());
    }
    checkSizes(spec, tuning, members);
    checkChunks(spec, tuning, members.ranks());
  }

  private static void check(AttentionSpec spec, ContextParallel tuning, ProcessGroup group) {
    atLeastOneEach("sequence", "token", spec.sequence(), Members.of(group));
    atLeastOneEach("keys", "key", spec.keys(), Members.of(group));
    Tokens.without(spec, group.size())
        .ifPresent(
            rank -> {
              throw new BraidException(
                  "layout must give each of the %d ranks of group `%s` a token but %s gives rank %d none; try layout(TokenLayout.ZIGZAG)"
                      .formatted(group.size(), group.name(), spec.layout(), rank));
            });
    tuning.check(spec, group.size());
    int most = tuning.mostSplits(spec, group.size());
    if (tuning.splits() > most) {
      var divided =
          switch (tuning.method()) {
            case RING, ALL_GATHER_KV, UNFUSED ->
                switch (spec.layout()) {
                  case CONTIGUOUS, STRIPED -> "tokens of the smallest shard";
                  case ZIGZAG -> "tokens of the smallest half shard";
                  case PER_SEQUENCE -> "tokens of the smallest part of the longest sequence";
                  case BY_WORK -> "tokens of the smallest part of a sequence that ranks share";
                  case WHOLE_SEQUENCES -> "ranks with whole sequences exchange nothing";
                };
            case ULYSSES, TWO_LEVEL -> "kvHeads of each rank";
          };
      throw new BraidException(
          "splits must be 1..%d (%s) but was %d; try splits(%1$d)"
              .formatted(most, divided, tuning.splits()));
    }
  }

  /// Refuses pairs of types that the backend cannot multiply.
  static void checkTypes(GemmSpec spec, BackendKind backend) {
    var input = spec.dtype();
    var weight = spec.weightDtype();
    boolean possible =
        !CollectiveRules.isCuda(backend)
            || input == weight
            || (input.isFp8() && weight.isFp8())
            || (input.isStoredAsFp32() && weight.isStoredAsFp32());
    if (!possible) {
      throw new BraidException(
          "%s multiplies fp8 by fp8, fp32 by tf32, and other types by themselves, but the input is %s and the weight %s; give both one type, such as dtype(%s), or run on the host: --backend host"
              .formatted(backend, input, weight, input.isFp8() ? weight : input));
    }
  }

  static void checkSum(CollectiveRules rules, Pattern pattern, Overlap tuning, int ranks) {
    int parts =
        switch (pattern) {
          case ALL_GATHER_GEMM, GEMM_BESIDE_ALL_GATHER -> 1;
          case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE, GEMM_BESIDE_REDUCE_SCATTER ->
              switch (tuning.method()) {
                case RING -> 2;
                case TWO_LEVEL -> {
                  int size = tuning.groupSize(ranks);
                  yield Math.max(size, ranks / size);
                }
                case PIPELINED, DIRECT, DOUBLING, BULK, UNFUSED -> ranks;
              };
        };
    var reason = rules.unaddable(parts);
    if (!reason.isEmpty()) {
      throw new BraidException(
          "%s of %s: %s; try ring()".formatted(tuning.method(), pattern, reason));
    }
  }

  private static void checkSizes(GemmSpec spec, Overlap tuning, Members members) {
    switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> {
        atLeastOneEach("m", "row", spec.m(), members);
        atLeastOneEach("n", "column", spec.n(), members);
      }
      case GEMM_REDUCE_SCATTER -> {
        atLeastOneEach("m", "row", spec.m(), members);
        atLeastOneEach("k", "step of the depth", spec.k(), members);
      }
      case GEMM_ALL_REDUCE -> {
        atLeastOneEach("k", "step of the depth", spec.k(), members);
        if (tuning.method().passesOn()) {
          atLeastOneEach("m", "row", spec.m(), members);
        }
      }
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER -> {
        atLeastOneEach("elements beside", "number", spec.besideElements(), members);
        if (spec.besideElements() > Integer.MAX_VALUE) {
          throw new BraidException(
              "elements beside must be at most %d but were %d; take a wider type or less"
                  .formatted(Integer.MAX_VALUE, spec.besideElements()));
        }
      }
    }
  }

  private static void atLeastOneEach(String name, String unit, long value, Members members) {
    if (value < members.ranks()) {
      throw new BraidException(
          "%s must be %d or more (a %s for each rank of group `%s`) but was %d"
              .formatted(name, members.ranks(), unit, members.group(), value));
    }
  }

  /// Returns the tuning used by default: [Overlap#defaults()] with fewer splits if there are fewer
  /// rows, or [ContextParallel#ring()].
  static Tuning byDefault(Problem problem, ProcessGroup group) {
    return switch (problem) {
      case GemmSpec spec ->
          Overlap.pipelined(
              Math.clamp(
                  smallestPart(spec, Overlap.defaults(), group.size()), 1, Overlap.DEFAULT_SPLITS));
      case AttentionSpec _, AttentionGradientSpec _ -> ContextParallel.ring();
    };
  }

  /// Returns true if the chunks divide the whole output, not each rank's part.
  private static boolean splitsWhole(GemmSpec spec, Overlap tuning) {
    return spec.pattern() == Pattern.GEMM_ALL_REDUCE && !tuning.method().passesOn();
  }

  private static long total(GemmSpec spec) {
    return spec.pattern().beside() ? spec.besideElements() : spec.m();
  }

  private static long smallestPart(GemmSpec spec, Overlap tuning, int ranks) {
    return splitsWhole(spec, tuning) ? total(spec) : total(spec) / ranks;
  }

  private static void checkChunks(GemmSpec spec, Overlap tuning, int ranks) {
    boolean ofAll = splitsWhole(spec, tuning);
    long total = total(spec);
    long smallest = smallestPart(spec, tuning, ranks);
    long largest = ofAll ? total : (total + ranks - 1) / ranks;
    var unit = spec.pattern().beside() ? "numbers" : "rows";
    var subject = ofAll ? "%s of the output" : "%s of the smallest shard";
    if (tuning.splits() > smallest) {
      throw new BraidException(
          "splits must be 1..%d (%s) but was %d; try %d splits"
              .formatted(smallest, subject.formatted(unit), tuning.splits(), smallest));
    }
    if (!tuning.boundaries().isEmpty() && tuning.boundaries().getLast() != largest) {
      int end = tuning.boundaries().getLast();
      throw new BraidException(
          "boundaries must end at %d (%s of the largest part) but were %s: %s"
              .formatted(
                  largest,
                  unit,
                  tuning.boundaries(),
                  end < largest
                      ? "%s %d..%d belong to no chunk".formatted(unit, end, largest - 1)
                      : "%s %d..%d do not exist".formatted(unit, largest, end - 1)));
    }
  }
}
