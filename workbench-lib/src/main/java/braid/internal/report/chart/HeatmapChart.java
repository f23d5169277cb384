package braid.internal.report.chart;

import braid.BraidException;
import braid.Study;
import braid.internal.report.TimeScale;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.TreeSet;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;
import org.jfree.data.xy.DefaultXYZDataset;

/// Split count × stream count, each cell the fastest median there over all other settings.
public final class HeatmapChart {
  private HeatmapChart() {}

  private record Cell(int splits, int streams) {}

  public static JFreeChart of(Study study) {
    var fastest = new LinkedHashMap<Cell, Study.Trial>();
    var splits = new TreeSet<Integer>();
    var streams = new TreeSet<Integer>();
    for (var trial : study.trials()) {
      var how = trial.overlap();
      splits.add(how.splits());
      streams.add(how.streams());
      fastest.merge(
          new Cell(how.splits(), how.streams()),
          trial,
          (a, b) -> a.medianNanos() <= b.medianNanos() ? a : b);
    }
    if (streams.size() < 2) {
      throw new BraidException(
          "a heat map needs at least 2 stream counts but the study has only "
              + streams.first()
              + "; use chart(), or tune with streams(1, 2, 3)");
    }
    double largest =
        fastest.values().stream().mapToDouble(Study.Trial::medianNanos).max().orElseThrow();
    var scale = TimeScale.of(largest);
    var columns = new ArrayList<>(splits);
    var rows = new ArrayList<>(streams);
    var xyz = new double[3][fastest.size()];
    var labels = new ArrayList<String>();
    int ringed = -1;
    int cell = 0;
    for (var entry : fastest.entrySet()) {
      xyz[0][cell] = columns.indexOf(entry.getKey().splits);
      xyz[1][cell] = rows.indexOf(entry.getKey().streams);
      xyz[2][cell] = scale.from(entry.getValue().medianNanos());
      labels.add(TimeScale.digits(xyz[2][cell]));
      if (entry.getValue().overlap().equals(study.best())) {
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
            study.finding(),
            study.setting()
                + "\nmedian time of an iteration in "
                + scale.unit()
                + ", darker is faster; "
                + study.basis(),
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
