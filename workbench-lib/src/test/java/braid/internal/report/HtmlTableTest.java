package braid.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
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
        .contains("text-align:right\">84.12<")
        .contains("text-align:right\">3.50<")
        .contains("text-align:left\">x&lt;y<")
        .contains(">integer<")
        .contains(">number<")
        .contains(">text<")
        .contains(">–<")
        .doesNotContain("rows more");
  }

  @Test
  void showsTheFirstRowsAndSaysHowManyMoreThereAre() {
    assertThat(HtmlTable.html(table(), 1)).doesNotContain("3.50").contains("2 of 3 rows more");
    assertThat(HtmlTable.text(table(), 1))
        .isEqualTo("a <table>\nrank  name     ms\n   0  x<y   84.12\n… 2 of 3 rows more");
  }
}
