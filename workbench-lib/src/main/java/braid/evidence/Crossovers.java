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
import java.util.Optional;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// The method to take from which size on: studies of one problem with several numbers of rows, its
/// `m`; or predictions for several numbers of ranks, and a study of one of them.
///
/// @param size name of the size: [#ROWS] or [#RANKS]
/// @param studies study of each size that was measured, ascending
/// @param prediction predicted times; empty if all sizes were measured
public record Crossovers(
    String size, SequencedMap<Integer, Study<Overlap>> studies, Optional<Prediction> prediction)
    implements Displayable {
  public static final String ROWS = "m";
  public static final String RANKS = "ranks";

  private static final String UNDECIDED = "undecided";
  private static final double NANOS_PER_MILLI = 1e6;

  /// Consecutive sizes with one answer.
  ///
  /// @param size name of the size
  /// @param answer method, or `undecided`
  public record Range(String size, int from, int to, String answer) {
    @Override
    public String toString() {
      return "%s = %s: %s".formatted(size, from == to ? from : from + " to " + to, answer);
    }
  }

  /// Times of an iteration that a simulation predicts.
  ///
  /// @param machine the described machine
  /// @param problem the problem in one line
  /// @param nanos time of unfused and of each possible tuning, by size
  public record Prediction(
      String machine, String problem, SequencedMap<Integer, SequencedMap<Overlap, Double>> nanos) {
    public Prediction {
      nanos = new LinkedHashMap<>(new TreeMap<>(nanos));
      nanos.forEach(
          (size, times) -> {
            if (times.size() < 2 || !times.containsKey(Overlap.unfused())) {
              throw new BraidException(
                  "a prediction needs times of unfused and 1 or more overlaps at each size but has %s at %d; leave the size out"
                      .formatted(times.keySet(), size));
            }
          });
    }

    /// Returns the share by which a tuning takes longer than unfused.
    double excess(int size, Overlap tuning) {
      return nanos(size, tuning) / nanos(size, Overlap.unfused()) - 1;
    }

    double nanos(int size, Overlap tuning) {
      return nanos.getOrDefault(size, new LinkedHashMap<>()).getOrDefault(tuning, 0.0);
    }

    /// Returns the fastest tuning; of a method, if one is given.
    Optional<Overlap> fastest(int size, Optional<Method> method) {
      return nanos.getOrDefault(size, new LinkedHashMap<>()).entrySet().stream()
          .filter(each -> method.isEmpty() || each.getKey().method() == method.get())
          .min(Map.Entry.comparingByValue())
          .map(Map.Entry::getKey);
    }
  }

  public Crossovers {
    studies = new LinkedHashMap<>(new TreeMap<>(studies));
    if (studies.isEmpty() && prediction.isEmpty()) {
      throw new BraidException("crossovers need 1 or more studies but have none");
    }
  }

  /// Creates crossovers of studies of several numbers of rows.
  public Crossovers(SequencedMap<Integer, Study<Overlap>> studies) {
    this(ROWS, studies, Optional.empty());
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

  /// Returns the measured sizes in ranges of one answer, ascending. Between two ranges nothing was
  /// measured.
  public List<Range> ranges() {
    var answers = new LinkedHashMap<Integer, String>();
    studies.forEach((count, study) -> answers.put(count, answer(study)));
    return ranges(answers);
  }

  /// Returns the predicted sizes in ranges of one answer, ascending; none if nothing is predicted.
  public List<Range> predictedRanges() {
    var answers = new LinkedHashMap<Integer, String>();
    prediction.ifPresent(
        predicted ->
            predicted
                .nanos()
                .keySet()
                .forEach(count -> answers.put(count, taken(predicted, count).method().toString())));
    return ranges(answers);
  }

  private List<Range> ranges(SequencedMap<Integer, String> answers) {
    var ranges = new ArrayList<Range>();
    answers.forEach(
        (count, answer) -> {
          int from = count;
          if (!ranges.isEmpty() && ranges.getLast().answer().equals(answer)) {
            from = ranges.removeLast().from();
          }
          ranges.add(new Range(size, from, count, answer));
        });
    return ranges;
  }

  private static Overlap taken(Prediction predicted, int count) {
    return predicted.fastest(count, Optional.empty()).orElseThrow();
  }

  /// Returns the ranges in one line.
  public String headline() {
    return headline(prediction.map(each -> " on " + each.machine()).orElse(""));
  }

  private String headline(String machine) {
    var measured = words(ranges());
    if (prediction.isEmpty()) {
      return measured;
    }
    return "predicted%s: %s%s"
        .formatted(
            machine, words(predictedRanges()), measured.isEmpty() ? "" : "; measured: " + measured);
  }

  private static String words(List<Range> ranges) {
    return ranges.stream().map(Range::toString).collect(Collectors.joining("; "));
  }

  /// Returns one row per size that was measured, and one per size that was predicted; the column
  /// `basis` tells them apart if there are both.
  public Table table() {
    TableTypes.ready();
    var sizes = IntColumn.create(size);
    var basis = StringColumn.create("basis");
    var taken = StringColumn.create("take");
    var time = DoubleColumn.create("median ms");
    var unfused = DoubleColumn.create("unfused, median ms");
    var change = StringColumn.create("time vs unfused");
    var answer = StringColumn.create("answer");
    studies.forEach(
        (count, study) -> {
          boolean counts = study.timesCount();
          var chosen = counts ? Decision.taken(study) : study.fastest();
          var excess = study.excess(chosen, study.reference());
          sizes.append(count);
          basis.append("measured");
          taken.append(chosen.toString());
          time.append(study.medianNanos(chosen) / NANOS_PER_MILLI);
          unfused.append(study.unfusedMedianNanos() / NANOS_PER_MILLI);
          change.append(
              chosen.equals(study.reference())
                  ? "–"
                  : "%s (%s%%)".formatted(Percent.change(excess), Percent.interval(excess)));
          answer.append(answer(study));
        });
    prediction.ifPresent(
        predicted ->
            predicted
                .nanos()
                .keySet()
                .forEach(
                    count -> {
                      var chosen = taken(predicted, count);
                      double excess = predicted.excess(count, chosen);
                      sizes.append(count);
                      basis.append("predicted on " + predicted.machine());
                      taken.append(chosen.toString());
                      time.append(predicted.nanos(count, chosen) / NANOS_PER_MILLI);
                      unfused.append(predicted.nanos(count, Overlap.unfused()) / NANOS_PER_MILLI);
                      change.append(
                          chosen.equals(Overlap.unfused())
                              ? "–"
                              : Percent.change(new Estimate(excess, excess, excess, 0)));
                      answer.append(chosen.method().toString());
                    }));
    var table = Table.create("crossovers", sizes);
    if (prediction.isPresent()) {
      table.addColumns(basis);
    }
    return table.addColumns(taken, time, unfused, change, answer);
  }

  /// Returns time ÷ unfused against the size: a line for each method, with its fastest tuning at
  /// each size, and bands where it is undecided which method is fastest. Predicted lines are dashed
  /// and have hollow marks.
  public JFreeChart chart() {
    var lines = new LinkedHashMap<String, SequencedMap<Integer, Estimate>>();
    var dashed = new LinkedHashMap<String, SequencedMap<Integer, Double>>();
    for (var method : Method.values()) {
      var line = new LinkedHashMap<Integer, Estimate>();
      studies.forEach(
          (count, study) ->
              study.trials().stream()
                  .map(Study.Trial::configuration)
                  .filter(each -> each.method() == method)
                  .reduce(
                      (one, more) -> study.medianNanos(more) < study.medianNanos(one) ? more : one)
                  .ifPresent(each -> line.put(count, study.excess(each, study.reference()))));
      if (!line.isEmpty()) {
        lines.put(method.toString(), line);
      }
      var points = new LinkedHashMap<Integer, Double>();
      if (method != Method.UNFUSED) {
        prediction.ifPresent(
            predicted ->
                predicted
                    .nanos()
                    .keySet()
                    .forEach(
                        count ->
                            predicted
                                .fastest(count, Optional.of(method))
                                .ifPresent(
                                    each -> points.put(count, predicted.excess(count, each)))));
      }
      if (!points.isEmpty()) {
        dashed.put(method.toString(), points);
      }
    }
    // The legend names the machine.
    return CrossoverChart.of(
        headline(""),
        subtitle(),
        size.equals(ROWS) ? "rows (m)" : size,
        lines,
        dashed,
        prediction.map(each -> "predicted on " + each.machine()).orElse(""),
        studies.entrySet().stream()
            .filter(each -> answer(each.getValue()).equals(UNDECIDED))
            .map(Map.Entry::getKey)
            .toList());
  }

  private String subtitle() {
    if (studies.isEmpty()) {
      return prediction.map(Prediction::problem).orElse("");
    }
    var last = studies.lastEntry().getValue();
    return last.setting() + (size.equals(ROWS) ? ", and fewer rows\n" : "\n") + last.basis();
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
