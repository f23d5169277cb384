package braid.internal.report.chart;

import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.RankedConfiguration;
import braid.internal.report.statistics.RankedConfigurations.Standing;
import braid.internal.report.value.Percent;
import braid.internal.report.value.TimeScale;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.TreeSet;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;
import org.jfree.data.xy.DefaultXYZDataset;

/// Heat map of split count × stream count; each cell is the fastest median over all other settings.
public final class HeatmapChart {
  private HeatmapChart() {}

  private record Cell(int splits, int streams) {}

  public static JFreeChart of(RankedConfigurations ranked) {
    if (!ranked.ofPipeline()) {
      throw new BraidException(
          "a heat map shows splits and streams, but these configurations are named steps; use chart()");
    }
    var fastest = new LinkedHashMap<Cell, RankedConfiguration>();
    var splits = new TreeSet<Integer>();
    var streams = new TreeSet<Integer>();
    for (var configuration : ranked.configurations()) {
      if (configuration.splits() == 0) {
        continue;
      }
      var cell =
          new Cell(configuration.splits(), configuration.configuration().count("streams", 1));
      splits.add(cell.splits);
      streams.add(cell.streams);
      fastest.merge(
          cell, configuration, (a, b) -> a.time().medianNanos() <= b.time().medianNanos() ? a : b);
    }
    if (streams.size() < 2) {
      throw new BraidException(
          "a heat map needs at least 2 stream counts but the study has only "
              + streams.stream().findFirst().orElse(0)
              + "; use chart(), or tune with streams(1, 2, 3)");
    }
    double largest =
        fastest.values().stream().mapToDouble(s -> s.time().medianNanos()).max().orElseThrow();
    var scale = TimeScale.of(largest);
    boolean judged = ranked.isJudged();
    var columns = new ArrayList<>(splits);
    var rows = new ArrayList<>(streams);
    var xyz = new double[3][fastest.size()];
    var labels = new ArrayList<List<String>>();
    int ringed = -1;
    int cell = 0;
    for (var entry : fastest.entrySet()) {
      xyz[0][cell] = columns.indexOf(entry.getKey().splits);
      xyz[1][cell] = rows.indexOf(entry.getKey().streams);
      xyz[2][cell] = scale.from(entry.getValue().time().medianNanos());
      labels.add(
          judged
              ? List.of(
                  TimeScale.digits(xyz[2][cell]) + " " + scale.unit(),
                  Percent.change(entry.getValue().excess()))
              : StudyMarks.words(entry.getValue()));
      if (entry.getValue().standing() == Standing.BEST) {
        ringed = cell;
      }
      cell++;
    }
    var data = new DefaultXYZDataset();
    data.addSeries("median " + scale.unit(), xyz);
    var plot =
        new XYPlot(
            data,
            axis("splits", columns),
            axis("streams", rows),
            new HeatCells(xyz[2], labels, ringed));
    var chart =
        Theme.chart(
            ranked.finding(),
            ranked.setting()
                + "\nmedian time of an iteration"
                + (judged
                    ? " and its difference to the reference, darker is faster"
                    : ", darker is shorter")
                + (ranked.varying().size() > 2
                    ? ", the %s of all other settings; ".formatted(judged ? "fastest" : "least")
                    : "; ")
                + ranked.basis(),
            plot);
    plot.setDomainGridlinesVisible(false);
    plot.setRangeGridlinesVisible(false);
    return chart;
  }

  private static NumberAxis axis(String label, List<Integer> counts) {
    var axis = new SymbolAxis(label, counts.stream().map(String::valueOf).toArray(String[]::new));
    axis.setGridBandsVisible(false);
    axis.setRange(-0.5, counts.size() - 0.5);
    axis.setTickMarksVisible(false);
    return axis;
  }
}
