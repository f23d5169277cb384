package braid.launcher.output;

import braid.MimeBundle;
import braid.internal.report.Renderings;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// One result from N: what the ranks measured becomes one table and chart; else it is rank 0's (or
/// the lowest rank's that ran), and where ranks' texts differ, each rank's value.
public final class ResultMerger {
  private ResultMerger() {}

  public static MimeBundle merge(Map<Integer, MimeBundle> byRank) {
    return merge(byRank, OutputMode.DIFF);
  }

  /// What was measured is one thing of all ranks, whatever is shown of the rest.
  public static MimeBundle merge(Map<Integer, MimeBundle> byRank, OutputMode mode) {
    var values = new TreeMap<>(byRank);
    var evidence = Renderings.evidence(List.copyOf(values.values()));
    if (evidence.isPresent()) {
      return evidence.get().display();
    }
    var first = values.firstEntry().getValue();
    boolean alike = values.values().stream().allMatch(v -> v.text().equals(first.text()));
    if (mode == OutputMode.FIRST || values.size() == 1 || (mode == OutputMode.DIFF && alike)) {
      return first;
    }
    var text = new StringBuilder();
    var html =
        new StringBuilder("<table><thead><tr><th>rank</th><th>value</th></tr></thead><tbody>");
    values.forEach(
        (rank, value) -> {
          text.append("[").append(rank).append("] ").append(value.text()).append('\n');
          html.append("<tr><td>")
              .append(rank)
              .append("</td><td style=\"text-align:left\"><pre>")
              .append(escape(value.text()))
              .append("</pre></td></tr>");
        });
    html.append("</tbody></table>");
    text.setLength(text.length() - 1);
    var rich = first.data().get(MimeBundle.HTML);
    return first
        .with(MimeBundle.TEXT, text.toString())
        .with(MimeBundle.HTML, (rich == null ? "" : rich) + html);
  }

  /// With the rank it is of.
  static MimeBundle labelled(int rank, MimeBundle bundle) {
    var text = bundle.with(MimeBundle.TEXT, "[" + rank + "] " + bundle.text());
    var html = bundle.data().get(MimeBundle.HTML);
    return html == null ? text : text.with(MimeBundle.HTML, "<div>rank " + rank + "</div>" + html);
  }

  public static String escape(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
