package braid.evidence;

import braid.internal.report.EvidenceDisplay;
import braid.internal.report.TableTypes;
import braid.internal.report.chart.CrossoverChart;
import braid.internal.report.value.Percent;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.Estimate;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// The method to take from which number of rows on: studies of one problem with several numbers of
/// rows, its `m`.
///
/// @param studies study of each number of rows, ascending
public record Crossovers(SequencedMap<Integer, Study<Overlap>> studies) implements Displayable {
  private static final String UNDECIDED = "undecided";
  private static final double NANOS_PER_MILLI = 1e6;

  /// Consecutive numbers of rows with one answer.
  ///
  /// @param answer method, or `undecided`
  public record Range(int from, int to, String answer) {
    @Override
    public String toString() {
      return (from == to ? "m = %d".formatted(from) : "m = %d to %d".formatted(from, to))
          + ": "
          + answer;
    }
  }

  public Crossovers {
    studies = new LinkedHashMap<>(new TreeMap<>(studies));
    if (studies.isEmpty()) {
      throw new BraidException("crossovers need 1 or more studies but have none");
    }
  }

  /// Returns the method that a study answers with: of the tuning to take, or `undecided` if the
  /// measurements do not show whether that is the fastest method.
  private static String answer(Study<Overlap> study) {
    if (!study.timesCount()) {
      return UNDECIDED;
    }
    var best = study.best().method();
    boolean unclear = study.undecided().stream().anyMatch(each -> each.method() != best);
    return unclear ? UNDECIDED : Decision.taken(study).method().toString();
  }

  /// Returns the numbers of rows in ranges of one answer, ascending. Between two ranges nothing was
  /// measured.
  public List<Range> ranges() {
    var ranges = new ArrayList<Range>();
    studies.forEach(
        (rows, study) -> {
          var answer = answer(study);
          int from = rows;
          if (!ranges.isEmpty() && ranges.getLast().answer().equals(answer)) {
            from = ranges.removeLast().from();
          }
          ranges.add(new Range(from, rows, answer));
        });
    return ranges;
  }

  /// Returns the ranges in one line.
  public String headline() {
    return ranges().stream().map(Range::toString).collect(Collectors.joining("; "));
  }

  /// Returns one row per number of rows.
  public Table table() {
    TableTypes.ready();
    var rows = IntColumn.create("m");
    var taken = StringColumn.create("take");
    var time = DoubleColumn.create("median ms");
    var unfused = DoubleColumn.create("unfused, median ms");
    var change = StringColumn.create("time vs unfused");
    var answer = StringColumn.create("answer");
    studies.forEach(
        (m, study) -> {
          boolean count = study.timesCount();
          var chosen = count ? Decision.taken(study) : study.fastest();
          var excess = study.excess(chosen, study.reference());
          rows.append(m);
          taken.append(chosen.toString());
          time.append(study.medianNanos(chosen) / NANOS_PER_MILLI);
          unfused.append(study.unfusedMedianNanos() / NANOS_PER_MILLI);
          change.append(
              chosen.equals(study.reference())
                  ? "–"
                  : "%s (%s%%)".formatted(Percent.change(excess), Percent.interval(excess)));
          answer.append(answer(study));
        });
    return Table.create("crossovers", rows, taken, time, unfused, change, answer);
  }

  /// Returns time ÷ unfused against the number of rows: a line for each method, with its fastest
  /// tuning at each number, and bands where it is undecided which method is fastest.
  public JFreeChart chart() {
    var lines = new LinkedHashMap<String, SequencedMap<Integer, Estimate>>();
    for (var method : Method.values()) {
      var line = new LinkedHashMap<Integer, Estimate>();
      studies.forEach(
          (rows, study) ->
              study.trials().stream()
                  .map(Study.Trial::configuration)
                  .filter(each -> each.method() == method)
                  .reduce(
                      (one, more) -> study.medianNanos(more) < study.medianNanos(one) ? more : one)
                  .ifPresent(each -> line.put(rows, study.excess(each, study.reference()))));
      if (!line.isEmpty()) {
        lines.put(method.toString(), line);
      }
    }
    var last = studies.lastEntry().getValue();
    return CrossoverChart.of(
        headline(),
        last.setting() + ", and fewer rows\n" + last.basis(),
        lines,
        studies.entrySet().stream()
            .filter(each -> answer(each.getValue()).equals(UNDECIDED))
            .map(Map.Entry::getKey)
            .toList());
  }

  @Override
  public MimeBundle display() {
    return EvidenceDisplay.of(headline(), table(), () -> List.of(chart()), List.of());
  }

  @Override
  public String toString() {
    return headline();
  }
}
