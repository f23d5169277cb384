package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.data.Offset.offset;

import java.util.List;
import java.util.stream.IntStream;
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
    assertThat(chart.createBufferedImage(860, 420).getWidth()).isEqualTo(860);
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
        var of =
            spans
                .intColumn("rank")
                .isEqualTo(rank)
                .and(spans.stringColumn("stage").isEqualTo("copy"));
        most = Math.max(most, spans.where(of).longColumn("bytes").sum() / set.iterations());
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
