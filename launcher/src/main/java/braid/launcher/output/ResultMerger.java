package braid.launcher.output;

import braid.internal.evidence.RankValues;
import braid.model.Host;
import braid.model.MimeBundle;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Merges the results of N ranks: measurements become one table and chart; otherwise the result of
/// rank 0 (or of the lowest rank that ran), and, if texts differ, every rank's value.
public final class ResultMerger {
  private ResultMerger() {}

  public static MimeBundle merge(Map<Integer, MimeBundle> byRank) {
    return merge(byRank, OutputMode.DIFF, List.of());
  }

  /// Merges results. Measurements are merged over all ranks in every mode.
  ///
  /// @param hosts hosts of the ranks, which are named if there are several
  public static MimeBundle merge(
      Map<Integer, MimeBundle> byRank, OutputMode mode, List<Host> hosts) {
    var values = new TreeMap<>(byRank);
    var evidence = RankValues.evidence(List.copyOf(values.values()));
    if (evidence.isPresent()) {
      return evidence.get().display();
    }
    var first = values.firstEntry().getValue();
    boolean alike = values.values().stream().allMatch(v -> v.text().equals(first.text()));
    if (mode == OutputMode.FIRST || values.size() == 1 || (mode == OutputMode.DIFF && alike)) {
      return first;
    }
    var places = places(hosts);
    return first
        .with(
            MimeBundle.TEXT,
            values.entrySet().stream()
                .map(each -> labelled(place(each.getKey(), places), each.getValue().text()))
                .collect(Collectors.joining("\n")))
        .with(MimeBundle.HTML, html(values, places));
  }

  /// Returns the host of each rank if there are several hosts.
  private static Map<Integer, String> places(List<Host> hosts) {
    var places = new HashMap<Integer, String>();
    if (hosts.size() > 1) {
      hosts.forEach(host -> host.ranks().forEach(rank -> places.put(rank, host.name())));
    }
    return places;
  }

  private static String place(int rank, Map<Integer, String> places) {
    return places.containsKey(rank) ? rank + " on " + places.get(rank) : Integer.toString(rank);
  }

  private static String html(Map<Integer, MimeBundle> values, Map<Integer, String> places) {
    var html = new StringBuilder("<table><thead><tr><th>rank</th>");
    if (!places.isEmpty()) {
      html.append("<th>host</th>");
    }
    html.append("<th>value</th></tr></thead><tbody>");
    values.forEach(
        (rank, value) -> {
          var rich = value.data().get(MimeBundle.HTML);
          html.append("<tr><td>").append(rank);
          if (!places.isEmpty()) {
            html.append("</td><td>").append(escape(places.getOrDefault(rank, "")));
          }
          html.append("</td><td style=\"text-align:left\">")
              .append(rich == null ? "<pre>" + escape(value.text()) + "</pre>" : rich)
              .append("</td></tr>");
        });
    return html.append("</tbody></table>").toString();
  }

  /// Labels a text; several lines start on a new line.
  private static String labelled(String rank, String text) {
    return "[" + rank + "]" + (text.contains("\n") ? "\n" : " ") + text;
  }

  /// Labels a bundle with its rank, and the rank's host if there are several.
  static MimeBundle labelled(int rank, List<Host> hosts, MimeBundle bundle) {
    var place = place(rank, places(hosts));
    var text = bundle.with(MimeBundle.TEXT, labelled(place, bundle.text()));
    var html = bundle.data().get(MimeBundle.HTML);
    return html == null
        ? text
        : text.with(MimeBundle.HTML, "<div>rank " + escape(place) + "</div>" + html);
  }

  public static String escape(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
