package braid.launcher.cli.experiment;

import braid.evidence.Comparison;
import braid.evidence.Comparison.Row;
import braid.evidence.Comparison.Verdict;
import braid.model.Estimate;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A comparison as a table for spreadsheets: the same columns for every comparison, times in
/// milliseconds, differences in percent.
final class CompareCsv {
  private static final double NANOS_PER_MILLI = 1e6;
  private static final List<String> HEADER =
      Stream.of(
              List.of("study", "configuration", "verdict", "first ms", "second ms"),
              List.of("difference %", "from %", "to %"),
              Comparison.BESIDE_COLUMNS,
              List.of("more rounds", "more starts"))
          .flatMap(List::stream)
          .toList();

  private CompareCsv() {}

  static String of(List<Comparison> comparisons) {
    var lines = new ArrayList<>(List.of(HEADER));
    for (var comparison : comparisons) {
      comparison.rows().forEach(row -> lines.add(cells(comparison, row)));
    }
    return lines.stream().map(CompareCsv::line).collect(Collectors.joining());
  }

  private static List<String> cells(Comparison comparison, Row row) {
    var difference =
        row.verdict() == Verdict.NOT_COMPARED
            ? Optional.<Estimate>empty()
            : Optional.of(row.difference());
    var beside = difference.isEmpty() ? difference : row.beside();
    return List.of(
        comparison.setting(),
        row.configuration(),
        row.verdict().toString(),
        Double.toString(row.firstNanos() / NANOS_PER_MILLI),
        Double.toString(row.secondNanos() / NANOS_PER_MILLI),
        percent(difference, Estimate::value),
        percent(difference, Estimate::low),
        percent(difference, Estimate::high),
        percent(beside, Estimate::value),
        percent(beside, Estimate::low),
        percent(beside, Estimate::high),
        more("rounds", comparison, row),
        more("starts", comparison, row));
  }

  private static String more(String values, Comparison comparison, Row row) {
    return row.moreRounds().isPresent() && comparison.values().equals(values)
        ? Integer.toString(row.moreRounds().getAsInt())
        : "";
  }

  private static String percent(Optional<Estimate> estimate, ToDoubleFunction<Estimate> part) {
    return estimate.map(each -> Double.toString(100 * part.applyAsDouble(each))).orElse("");
  }

  private static String line(List<String> cells) {
    return cells.stream()
            .map(cell -> "\"" + cell.replace("\"", "\"\"") + "\"")
            .collect(Collectors.joining(","))
        + "\n";
  }
}
