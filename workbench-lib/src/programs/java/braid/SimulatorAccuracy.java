package braid;

import braid.MeasuredCombinations.Combination;
import braid.internal.report.chart.ChartImage;
import braid.internal.report.statistics.Spread;
import braid.model.Link;
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
import org.jfree.chart.ChartFactory;
import org.jfree.chart.axis.LogAxis;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/// Prints simulated beside measured times of the host backend, for random combinations of shape,
/// type, method, splits, streams and link, with the errors by partition, and draws a scatter plot.
/// Combinations take turns, so that disturbances of the machine affect all of them. The machine is
/// calibrated just before, without these combinations: none of its multiplications has their n and
/// k. Not a test; run it by hand:
///
/// `java -cp … braid.SimulatorAccuracy measure SEED COMBINATIONS ROUNDS RANKS [RECORD [SVG]]`
///
/// `java -cp … braid.SimulatorAccuracy check RECORD ROUNDS`, which measures again and fails if the
/// error of a partition is worse than recorded by more than a tenth
final class SimulatorAccuracy {
  private static final double BAND = 0.1;

  private SimulatorAccuracy() {}

  public static void main(String[] given) throws IOException, InterruptedException {
    boolean checks = given.length > 0 && given[0].equals("check");
    if (given.length < (checks ? 3 : 5)) {
      System.err.println("give measure SEED COMBINATIONS ROUNDS RANKS, or check RECORD ROUNDS");
      System.exit(2);
    }
    var ranks =
        checks
            ? MeasuredCombinations.parse(Files.readString(Path.of(given[1]))).ranks()
            : Integer.parseInt(given[4]);
    int code = 0;
    for (var ended :
        ProcessRanks.run(
            ranks,
            Map.of("BRAID_LINK", Link.UNLIMITED.toString(), "BRAID_BACKEND", "host"),
            OnRank.class,
            given)) {
      if (ended.rank() == 0 || ended.exitCode() != 0) {
        System.out.print(ended.output());
      }
      code = Math.max(code, ended.exitCode());
    }
    System.exit(code);
  }

  static final class OnRank {
    private static final int ITERATIONS = 3;
    private static final int PROFILED = 10;

    private OnRank() {}

    public static void main(String[] args) throws IOException {
      boolean checks = args[0].equals("check");
      var recorded = checks ? Files.readString(Path.of(args[1])) : "";
      long seed = checks ? MeasuredCombinations.parse(recorded).seed() : Long.parseLong(args[1]);
      int count =
          checks ? MeasuredCombinations.parse(recorded).nanos().size() : Integer.parseInt(args[2]);
      int rounds = Integer.parseInt(checks ? args[2] : args[3]);
      try (var world = ProcessGroup.world()) {
        // The other ranks wait in the calibration.
        var quick = world.rank() == 0 ? Machine.ofOneRank(world.size()) : Machine.h100x8();
        var machine = Calibrator.on(world).measure();
        var combinations = MeasuredCombinations.combinations(seed, count, world.size());
        var pipes = new ArrayList<Pipeline>();
        for (var each : combinations) {
          var pipe = Pipeline.on(world).gemm(each.spec()).overlap(each.tuning()).build();
          pipe.run();
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
        boolean worse = false;
        if (world.rank() == 0) {
          var measured =
              new MeasuredCombinations(
                  seed, world.size(), Arrays.stream(nanos).map(OnRank::quietest).toList(), machine);
          print(measured, combinations, nanos, args.length > 6 ? args[6] : "");
          printStages(measured, combinations, profiles);
          printErrors(measured);
          System.out.println("By the quick measurement, which calibrates nothing:");
          printErrors(new MeasuredCombinations(seed, world.size(), measured.nanos(), quick));
          if (!checks && args.length > 5) {
            Files.writeString(Path.of(args[5]), measured.text());
          }
          var lines =
              checks
                  ? MeasuredCombinations.worsened(
                      MeasuredCombinations.recordedErrors(recorded), measured.errors())
                  : List.<String>of();
          lines.forEach(line -> System.out.println("WORSE " + line));
          worse = !lines.isEmpty();
        }
        world.barrier();
        if (worse) {
          System.exit(1);
        }
      }
    }

    private static void print(
        MeasuredCombinations measured, List<Combination> combinations, long[][] nanos, String svg)
        throws IOException {
      var points = new XYSeries("combinations", false);
      System.out.println(measured.machine().title());
      System.out.println(
          "| problem | tuning | link | measured ms | median of all | simulated ms | ratio |");
      System.out.println("|---|---|---|--:|--:|--:|--:|");
      var ratios = measured.ratios();
      for (int i = 0; i < combinations.size(); i++) {
        var each = combinations.get(i);
        double median = Spread.quantile(nanos[i], 0.5);
        double lowest = measured.nanos().get(i);
        double simulated = ratios.get(i) * lowest;
        points.add(lowest / 1e6, simulated / 1e6);
        System.out.printf(
            "| %s | %s | %s | %.2f | %.2f | %.2f | %.3f |%n",
            each.spec(),
            each.tuning(),
            each.link(),
            lowest / 1e6,
            median / 1e6,
            simulated / 1e6,
            ratios.get(i));
      }
      if (!svg.isEmpty()) {
        Files.writeString(Path.of(svg), scatter(points));
      }
    }

    private static void printErrors(MeasuredCombinations measured) {
      System.out.println("| partition | combinations | median error | p90 |");
      System.out.println("|---|--:|--:|--:|");
      measured
          .errors()
          .forEach(
              (name, each) ->
                  System.out.printf(
                      "| %s | %d | %.1f%% | %.1f%% |%n",
                      name, each.count(), 100 * each.median(), 100 * each.p90()));
    }

    /// Returns the lowest median of all rounds: that of the round with the least load by other
    /// processes.
    private static long quietest(long... nanos) {
      long lowest = Long.MAX_VALUE;
      for (int first = 0; first < nanos.length; first += ITERATIONS) {
        var round = Arrays.copyOfRange(nanos, first, first + ITERATIONS);
        Arrays.sort(round);
        lowest = Math.min(lowest, round[ITERATIONS / 2]);
      }
      return lowest;
    }

    /// Parts of rank 0's mean iteration, measured and simulated.
    private static void printStages(
        MeasuredCombinations all, List<Combination> combinations, List<Profile> measured) {
      System.out.println(
          "| problem | tuning | gemm | attention | copy | reduce | local | wait | signal |");
      System.out.println("|---|---|--:|--:|--:|--:|--:|--:|--:|");
      for (int i = 0; i < combinations.size(); i++) {
        var each = combinations.get(i);
        var simulated =
            Schedule.of(each.spec(), each.tuning(), all.ranks())
                .simulate(all.machine().withLink(each.link()), ITERATIONS)
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
