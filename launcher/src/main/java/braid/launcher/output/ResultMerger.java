package braid.launcher.output;

import braid.MimeBundle;
import braid.internal.evidence.HandedOver;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// One result from N: what the ranks measured becomes one table and chart; else it is rank 0's (or
/// the lowest rank's that ran), and where ranks' texts differ, each rank's value.
public final class ResultMerger {
  private ResultMerger() {}

  public static MimeBundle merge(Map<Integer, MimeBundle> byRank) {
    var values = new TreeMap<>(byRank);
    var evidence = HandedOver.evidence(List.copyOf(values.values()));
    if (evidence.isPresent()) {
      return evidence.get().display();
    }
    var first = values.firstEntry().getValue();
    if (values.values().stream().allMatch(v -> v.text().equals(first.text()))) {
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

  public static String escape(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
