package braid;

import braid.CalibrationCases.Case;
import braid.internal.report.statistics.Spread;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Timing;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Measured times of random combinations, and the calibrated machine on which they are simulated.
/// Pipelines of the calibration have no multiplication of their columns and depth.
///
/// @param seed seed of the combinations
/// @param nanos measured time of each combination
public record MeasuredCombinations(long seed, int ranks, List<Long> nanos, Machine machine) {
  private static final String SEED = "seed ";
  private static final String RANKS = "ranks ";
  private static final String NANOS = "nanoseconds ";
  private static final String ERROR = "error ";

  /// Iterations of a round, of which the median counts.
  private static final int ITERATIONS = 5;

  private static final double MOST_WORSENING = 1.1;

  /// A problem, a tuning, and the link that the host backend plays.
  record Combination(Problem problem, Tuning tuning, Link link) {
    private static final double LEAST_GFLOP = 0.5;
    private static final double MOST_GFLOP = 3.5;

    /// Draws a combination that keeps a core busy for 5 to 40 ms and its link for about the same
    /// time. Every eighth is of a type that the host converts, which takes long.
    private static Combination onHost(SplittableRandom random, int ranks, boolean converted) {
      while (true) {
        int m = 64 * random.nextInt(4, 49);
        int n = 64 * random.nextInt(2, 25);
        int k = 64 * random.nextInt(2, 25);
        double gflop = 2e-9 * m * n * k / ranks;
        var spec = gemm(random, m, n, k);
        int splits = 1 << random.nextInt(4);
        int streams = random.nextInt(1, 3);
        var tuning = tuning(random, splits, streams);
        double seconds = gflop / 90 * Math.exp(random.nextDouble(-1.5, 0.7));
        double bytes =
            spec.pattern() == Pattern.ALL_GATHER_GEMM
                ? 4.0 * m * k / ranks
                : 4.0 * m * n / ranks * (spec.pattern() == Pattern.GEMM_ALL_REDUCE ? 2 : 1);
        long megabytes = Math.max(1, Math.round(bytes / seconds / 1e6));
        var link = new Link(megabytes * 1e6, 1000L * random.nextInt(5, 200));
        if (gflop >= LEAST_GFLOP && gflop <= MOST_GFLOP) {
          return new Combination(
              converted ? spec.rows(m / 4).dtype(DType.BF16) : spec, tuning, link);
        }
      }
    }

    private static GemmSpec gemm(SplittableRandom random, int m, int n, int k) {
      return switch (random.nextInt(3)) {
        case 0 -> GemmSpec.allGatherGemm(m, n, k);
        case 1 -> GemmSpec.gemmReduceScatter(m, n, k);
        default -> GemmSpec.gemmAllReduce(m, n, k);
      };
    }

    private static Overlap tuning(SplittableRandom random, int splits, int streams) {
      return switch (random.nextInt(5)) {
        case 0 -> Overlap.unfused();
        case 1 -> Overlap.direct(splits).streams(streams);
        case 2 -> Overlap.ring(splits).streams(streams);
        default -> Overlap.pipelined(splits).streams(streams);
      };
    }

    /// Draws a multiplication of a large model's layer, or attention.
    private static Combination onGpu(SplittableRandom random, int ranks, boolean attends) {
      if (attends) {
        int sequence = 128 * ranks * logUniform(random, 8, 96);
        var spec =
            AttentionSpec.of(sequence, ranks * logUniform(random, 4, 24), 64 * random.nextInt(1, 3))
                .dtype(DType.BF16);
        return new Combination(
            random.nextBoolean() ? spec.causal() : spec,
            random.nextBoolean() ? ContextParallel.unfused() : ContextParallel.ring(),
            Link.UNLIMITED);
      }
      int m = 64 * ranks * logUniform(random, 8, 128);
      // A rank's columns and depth are of no calibrated size.
      int n = ranks * heldOut(random);
      int k = ranks * heldOut(random);
      var spec = gemm(random, m, n, k).dtype(DType.BF16);
      return new Combination(
          spec, tuning(random, 1 << random.nextInt(3), random.nextInt(1, 3)), Link.UNLIMITED);
    }

    private static int heldOut(SplittableRandom random) {
      while (true) {
        int size = 64 * logUniform(random, 12, 128);
        if (!CalibrationShapes.GPU_GEMM.others().contains(size)) {
          return size;
        }
      }
    }

    private static int logUniform(SplittableRandom random, int least, int most) {
      return (int) Math.round(least * Math.pow((double) most / least, random.nextDouble()));
    }

    double simulatedNanos(Machine machine, int ranks) {
      var linked = machine.links().serial() ? machine.withLink(link) : machine;
      return linked.iterationNanos(Schedule.of(problem, tuning, ranks));
    }

    private String pattern() {
      return problem instanceof GemmSpec gemm ? gemm.pattern().toString() : "attention";
    }

    private String size(int ranks) {
      double flops =
          switch (problem) {
            case GemmSpec gemm -> gemm.flops();
            case AttentionSpec attention -> attention.flops();
            default -> throw new IllegalStateException("not drawn: " + problem);
          };
      double gflop = flops / 1e9 / ranks;
      return gflop < 1
          ? "below 1 GFLOP"
          : gflop < 2 ? "1 to 2 GFLOP" : gflop < 100 ? "2 to 100 GFLOP" : "100 GFLOP and more";
    }

    @Override
    public String toString() {
      return "%s, %s, %s".formatted(problem, tuning, link);
    }
  }

  static List<Combination> combinations(long seed, int count, int ranks, boolean host) {
    var random = new SplittableRandom(seed);
    return IntStream.range(0, count)
        .mapToObj(
            number ->
                host
                    ? Combination.onHost(random, ranks, number % 8 == 7)
                    : Combination.onGpu(random, ranks, number % 3 == 2))
        .toList();
  }

  List<Combination> combinations() {
    return combinations(seed, nanos.size(), ranks, machine.links().serial());
  }

  /// Calibrates the machine, and measures combinations after each of its passes, one iteration at a
  /// time: both meet the same load of the machine. All ranks of a group call it together.
  ///
  /// @param rounds number of passes; times are lower quartiles of all
  public static MeasuredCombinations measure(ProcessGroup group, long seed, int count, int rounds) {
    boolean host = !group.onGpu();
    var combinations = combinations(seed, count, group.size(), host);
    var pipelines = new ArrayList<Pipeline>();
    for (var each : combinations) {
      pipelines.add(CalibrationCases.build(group, new Case(each.problem(), each.tuning())));
    }
    var times = new ArrayList<List<Double>>();
    combinations.forEach(_ -> times.add(new ArrayList<>()));
    var machine =
        Calibrator.on(group)
            .measure(
                rounds,
                Long.MAX_VALUE,
                () -> {
                  for (int i = 0; i < count; i++) {
                    if (host) {
                      group.playLink(combinations.get(i).link());
                    }
                    times.get(i).add(nanos(group, pipelines.get(i)));
                  }
                });
    pipelines.forEach(Pipeline::close);
    return new MeasuredCombinations(
        seed,
        group.size(),
        times.stream().map(each -> Math.round(CalibrationCases.ofPasses(each))).toList(),
        machine);
  }

  /// Returns the time of an iteration: one at a time on the host, and on GPUs of those in flight
  /// once their clocks have settled.
  private static double nanos(ProcessGroup group, Pipeline pipeline) {
    var alone = slowest(group, pipeline.time(ITERATIONS, Timing.LATENCY));
    double median = Spread.quantile(alone, 0.5);
    if (!group.onGpu()) {
      return median;
    }
    int runs = CalibrationCases.settlingRuns(median);
    var inFlight = slowest(group, pipeline.time(runs, Timing.BACK_TO_BACK));
    return Spread.quantile(Arrays.copyOfRange(inFlight, runs / 2, runs), 0.5);
  }

  /// Returns the time of each iteration on the slowest rank.
  private static long[] slowest(ProcessGroup group, long[] mine) {
    return Arrays.stream(mine)
        .map(nanos -> Arrays.stream(group.gather(nanos)).max().orElseThrow())
        .toArray();
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

  /// Returns the same times with another machine.
  public MeasuredCombinations predictedOn(Machine other) {
    return new MeasuredCombinations(seed, ranks, nanos, other);
  }

  /// Returns a Markdown table of the combinations.
  public String table() {
    var table =
        new StringBuilder(
            """
            | problem | tuning | link | measured ms | simulated ms | ratio |
            |---|---|---|--:|--:|--:|
            """);
    var combinations = combinations();
    var ratios = ratios();
    for (int i = 0; i < ratios.size(); i++) {
      var each = combinations.get(i);
      double millis = nanos.get(i) / 1e6;
      table.append(
          String.format(
              Locale.ROOT,
              "| %s | %s | %s | %.3f | %.3f | %.3f |%n",
              each.problem(),
              each.tuning(),
              each.link(),
              millis,
              ratios.get(i) * millis,
              ratios.get(i)));
    }
    return table.toString();
  }

  /// Returns a Markdown table of the errors by partition.
  public String errorTable() {
    var table =
        new StringBuilder(
            """
            | partition | combinations | median error | p90 |
            |---|--:|--:|--:|
            """);
    errors()
        .forEach(
            (name, each) ->
                table.append(
                    String.format(
                        Locale.ROOT,
                        "| %s | %d | %.1f%% | %.1f%% |%n",
                        name,
                        each.count(),
                        100 * each.median(),
                        100 * each.p90())));
    return table.toString();
  }

  /// Errors of a partition.
  ///
  /// @param median median of |simulated ÷ measured - 1|
  public record Errors(int count, double median, double p90) {
    static Errors of(List<Double> ratios) {
      var errors = ratios.stream().mapToDouble(ratio -> Math.abs(ratio - 1)).toArray();
      return new Errors(errors.length, Spread.quantile(errors, 0.5), Spread.quantile(errors, 0.9));
    }
  }

  /// Returns the errors of all combinations and by pattern, method, type and size.
  public SortedMap<String, Errors> errors() {
    var combinations = combinations();
    var ratios = ratios();
    List<Function<Combination, String>> partitions =
        List.of(
            _ -> "all",
            each -> "pattern " + each.pattern(),
            each -> "method " + each.tuning().columns().get("method"),
            each -> "dtype " + each.problem().dtype(),
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
  public String text() {
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

  /// @throws BraidException if the text has other lines than [#text] writes
  public static MeasuredCombinations parse(String text) {
    try {
      return new MeasuredCombinations(
          Long.parseLong(line(text, SEED)),
          Integer.parseInt(line(text, RANKS)),
          List.of(line(text, NANOS).split(" ", -1)).stream().map(Long::valueOf).toList(),
          Machine.parse(
              text.lines().filter(line -> line.contains(" = ")).collect(Collectors.joining("\n"))));
    } catch (NumberFormatException e) {
      throw new BraidException(
          "a record of predictions must have whole numbers but has %s; record again"
              .formatted(e.getMessage()),
          e);
    }
  }

  /// Returns the median errors that a text has, by partition.
  public static SortedMap<String, Double> recordedErrors(String text) {
    var errors = new TreeMap<String, Double>();
    text.lines()
        .filter(line -> line.startsWith(ERROR))
        .forEach(
            line -> {
              try {
                int colon = line.lastIndexOf(':');
                errors.put(
                    line.substring(ERROR.length(), colon),
                    Double.parseDouble(line.substring(colon + 1).strip()));
              } catch (IndexOutOfBoundsException | NumberFormatException e) {
                throw new BraidException(
                    "a record of predictions must have errors such as `error all: 0.05` but has `%s`; record again"
                        .formatted(line),
                    e);
              }
            });
    return errors;
  }

  private static String line(String text, String name) {
    return text.lines()
        .filter(line -> line.startsWith(name) && !line.contains(" = "))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "a record of predictions must have a line `%s…` but has none; record again"
                        .formatted(name)))
        .substring(name.length());
  }

  /// Returns a line for each partition whose median error is worse than recorded by more than a
  /// tenth.
  public static List<String> worsened(
      SortedMap<String, Double> recorded, SortedMap<String, Errors> now) {
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
