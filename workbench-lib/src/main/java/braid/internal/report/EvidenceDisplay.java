package braid.internal.report;

import braid.MimeBundle;
import braid.internal.report.chart.ChartImage;
import java.util.SequencedMap;
import java.util.function.Supplier;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// How evidence shows itself in a notebook: the finding, its main table and its first chart.
public final class EvidenceDisplay {
  private EvidenceDisplay() {}

  /// @param charts asked for only where a chart can be drawn
  public static MimeBundle of(
      String headline, Table table, Supplier<SequencedMap<String, JFreeChart>> charts) {
    var text = headline + "\n\n" + HtmlTable.text(table, HtmlTable.DEFAULT_ROWS);
    var html =
        "<p><b>"
            + HtmlTable.escape(headline)
            + "</b></p>"
            + HtmlTable.html(table, HtmlTable.DEFAULT_ROWS);
    var noFonts = ChartImage.noFonts();
    if (noFonts.isPresent()) {
      return MimeBundle.text(text + "\n" + noFonts.get())
          .with(MimeBundle.HTML, html + "<p>" + HtmlTable.escape(noFonts.get()) + "</p>");
    }
    var drawn = charts.get();
    if (drawn.isEmpty()) {
      return MimeBundle.text(text).with(MimeBundle.HTML, html);
    }
    var chart = drawn.firstEntry().getValue();
    return MimeBundle.text(text)
        .with(MimeBundle.HTML, html + ChartImage.html(chart))
        .with(MimeBundle.PNG, ChartImage.png(chart));
  }
}
