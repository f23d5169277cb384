package braid.internal.report.chart;

import braid.evidence.Charts;
import braid.evidence.Crossovers;
import braid.evidence.ProfileSet;
import braid.evidence.Study;
import braid.evidence.SyntheticProfiles;
import braid.evidence.SyntheticReduction;
import braid.evidence.SyntheticStudy;
import braid.model.ChunkOrder;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Priority;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Draws every kind of chart in ordinary and extreme cases, for visual inspection: `ChartGallery
/// DIRECTORY`.
public final class ChartGallery {
  private ChartGallery() {}

  public static void main(String[] args) throws IOException {
    var directory = Files.createDirectories(Path.of(args[0]));
    var charts = new LinkedHashMap<String, JFreeChart>();
    var typical = new SyntheticProfiles(4, 5, 8, 2, 3_000_000, 11_000_000).set();
    charts.put("timeline-4x2x8", typical.timeline());
    charts.put("breakdown-4", typical.breakdown());
    charts.put(
        "timeline-8x3x64", new SyntheticProfiles(8, 2, 64, 3, 300_000, 700_000).set().timeline());
    charts.put("timeline-1x1x1", new SyntheticProfiles(1, 1, 1, 1, 8_000, 12_000).set().timeline());
    var slow = new SyntheticProfiles(2, 3, 4, 1, 2_500_000_000L, 4_500_000_000L).set();
    charts.put("timeline-20s", slow.timeline());
    charts.put("breakdown-1", new SyntheticProfiles(1, 1, 1, 1, 8_000, 12_000).set().breakdown());
    charts.put(
        "breakdown-8", new SyntheticProfiles(8, 2, 64, 3, 300_000, 700_000).set().breakdown());
    var reduction = new SyntheticReduction(4, 3, 16, 8, 9_000_000, 1_400_000).set();
    charts.put("timeline-reduce-4x11", reduction.timeline());
    charts.put("breakdown-reduce-4", reduction.breakdown());
    charts.put(
        "timeline-reduce-2x4",
        new SyntheticReduction(2, 3, 6, 1, 4_000_000, 2_000_000).set().timeline());
    charts.put(
        "timeline-reduce-8x19",
        new SyntheticReduction(8, 1, 64, 16, 9_000_000, 400_000).set().timeline());
    var alone =
        ProfileSet.of(
            List.of(
                new Profile(
                    new Place(0, 1),
                    GemmSpec.allGatherGemm(512, 512, 512).columns(),
                    List.of(1_000_000L),
                    List.of(new Span(0, 0, Stage.GEMM, "gemm-0", 50_000, 950_000, 0, 1_000_000)),
                    0)));
    charts.put("timeline-alone", alone.timeline());
    charts.put("breakdown-alone", alone.breakdown());
    int[] powers = {1, 2, 4, 8, 16, 32};
    var model = SyntheticStudy.model(75e6, 28e6, 0.6e6);
    var study = new SyntheticStudy(103e6, 0.008, 12, 7);
    var three = study.of(SyntheticStudy.overlaps(powers, 1, 2, 3), model);
    charts.put("splits-3-streams", three.chart());
    charts.put("heatmap-3-streams", three.heatmap());
    charts.put("splits-1-stream", study.of(SyntheticStudy.overlaps(powers, 1), model).chart());
    charts.put("splits-one", study.of(SyntheticStudy.overlaps(new int[] {4}, 1), model).chart());
    charts.put(
        "splits-losing",
        study
            .of(SyntheticStudy.overlaps(powers, 1, 2), tuning -> 103e6 + 2e6 * tuning.splits())
            .chart());
    charts.put(
        "splits-noisy",
        new SyntheticStudy(103e6, 0.1, 12, 7)
            .of(SyntheticStudy.overlaps(powers, 1, 2), model)
            .chart());
    var crossing = new TreeMap<Integer, Study<Overlap>>();
    for (int rows = 1; rows <= 16_384; rows *= 4) {
      double unfusedNanos = 40e3 + 200.0 * rows;
      crossing.put(
          rows,
          new SyntheticStudy(unfusedNanos, 0.02, 24, rows)
              .of(
                  List.of(Overlap.pipelined(2), Overlap.direct(1), Overlap.ring(2)),
                  tuning ->
                      switch (tuning.method()) {
                        case PIPELINED -> 30e3 + 0.75 * unfusedNanos;
                        case DIRECT -> 10e3 + 0.85 * unfusedNanos;
                        default -> 90e3 + 0.65 * unfusedNanos;
                      }));
    }
    charts.put("crossovers", new Crossovers(crossing).chart());
    crossing.put(
        1,
        new SyntheticStudy(40e3, 0.02, 24, 1)
            .of(List.of(Overlap.pipelined(2), Overlap.ring(2)), _ -> 300e3));
    charts.put("crossovers-log", new Crossovers(crossing).chart());
    charts.put("crossovers-ranks", ranks(true).chart());
    charts.put("crossovers-ranks-predicted", ranks(false).chart());
    int[] dense = IntStream.rangeClosed(1, 64).toArray();
    charts.put("splits-dense", study.of(SyntheticStudy.overlaps(dense, 1), model).chart());
    charts.put(
        "splits-20us",
        new SyntheticStudy(20e3, 0.01, 12, 7)
            .of(SyntheticStudy.overlaps(powers, 1, 2), SyntheticStudy.model(14e3, 6e3, 200))
            .chart());
    charts.put(
        "splits-20s",
        new SyntheticStudy(20e9, 0.01, 12, 7)
            .of(SyntheticStudy.overlaps(powers, 1, 2), SyntheticStudy.model(14e9, 6e9, 2e8))
            .chart());
    var unequal =
        List.of(
            Overlap.pipelined(4),
            Overlap.defaults().boundaries(0, 512, 1024, 1536, 2048),
            Overlap.defaults().boundaries(0, 256, 1024, 1792, 2048),
            Overlap.defaults().boundaries(0, 128, 640, 1408, 2048).streams(2),
            Overlap.pipelined(4).replay(),
            Overlap.pipelined(4).priority(Priority.GEMM),
            Overlap.pipelined(4).order(ChunkOrder.RANK_ORDER).over(Transport.WORKERS).workers(8));
    charts.put(
        "configurations-7",
        study.of(unequal, chosen -> 90e6 + 1e5 * (chosen.hashCode() & 63)).chart());
    charts.put("configurations-1", study.of(List.of(Overlap.bulk()), _ -> 110e6).chart());
    var methods = new ArrayList<Overlap>();
    for (var transport : Transport.values()) {
      for (int streams = 1; streams <= 3; streams++) {
        for (int split : powers) {
          methods.add(Overlap.pipelined(split).streams(streams).over(transport));
          methods.add(Overlap.ring(split).streams(streams).over(transport));
          methods.add(Overlap.direct(split).streams(streams).over(transport));
        }
      }
    }
    var much =
        study.of(
            methods,
            candidate ->
                model.applyAsDouble(candidate) + (candidate.method() == Method.RING ? 2e6 : 1e6));
    charts.put("configurations-108", much.chart());
    charts.put("heatmap-108", much.heatmap());
    var six = methods.stream().filter(tried -> tried.streams() == 2).toList();
    charts.put(
        "splits-6-lines",
        study
            .of(
                six,
                option ->
                    model.applyAsDouble(option) + (option.method() == Method.RING ? 4e6 : 2e6))
            .chart());
    var table = Table.create("every pattern and method against its unfused time");
    var patterns = StringColumn.create("pattern");
    var ways = StringColumn.create("method");
    var change = DoubleColumn.create("vs unfused %");
    var low = DoubleColumn.create("from %");
    var high = DoubleColumn.create("to %");
    var random = new Random(1);
    for (var pattern :
        List.of("all-gather-gemm", "gemm-all-reduce", "gemm-beside-reduce-scatter")) {
      for (var method : List.of("pipelined", "direct", "ring", "bulk")) {
        if (method.equals("bulk") && !pattern.contains("beside")) {
          continue;
        }
        double value = -40 + 60 * random.nextDouble();
        patterns.append(pattern);
        ways.append(method);
        change.append(value);
        low.append(value - 40 * random.nextDouble());
        high.append(value + 40 * random.nextDouble());
      }
    }
    table.addColumns(patterns, ways, change, low, high);
    charts.put(
        "bars-methods",
        Charts.bars(table)
            .names("pattern")
            .series("method")
            .values("vs unfused %")
            .interval("from %", "to %")
            .chart());
    var bytes =
        Table.create(
            "one tensor through each collective",
            StringColumn.create("pattern", "all-gather", "reduce-scatter", "broadcast"),
            DoubleColumn.create("median ms", 55.0, 22.9, 14.9),
            DoubleColumn.create("p10 ms", 54.1, 19.8, 14.6),
            DoubleColumn.create("p90 ms", 56.6, 26.4, 15.7),
            DoubleColumn.create("received MB", 12.6, 3.15, 3.15),
            DoubleColumn.create("GB/s", 0.229, 0.138, 0.211));
    charts.put(
        "bars-collectives",
        Charts.bars(bytes)
            .names("pattern")
            .values("median ms")
            .interval("p10 ms", "p90 ms")
            .chart());
    charts.put("timeline-rank-1-of-4", typical.timelineOf(1));
    var shared = SyntheticStudy.shared(study.of(SyntheticStudy.overlaps(powers, 1, 2), model));
    charts.put("shared-configurations", shared.chart());
    charts.put("shared-heatmap", shared.heatmap());
    var sharing = SyntheticProfiles.shared(typical);
    charts.put("shared-timeline", sharing.timeline());
    charts.put("shared-breakdown", sharing.breakdown());
    charts.put(
        "shared-bars", Charts.bars(Study.compared(List.of(shared)), "splits", "vs unfused %"));
    System.out.println(three.headline());
    System.out.println(reduction.display().text());
    Files.writeString(directory.resolve("trace.json"), reduction.chromeTrace());
    Files.writeString(
        directory.resolve("study.html"), three.display().data().getOrDefault(MimeBundle.HTML, ""));
    Files.writeString(
        directory.resolve("profiles.html"),
        typical.display().data().getOrDefault(MimeBundle.HTML, ""));
    System.out.println(three.display().text());
    System.out.println(typical.display().text());
    for (var chart : charts.entrySet()) {
      Files.write(directory.resolve(chart.getKey() + ".png"), ChartImage.png(chart.getValue()));
      if (chart.getKey().startsWith("shared")) {
        for (int width : new int[] {800, 420}) {
          Files.write(
              directory.resolve(chart.getKey() + "-" + width + ".png"),
              ChartImage.png(chart.getValue(), width, ChartImage.height(chart.getValue())));
        }
      }
      Files.writeString(
          directory.resolve(chart.getKey() + ".svg"), ChartImage.svg(chart.getValue()));
    }
  }

  /// Returns crossovers over numbers of ranks, predicted on a host of 8 GPUs and 4 of them.
  ///
  /// @param measures true to have times of 8 ranks, too
  private static Crossovers ranks(boolean measures) {
    var spec = GemmSpec.gemmReduceScatter(8192, 8192, 4096);
    var tunings =
        List.of(Overlap.unfused(), Overlap.pipelined(2), Overlap.pipelined(8), Overlap.ring(2));
    var nanos = new TreeMap<Integer, SequencedMap<Overlap, Double>>();
    for (int ranks : new int[] {2, 4, 8, 16, 32, 64}) {
      var times = new LinkedHashMap<Overlap, Double>();
      for (var tuning : tunings) {
        times.put(
            tuning,
            Schedule.of(spec, tuning, ranks)
                .simulate(Machine.named("h200x8x4hosts"), 3)
                .summary()
                .medianNanos());
      }
      nanos.put(ranks, times);
    }
    var measured = new TreeMap<Integer, Study<Overlap>>();
    if (measures) {
      measured.put(
          8,
          new SyntheticStudy(900e3, 0.02, 24, 1)
              .of(
                  tunings.subList(1, tunings.size()),
                  tuning -> tuning.method() == Method.RING ? 700e3 : 800e3));
    }
    return new Crossovers(
        Crossovers.RANKS,
        measured,
        Optional.of(
            new Crossovers.Prediction("h200x8x4hosts, not calibrated", spec.toString(), nanos)));
  }
}
