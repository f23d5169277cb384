package braid.internal.report;

import braid.internal.report.chart.ChartImage;
import braid.model.MimeBundle;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Supplier;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// Display of evidence in a notebook: the finding, its main table, small tables below it, and its
/// first chart.
public final class EvidenceDisplay {
  private static final String SMALL = "<div style=\"font-size:85%\">";

  private EvidenceDisplay() {}

  /// @param below small tables of minor importance
  /// @param charts called only if a chart can be drawn
  public static MimeBundle of(
      String headline,
      Table table,
      List<Table> below,
      Supplier<SequencedMap<String, JFreeChart>> charts) {
    var text = new StringBuilder(headline).append("\n\n");
    var html = new StringBuilder("<p><b>").append(HtmlTable.escape(headline)).append("</b></p>");
    text.append(HtmlTable.text(table, HtmlTable.DEFAULT_ROWS));
    html.append(HtmlTable.html(table, HtmlTable.DEFAULT_ROWS));
    for (var small : below) {
      text.append("\n\n").append(HtmlTable.text(small, HtmlTable.DEFAULT_ROWS));
      html.append(SMALL).append(HtmlTable.html(small, HtmlTable.DEFAULT_ROWS)).append("</div>");
    }
    var noFonts = ChartImage.noFonts();
    if (noFonts.isPresent()) {
      return MimeBundle.text(text + "\n" + noFonts.get())
          .with(MimeBundle.HTML, html + "<p>" + HtmlTable.escape(noFonts.get()) + "</p>");
    }
    var drawn = charts.get();
    if (drawn.isEmpty()) {
      return MimeBundle.text(text.toString()).with(MimeBundle.HTML, html.toString());
    }
    var chart = drawn.firstEntry().getValue();
    return MimeBundle.text(text.toString())
        .with(MimeBundle.HTML, html + ChartImage.html(chart))
        .with(MimeBundle.PNG, ChartImage.png(chart));
  }
}
