package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.data.Offset.offset;

import braid.internal.report.chart.ChartImage;
import java.awt.geom.Rectangle2D;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jfree.chart.ChartRenderingInfo;
import org.jfree.chart.entity.CategoryItemEntity;
import org.jfree.chart.plot.PlotOrientation;
import org.junit.jupiter.api.Test;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

class ChartsTest {
  private final Table table =
      Table.create(
          "three patterns",
          StringColumn.create("pattern", "gather", "gather", "scatter"),
          StringColumn.create("method", "ring", "bulk", "ring"),
          DoubleColumn.create("change %", -20, 5, -3),
          DoubleColumn.create("from %", -30, 1, -8),
          DoubleColumn.create("to %", -10, 90, -1));

  @Test
  void barsShowEveryRowAndWholeIntervals() {
    var chart =
        Charts.bars(table)
            .names("pattern")
            .series("method")
            .values("change %")
            .interval("from %", "to %")
            .chart();
    var plot = chart.getCategoryPlot();
    var data = plot.getDataset();
    assertThat(plot.getOrientation()).isEqualTo(PlotOrientation.HORIZONTAL);
    assertThat(chart.getTitle().getText()).isEqualTo("three patterns");
    assertThat(plot.getRangeAxis().getLabel()).isEqualTo("change %");
    assertThat(data.getValue("ring", "gather")).isEqualTo(-20.0);
    assertThat(data.getValue("bulk", "gather")).isEqualTo(5.0);
    assertThat(data.getValue("ring", "scatter")).isEqualTo(-3.0);
    assertThat(data.getValue("bulk", "scatter")).isNull();
    assertThat(plot.getRangeAxis().getRange().contains(-30)).isTrue();
    assertThat(plot.getRangeAxis().getRange().contains(90)).isTrue();
    assertThat(chart.getLegend()).isNotNull();
    // Draws every bar, interval and value.
    var svg = ChartImage.svg(chart);
    assertThat(svg)
        .contains("−20.0% (−30.0 to −10.0)", "+5.0% (+1.0 to +90.0)", "−3.0% (−8.0 to −1.0)");
  }

  /// A group's bars surround its middle, whether it has all series or one.
  @Test
  void barsOfAGroupSurroundItsMiddle() {
    var chart = Charts.bars(table).names("pattern").series("method").values("change %").chart();
    var info = new ChartRenderingInfo();
    chart.createBufferedImage(860, ChartImage.height(chart), info);
    var plot = chart.getCategoryPlot();
    var area = info.getPlotInfo().getDataArea();
    for (int group = 0; group < 2; group++) {
      var name = plot.getDataset().getColumnKey(group);
      var bars = new ArrayList<Rectangle2D>();
      for (Object entity : info.getEntityCollection().getEntities()) {
        if (entity instanceof CategoryItemEntity bar && bar.getColumnKey().equals(name)) {
          bars.add(bar.getArea().getBounds2D());
        }
      }
      assertThat(bars).hasSize(group == 0 ? 2 : 1);
      double top = bars.stream().mapToDouble(Rectangle2D::getMinY).min().orElseThrow();
      double bottom = bars.stream().mapToDouble(Rectangle2D::getMaxY).max().orElseThrow();
      double middle =
          plot.getDomainAxis().getCategoryMiddle(group, 2, area, plot.getDomainAxisEdge());
      assertThat((top + bottom) / 2).isEqualTo(middle, within(0.6));
      for (var bar : bars) {
        double zero = plot.getRangeAxis().valueToJava2D(0, area, plot.getRangeAxisEdge());
        assertThat(Math.min(Math.abs(bar.getMinX() - zero), Math.abs(bar.getMaxX() - zero)))
            .as("bars begin at 0")
            .isLessThan(0.6);
      }
    }
  }

  @Test
  void timesOfDifferentBytesHaveTheirRates() {
    var times =
        Table.create(
            "collectives",
            StringColumn.create("pattern", "all-gather", "all-gather-gemm"),
            DoubleColumn.create("median ms", 50, 20),
            DoubleColumn.create("received MB", 12, 4),
            DoubleColumn.create("GB/s", 0.24, 0.2));
    assertThat(ChartImage.svg(Charts.bars(times, "pattern", "median ms")))
        .contains("50.0 ms, 0.240 GB/s", "20.0 ms, 0.200 GB/s", "all-gather → GEMM");
    var alike = times.copy().replaceColumn(2, DoubleColumn.create("received MB", 4, 4));
    assertThat(ChartImage.svg(Charts.bars(alike, "pattern", "median ms")))
        .contains("50.0 ms")
        .doesNotContain("GB/s");
  }

  @Test
  void rowsOfOneNameHaveABarEach() {
    var twice =
        Table.create(
            "twice",
            StringColumn.create("pattern", "ring", "ring"),
            DoubleColumn.create("median ms", 1, 2));
    var data = Charts.bars(twice, "pattern", "median ms").getCategoryPlot().getDataset();
    assertThat(data.getColumnCount()).isEqualTo(2);
    assertThat(data.getColumnKey(1).toString()).isEqualTo("ring (2)");
  }

  @Test
  void oneSeriesNeedsNoLegendAndNoInterval() {
    var chart =
        Charts.bars(
            table.where(table.stringColumn("method").isEqualTo("ring")), "pattern", "change %");
    assertThat(chart.getLegend()).isNull();
    assertThat(chart.getCategoryPlot().getDataset().getRowCount()).isEqualTo(1);
  }

  @Test
  void columnsThatDoNotFitAreRefusedAtTheCall() {
    assertThatThrownBy(() -> Charts.bars(table).names("patern"))
        .hasMessage(
            "a column must be one of [pattern, method, change %, from %, to %] but was \"patern\"");
    assertThatThrownBy(() -> Charts.bars(table).values("method"))
        .hasMessage("column \"method\" must hold numbers but holds string; choose another");
    assertThatThrownBy(() -> Charts.bars(table).names("pattern").chart())
        .hasMessage(
            "bars need names and values but values(column) is missing; call names(\"pattern\").values(...)");
  }

  /// Against the tables of each profile.
  @Test
  void comparedProfilesHaveOneRowEach() {
    var sets =
        List.of(
            new SyntheticReduction(2, 2, 3, 1, 1000, 3000).set(),
            new SyntheticReduction(2, 4, 3, 1, 1000, 3000).set());
    var compared = ProfileSet.compared(sets);
    assertThat(compared.rowCount()).isEqualTo(2);
    for (int row = 0; row < 2; row++) {
      var set = sets.get(row);
      assertThat(compared.doubleColumn("median ms").get(row))
          .isEqualTo(set.summary().medianNanos() / 1e6);
      var spans = set.table();
      double most = 0;
      for (int rank = 0; rank < set.ranks(); rank++) {
        var copies =
            spans
                .intColumn("rank")
                .isEqualTo(rank)
                .and(spans.stringColumn("stage").isEqualTo("copy"));
        most = Math.max(most, spans.where(copies).longColumn("bytes").sum() / set.iterations());
      }
      assertThat(compared.doubleColumn("received MB").get(row)).isEqualTo(most / 1e6);
      assertThat(compared.doubleColumn("GB/s").get(row))
          .isEqualTo(most / set.summary().medianNanos());
      var stages = set.stages();
      double exposed =
          IntStream.range(0, set.ranks())
              .mapToDouble(
                  rank -> {
                    double overlapped = stages.doubleColumn("overlapped ms").get(rank);
                    double share = stages.doubleColumn("overlapped ÷ communication").get(rank);
                    return overlapped / share - overlapped;
                  })
              .max()
              .orElseThrow();
      assertThat(compared.doubleColumn("exposed ms").get(row)).isCloseTo(exposed, offset(1e-9));
    }
  }
}
