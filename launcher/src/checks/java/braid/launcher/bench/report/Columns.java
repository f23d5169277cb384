package braid.launcher.bench.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// The report's table as text, for every output format.
final class Columns {
  static final String NOTHING = "–";

  private Columns() {}

  static List<String> head(FrontReport report) {
    var head = new ArrayList<String>();
    head.add("measurement");
    for (int ranks : report.rankCounts()) {
      head.add(ranks == 1 ? "1 rank" : ranks + " ranks");
    }
    head.add("limit");
    head.add("verdict");
    head.add("ipyparallel, %d engines".formatted(FrontReport.PEER_ENGINES));
    head.add("Braid ÷ ipyparallel");
    return head;
  }

  static List<List<String>> rows(FrontReport report) {
    return report.rows().stream().map(row -> words(report, row)).toList();
  }

  private static List<String> words(FrontReport report, Row row) {
    var words = new ArrayList<String>();
    words.add(row.what() + ", " + row.unit());
    for (int ranks : report.rankCounts()) {
      var measure = row.byRanks().get(ranks);
      words.add(measure == null ? NOTHING : words(measure));
    }
    words.add(
        row.limit().map(l -> "%s at %d".formatted(number(l.most()), l.ranks())).orElse(NOTHING));
    words.add(row.verdict().map(Row.Verdict::word).orElse(NOTHING));
    words.add(row.peer().map(Columns::words).orElse(NOTHING));
    words.add(row.ratio().map(Columns::number).orElse(NOTHING));
    return words;
  }

  static List<String> stageHead(FrontReport report) {
    var head = new ArrayList<String>();
    head.add("stage of an expression cell, ms");
    report.rankCounts().forEach(ranks -> head.add(ranks == 1 ? "1 rank" : ranks + " ranks"));
    return head;
  }

  static List<List<String>> stageRows(FrontReport report) {
    var rows = new ArrayList<List<String>>();
    var first = report.stages().get(report.rankCounts().getFirst());
    if (first == null) {
      return rows;
    }
    for (var stage : first.keySet()) {
      var row = new ArrayList<String>();
      row.add(stage);
      for (int ranks : report.rankCounts()) {
        var stages = report.stages().get(ranks);
        var measure = stages == null ? null : stages.get(stage);
        row.add(measure == null ? NOTHING : words(measure));
      }
      rows.add(row);
    }
    return rows;
  }

  private static String words(Measure measure) {
    return measure.repeats() == 1
        ? number(measure.median())
        : "%s (%s–%s)"
            .formatted(number(measure.median()), number(measure.low()), number(measure.high()));
  }

  /// Formats three significant digits: more would be noise.
  private static String number(double value) {
    if (value == Math.rint(value) || value >= 100) {
      return String.format(Locale.ROOT, "%.0f", value);
    }
    return String.format(Locale.ROOT, value >= 10 ? "%.1f" : "%.2f", value);
  }
}
