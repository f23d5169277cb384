package braid.internal.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.LongColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

class HtmlTableTest {
  private static Table table() {
    var missing = DoubleColumn.create("ms", new double[] {84.123456, 3.5});
    missing.appendMissing();
    return Table.create(
        "a <table>",
        IntColumn.create("rank", new int[] {0, 1, 2}),
        StringColumn.create("name", "x<y", "\"&\"", ""),
        missing);
  }

  @Test
  void escapesTextAndAlignsNumbers() {
    var html = HtmlTable.html(table(), 20);

    assertThat(html)
        .contains("a &lt;table&gt;")
        .contains("x&lt;y")
        .contains("&quot;&amp;&quot;")
        .contains("text-align:right\">84.12\u2007<")
        .contains("text-align:right\">3.500<")
        .contains("text-align:left\">x&lt;y<")
        .contains(">integer<")
        .contains(">number<")
        .contains(">text<")
        .contains(">–<")
        .doesNotContain("rows more");
  }

  @ParameterizedTest
  @CsvSource({
    "0.001234, 0.001234",
    "123456789.1, 123456789.1",
    "84.123456, 84.12",
    "1234.5678, 1234.6",
    "-0.25, -0.2500",
    "0.000001, 0.000001000",
    "0.000000123456, 1.235e-07",
    "0, 0",
    "7, 7",
    "123456789012, 123456789012",
    "9007199254740991, 9007199254740991",
    "1e300, 1.0E300",
    "Infinity, Infinity",
    "-Infinity, -Infinity"
  })
  void aNumberKeepsItsOwnDigits(double value, String shown) {
    var table = Table.create("t", DoubleColumn.create("x", new double[] {value}));
    assertThat(HtmlTable.text(table, 20).lines().toList().getLast().strip()).isEqualTo(shown);
    assertThat(HtmlTable.html(table, 20)).contains(">" + shown + "<");
    if (Double.isFinite(value) && value != 0) {
      assertThat(Double.parseDouble(shown)).isCloseTo(value, withinPercentage(0.05));
    }
    assertThat(table.doubleColumn("x").getDouble(0)).isEqualTo(value);
  }

  @ParameterizedTest
  @CsvSource({"-13.8634, -13.9", "0.04, 0", "-0.04, 0", "7, 7.0", "172.4, 172.4"})
  void aPercentageHasOneDecimal(double value, String shown) {
    var table = Table.create("t", DoubleColumn.create("vs unfused %", new double[] {value}));
    assertThat(HtmlTable.text(table, 20).lines().toList().getLast().strip()).isEqualTo(shown);
    assertThat(table.doubleColumn(0).getDouble(0)).isEqualTo(value);
  }

  @Test
  void largeAndSmallNumbersShareAColumnWithTheirPointsAligned() {
    var x = DoubleColumn.create("x", new double[] {0.001234, 123456789.1, 5, 1e-9, Double.NaN});
    var table = Table.create("", x, LongColumn.create("n", Long.MAX_VALUE, 1, 2, 3, 4));
    assertThat(HtmlTable.text(table, 20))
        .isEqualTo(
            """
                           x                    n
                    0.001234  9223372036854775807
            123456789.1                         1
                    5                           2
                   1.000e-09                    3
                           –                    4\
            """);
  }

  @Test
  void aTableShowsItsFirstRowsAndCountsTheRest() {
    assertThat(HtmlTable.html(table(), 1)).doesNotContain("3.5").contains("2 of 3 rows more");
    assertThat(HtmlTable.text(table(), 1))
        .isEqualTo("a <table>\nrank  name     ms\n   0  x<y   84.12\n… 2 of 3 rows more");
  }
}
