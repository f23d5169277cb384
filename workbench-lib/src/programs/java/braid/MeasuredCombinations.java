package braid;

import braid.internal.report.statistics.Spread;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Link;
import braid.model.Overlap;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/// Measured times of random combinations, and the calibrated machine on which they are simulated.
///
/// @param seed seed of the combinations
/// @param nanos measured time of each combination
record MeasuredCombinations(long seed, int ranks, List<Long> nanos, Machine machine) {
  private static final String SEED = "seed ";
  private static final String RANKS = "ranks ";
  private static final String NANOS = "nanoseconds ";
  private static final String ERROR = "error ";
  private static final int ITERATIONS = 3;
  private static final double MOST_WORSENING = 1.1;

  /// A problem, a tuning and a link.
  record Combination(GemmSpec spec, Overlap tuning, Link link) {
    private static final double LEAST_GFLOP = 0.5;
    private static final double MOST_GFLOP = 3.5;

    /// Draws a combination that keeps a core busy for 5 to 40 ms and its link for about the same
    /// time.
    private static Combination random(SplittableRandom random, int ranks) {
      while (true) {
        int m = 64 * random.nextInt(4, 49);
        int n = 64 * random.nextInt(2, 25);
        int k = 64 * random.nextInt(2, 25);
        double gflop = 2e-9 * m * n * k / ranks;
        var pattern =
            List.of(Pattern.ALL_GATHER_GEMM, Pattern.GEMM_REDUCE_SCATTER, Pattern.GEMM_ALL_REDUCE)
                .get(random.nextInt(3));
        var spec =
            switch (pattern) {
              case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(m, n, k);
              case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(m, n, k);
              default -> GemmSpec.gemmAllReduce(m, n, k);
            };
        int splits = 1 << random.nextInt(4);
        int streams = random.nextInt(1, 3);
        var tuning =
            switch (random.nextInt(5)) {
              case 0 -> Overlap.unfused();
              case 1 -> Overlap.direct(splits).streams(streams);
              case 2 -> Overlap.ring(splits).streams(streams);
              default -> Overlap.pipelined(splits).streams(streams);
            };
        double seconds = gflop / 90 * Math.exp(random.nextDouble(-1.5, 0.7));
        double bytes =
            pattern == Pattern.ALL_GATHER_GEMM
                ? 4.0 * m * k / ranks
                : 4.0 * m * n / ranks * (pattern == Pattern.GEMM_ALL_REDUCE ? 2 : 1);
        long megabytes = Math.max(1, Math.round(bytes / seconds / 1e6));
        var link = new Link(megabytes * 1e6, 1000L * random.nextInt(5, 200));
        if (gflop >= LEAST_GFLOP && gflop <= MOST_GFLOP) {
          return new Combination(spec, tuning, link);
        }
      }
    }

    double simulatedNanos(Machine machine, int ranks) {
      return Schedule.of(spec, tuning, ranks)
          .simulate(machine.withLink(link), ITERATIONS)
          .summary()
          .medianNanos();
    }

    private String size(int ranks) {
      double gflop = 2e-9 * spec.m() * spec.n() * spec.k() / ranks;
      return gflop < 1 ? "below 1 GFLOP" : gflop < 2 ? "1 to 2 GFLOP" : "2 GFLOP and more";
    }

    @Override
    public String toString() {
      return "%s, %s, %s".formatted(spec, tuning, link);
    }
  }

  static List<Combination> combinations(long seed, int count, int ranks) {
    var random = new SplittableRandom(seed);
    var combinations = new ArrayList<Combination>();
    for (int i = 0; i < count; i++) {
      var drawn = Combination.random(random, ranks);
      // Every eighth is of a type that the host converts, which takes long.
      combinations.add(
          i % 8 == 7
              ? new Combination(
                  drawn.spec().rows(drawn.spec().m() / 4).dtype(DType.BF16),
                  drawn.tuning(),
                  drawn.link())
              : drawn);
    }
    return combinations;
  }

  List<Combination> combinations() {
    return combinations(seed, nanos.size(), ranks);
  }

  /// Returns simulated ÷ measured times.
  List<Double> ratios() {
    var combinations = combinations();
    var ratios = new ArrayList<Double>();
    for (int i = 0; i < nanos.size(); i++) {
      ratios.add(combinations.get(i).simulatedNanos(machine, ranks) / nanos.get(i));
    }
    return ratios;
  }

  /// Errors of a partition.
  ///
  /// @param median median of |simulated ÷ measured - 1|
  record Errors(int count, double median, double p90) {
    static Errors of(List<Double> ratios) {
      var errors = ratios.stream().mapToDouble(ratio -> Math.abs(ratio - 1)).toArray();
      return new Errors(errors.length, Spread.quantile(errors, 0.5), Spread.quantile(errors, 0.9));
    }
  }

  /// Returns the errors of all combinations and by pattern, method, type and size.
  SortedMap<String, Errors> errors() {
    var combinations = combinations();
    var ratios = ratios();
    List<Function<Combination, String>> partitions =
        List.of(
            _ -> "all",
            each -> "pattern " + each.spec().pattern(),
            each -> "method " + each.tuning().method(),
            each -> "dtype " + each.spec().dtype(),
            each -> "size " + each.size(ranks));
    var parts = new TreeMap<String, List<Double>>();
    for (var partition : partitions) {
      for (int i = 0; i < ratios.size(); i++) {
        parts
            .computeIfAbsent(partition.apply(combinations.get(i)), _ -> new ArrayList<>())
            .add(ratios.get(i));
      }
    }
    var errors = new TreeMap<String, Errors>();
    parts.forEach((name, each) -> errors.put(name, Errors.of(each)));
    return errors;
  }

  /// Writes the seed, the times and errors, and the machine; [#parse] reads them.
  String text() {
    var text = new StringBuilder();
    text.append(SEED).append(seed).append('\n').append(RANKS).append(ranks).append('\n');
    text.append(NANOS)
        .append(nanos.stream().map(String::valueOf).collect(Collectors.joining(" ")))
        .append('\n');
    errors()
        .forEach(
            (name, each) ->
                text.append(
                    String.format(Locale.ROOT, "%s%s: %.4f%n", ERROR, name, each.median())));
    return text.append(machine).toString();
  }

  static MeasuredCombinations parse(String text) {
    return new MeasuredCombinations(
        Long.parseLong(line(text, SEED)),
        Integer.parseInt(line(text, RANKS)),
        List.of(line(text, NANOS).split(" ", -1)).stream().map(Long::valueOf).toList(),
        Machine.parse(
            text.lines().filter(line -> line.contains(" = ")).collect(Collectors.joining("\n"))));
  }

  /// Returns the median errors that a text has, by partition.
  static SortedMap<String, Double> recordedErrors(String text) {
    var errors = new TreeMap<String, Double>();
    text.lines()
        .filter(line -> line.startsWith(ERROR))
        .forEach(
            line -> {
              int colon = line.lastIndexOf(':');
              errors.put(
                  line.substring(ERROR.length(), colon),
                  Double.parseDouble(line.substring(colon + 1).strip()));
            });
    return errors;
  }

  private static String line(String text, String name) {
    return text.lines()
        .filter(line -> line.startsWith(name) && !line.contains(" = "))
        .findFirst()
        .orElseThrow()
        .substring(name.length());
  }

  /// Returns a line for each partition whose median error is worse than recorded by more than a
  /// tenth.
  static List<String> worsened(SortedMap<String, Double> recorded, SortedMap<String, Errors> now) {
    var worse = new ArrayList<String>();
    recorded.forEach(
        (name, before) -> {
          var errors = now.get(name);
          if (errors == null) {
            worse.add(name + ": recorded but not measured; record again");
          } else if (errors.median() > MOST_WORSENING * before) {
            worse.add(
                String.format(
                    Locale.ROOT,
                    "%s: the median error must be at most %.1f × %.2f%% but was %.2f%%",
                    name,
                    MOST_WORSENING,
                    100 * before,
                    100 * errors.median()));
          }
        });
    return worse;
  }
}
