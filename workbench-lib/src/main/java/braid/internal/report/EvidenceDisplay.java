package braid.internal.report;

import braid.Evidence;
import braid.MimeBundle;
import braid.internal.report.chart.ChartImage;
import tech.tablesaw.api.Table;

/// How evidence shows itself in a notebook: the finding, its main table and its first chart.
public final class EvidenceDisplay {
  private EvidenceDisplay() {}

  public static MimeBundle of(Evidence evidence, Table table) {
    var text = evidence.headline() + "\n\n" + HtmlTable.text(table, HtmlTable.DEFAULT_ROWS);
    var html =
        "<p><b>"
            + HtmlTable.escape(evidence.headline())
            + "</b></p>"
            + HtmlTable.html(table, HtmlTable.DEFAULT_ROWS);
    var noFonts = ChartImage.noFonts();
    if (noFonts.isPresent()) {
      return MimeBundle.text(text + "\n" + noFonts.get())
          .with(MimeBundle.HTML, html + "<p>" + HtmlTable.escape(noFonts.get()) + "</p>");
    }
    var charts = evidence.charts();
    if (charts.isEmpty()) {
      return MimeBundle.text(text).with(MimeBundle.HTML, html);
    }
    var chart = charts.firstEntry().getValue();
    return MimeBundle.text(text)
        .with(MimeBundle.HTML, html + ChartImage.html(chart))
        .with(MimeBundle.PNG, ChartImage.png(chart));
  }
}
