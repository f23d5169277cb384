package braid.internal.report;

import braid.internal.report.chart.ChartImage;
import braid.model.MimeBundle;
import java.util.List;
import java.util.function.Supplier;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// Display of evidence in a notebook: the finding, its first chart, its table, further charts, and
/// notes.
public final class EvidenceDisplay {
  private EvidenceDisplay() {}

  /// @param charts called only if a chart can be drawn
  /// @param notes lines below everything
  public static MimeBundle of(
      String headline, Table table, Supplier<List<JFreeChart>> charts, List<String> notes) {
    var noFonts = ChartImage.noFonts();
    List<JFreeChart> drawn = noFonts.isPresent() ? List.of() : charts.get();
    var text = new StringBuilder(headline).append("\n\n");
    text.append(HtmlTable.text(table, HtmlTable.DEFAULT_ROWS));
    var html = new StringBuilder("<p><b>").append(HtmlTable.escape(headline)).append("</b></p>");
    drawn.stream().limit(1).forEach(chart -> html.append(ChartImage.html(chart)));
    html.append(HtmlTable.html(table, HtmlTable.DEFAULT_ROWS, false));
    drawn.stream().skip(1).forEach(chart -> html.append(ChartImage.html(chart)));
    for (var note : notes) {
      text.append("\n").append(note);
      html.append("<div style=\"opacity:.7\">").append(HtmlTable.escape(note)).append("</div>");
    }
    if (noFonts.isPresent()) {
      text.append("\n").append(noFonts.get());
      html.append("<p>").append(HtmlTable.escape(noFonts.get())).append("</p>");
    }
    var bundle = MimeBundle.text(text.toString()).with(MimeBundle.HTML, html.toString());
    return drawn.isEmpty() ? bundle : bundle.with(MimeBundle.PNG, ChartImage.png(drawn));
  }
}
