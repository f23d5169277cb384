package braid;

import braid.internal.report.chart.ChartImage;
import braid.internal.report.statistics.Spread;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.geom.Ellipse2D;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.jfree.chart.ChartFactory;
import org.jfree.chart.axis.LogAxis;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/// Prints simulated beside measured times of the host backend, for random combinations of shape,
/// method, splits, streams and link, and draws a scatter plot. Combinations take turns, so that
/// disturbances of the machine affect all of them. The machine's description is measured once,
/// without these combinations. Not a test; run it by hand:
///
/// `java -cp … braid.SimulatorAccuracy [seed combinations rounds ranks svg]`
final class SimulatorAccuracy {
  private static final List<String> DEFAULTS = List.of("1", "20", "15", "2", "");
  private static final double BAND = 0.1;

  private SimulatorAccuracy() {}

  public static void main(String[] given) throws IOException, InterruptedException {
    var all = new ArrayList<>(Arrays.asList(given));
    all.addAll(DEFAULTS.subList(given.length, DEFAULTS.size()));
    for (var ended :
        ProcessRanks.run(
            Integer.parseInt(all.get(3)),
            Map.of("BRAID_LINK", Link.UNLIMITED.toString(), "BRAID_BACKEND", "host"),
            OnRank.class,
            all.toArray(String[]::new))) {
      if (ended.rank() == 0 || ended.exitCode() != 0) {
        System.out.print(ended.output());
      }
    }
  }

  /// A problem, a tuning and a link.
  private record Combination(GemmSpec spec, Overlap tuning, Link link) {
    private static final double LEAST_GFLOP = 0.5;
    private static final double MOST_GFLOP = 3.5;

    /// Draws a combination that keeps a core busy for 5 to 40 ms and its link for about the same
    /// time.
    static Combination random(SplittableRandom random, int ranks) {
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

    @Override
    public String toString() {
      return "%s, %s, %s".formatted(spec, tuning, link);
    }
  }

  static final class OnRank {
    private static final int ITERATIONS = 3;
    private static final int PROFILED = 10;

    private OnRank() {}

    public static void main(String[] args) throws IOException {
      var random = new SplittableRandom(Long.parseLong(args[0]));
      int rounds = Integer.parseInt(args[2]);
      try (var world = ProcessGroup.world()) {
        var machine = Machine.ofThisHost();
        var combinations = new ArrayList<Combination>();
        var pipes = new ArrayList<Pipeline>();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
          var each = Combination.random(random, world.size());
          combinations.add(each);
          var pipe = Pipeline.on(world).gemm(each.spec()).overlap(each.tuning()).build();
          pipe.verify();
          pipes.add(pipe);
        }
        var nanos = new long[pipes.size()][rounds * ITERATIONS];
        for (int round = 0; round < rounds; round++) {
          for (int i = 0; i < pipes.size(); i++) {
            world.playLink(combinations.get(i).link());
            var mine = pipes.get(i).time(ITERATIONS);
            for (int j = 0; j < ITERATIONS; j++) {
              nanos[i][round * ITERATIONS + j] =
                  Arrays.stream(world.gather(mine[j])).max().orElseThrow();
            }
          }
        }
        var profiles = new ArrayList<Profile>();
        for (int i = 0; i < pipes.size(); i++) {
          world.playLink(combinations.get(i).link());
          profiles.add(pipes.get(i).profile(PROFILED));
        }
        if (world.rank() == 0) {
          print(machine, world.size(), combinations, nanos, args[4]);
          printStages(machine, combinations, profiles);
        }
        world.barrier();
      }
    }

    private static void print(
        Machine machine, int ranks, List<Combination> combinations, long[][] nanos, String svg)
        throws IOException {
      var points = new XYSeries("combinations", false);
      var errors = new ArrayList<Long>();
      System.out.println(
          "| problem | tuning | link | measured ms | median of all | simulated ms | ratio |");
      System.out.println("|---|---|---|--:|--:|--:|--:|");
      for (int i = 0; i < combinations.size(); i++) {
        var each = combinations.get(i);
        double median = Spread.of(Arrays.stream(nanos[i]).boxed().toList()).medianNanos();
        double measured = quietest(nanos[i]);
        double simulated =
            Schedule.of(each.spec(), each.tuning(), ranks)
                .simulate(machine.withLink(each.link()), ITERATIONS)
                .summary()
                .medianNanos();
        double ratio = simulated / measured;
        errors.add(Math.round(1e6 * Math.abs(ratio - 1)));
        points.add(measured / 1e6, simulated / 1e6);
        System.out.printf(
            "| %s | %s | %s | %.2f | %.2f | %.2f | %.3f |%n",
            each.spec(),
            each.tuning(),
            each.link(),
            measured / 1e6,
            median / 1e6,
            simulated / 1e6,
            ratio);
      }
      System.out.printf(
          "median |error| %.1f%%, p90 %.1f%% over %d%n",
          Spread.of(errors).medianNanos() / 1e4, Spread.of(errors).p90Nanos() / 1e4, errors.size());
      if (!svg.isEmpty()) {
        Files.writeString(Path.of(svg), scatter(points));
      }
    }

    /// Returns the lowest median of all rounds: that of the round with the least load by other
    /// processes.
    private static double quietest(long... nanos) {
      double lowest = Double.POSITIVE_INFINITY;
      for (int first = 0; first < nanos.length; first += ITERATIONS) {
        var round = Arrays.copyOfRange(nanos, first, first + ITERATIONS);
        Arrays.sort(round);
        lowest = Math.min(lowest, (double) round[ITERATIONS / 2]);
      }
      return lowest;
    }

    /// Parts of rank 0's mean iteration, measured and simulated.
    private static void printStages(
        Machine machine, List<Combination> combinations, List<Profile> measured) {
      System.out.println("| problem | tuning | gemm | copy | reduce | local | wait | signal |");
      System.out.println("|---|---|--:|--:|--:|--:|--:|--:|");
      for (int i = 0; i < combinations.size(); i++) {
        var each = combinations.get(i);
        var simulated =
            Schedule.of(each.spec(), each.tuning(), 2)
                .simulate(machine.withLink(each.link()), ITERATIONS)
                .profiles()
                .getFirst();
        System.out.printf("| %s | %s |", each.spec(), each.tuning());
        for (var stage : Stage.values()) {
          System.out.printf(
              " %.2f / %.2f |", millis(measured.get(i), stage), millis(simulated, stage));
        }
        System.out.println();
      }
    }

    private static double millis(Profile profile, Stage stage) {
      return profile.spans().stream()
              .filter(span -> span.stage() == stage)
              .mapToLong(Span::nanos)
              .sum()
          / 1e6
          / profile.iterations();
    }
  }

  private static String scatter(XYSeries points) {
    double least = Math.min(points.getMinX(), points.getMinY()) / 1.3;
    double most = Math.max(points.getMaxX(), points.getMaxY()) * 1.3;
    var data = new XYSeriesCollection(points);
    for (double factor : new double[] {1, 1 - BAND, 1 + BAND}) {
      var line = new XYSeries(factor == 1 ? "equal" : "%.1f".formatted(factor));
      line.add(least, factor * least);
      line.add(most, factor * most);
      data.addSeries(line);
    }
    var chart =
        ChartFactory.createXYLineChart(
            "An iteration of the host backend: simulated against measured",
            "measured, ms",
            "simulated, ms",
            data);
    chart.removeLegend();
    chart.setBackgroundPaint(Color.WHITE);
    var plot = chart.getXYPlot();
    plot.setBackgroundPaint(Color.WHITE);
    for (boolean domain : new boolean[] {true, false}) {
      var axis = new LogAxis(domain ? "measured, ms" : "simulated, ms");
      axis.setRange(least, most);
      axis.setNumberFormatOverride(
          java.text.NumberFormat.getIntegerInstance(java.util.Locale.ROOT));
      if (domain) {
        plot.setDomainAxis(axis);
      } else {
        plot.setRangeAxis(axis);
      }
    }
    var renderer = new XYLineAndShapeRenderer(true, false);
    renderer.setSeriesLinesVisible(0, false);
    renderer.setSeriesShapesVisible(0, true);
    renderer.setSeriesShape(0, new Ellipse2D.Double(-3.5, -3.5, 7, 7));
    renderer.setSeriesPaint(0, new Color(0x1f77b4));
    for (int line = 1; line < data.getSeriesCount(); line++) {
      renderer.setSeriesPaint(line, line == 1 ? Color.GRAY : Color.LIGHT_GRAY);
      renderer.setSeriesStroke(line, new BasicStroke(1));
    }
    plot.setRenderer(renderer);
    return ChartImage.svg(chart, 640, 640);
  }
}
