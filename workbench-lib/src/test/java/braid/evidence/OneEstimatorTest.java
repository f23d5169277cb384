package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.GemmSpec;
import braid.model.Overlap;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jfree.chart.axis.SymbolAxis;
import org.junit.jupiter.api.Test;

/// One estimator per label: the difference that a study shows never contradicts the two medians
/// beside it, wherever both are printed and however disturbed the rounds were.
class OneEstimatorTest {
  private static final int STUDIES = 300;
  private static final String OUTSIDE_QUOTES = ",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)";

  /// Returns a study of 6 to 19 rounds on a disturbed machine, of configurations that differ by up
  /// to 10%.
  static Study<Overlap> study(long seed) {
    var random = new Random(seed);
    int configurations = 1 + random.nextInt(6);
    int rounds = 6 + random.nextInt(14);
    var machine =
        SimulatedMachine.shared(0.01 + 0.2 * random.nextDouble(), configurations + 2, seed);
    var quiet = new double[configurations + 2];
    Arrays.setAll(quiet, i -> i < 2 ? 80e6 : 80e6 * (0.9 + 0.2 * random.nextDouble()));
    var times = Stream.generate(ArrayList<Long>::new).limit(quiet.length).toList();
    for (int round = 0; round < rounds; round++) {
      for (int i = 0; i < quiet.length; i++) {
        times.get(i).add(machine.nanos(quiet[i]));
      }
    }
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (int i = 0; i < configurations; i++) {
      trials.add(new Study.Trial<>(Overlap.pipelined(i + 1), times.get(i + 2)));
    }
    return new Study<>(
        GemmSpec.allGatherGemm(3840, 2304, 640).columns(),
        4,
        seed,
        times.get(0),
        times.get(1),
        trials,
        Overlap.unfused());
  }

  private static String csv(Study<Overlap> study) {
    var csv = new StringWriter();
    study.table().write().csv(csv);
    return csv.toString();
  }

  /// Fails if a printed difference, with its sign, contradicts the printed times.
  private static void check(String place, String median, String reference, String change) {
    double beside = Math.signum(nanos(median) - nanos(reference));
    double shown = Math.signum(Double.parseDouble(change.replace('−', '-')));
    assertThat(beside * shown >= 0)
        .as("%s: %s beside %s reads %s%%", place, median, reference, change)
        .isTrue();
  }

  private static double nanos(String time) {
    var parts = time.split(" ", -1);
    return Double.parseDouble(parts[0])
        * switch (parts[1]) {
          case "µs" -> 1e3;
          case "ms" -> 1e6;
          default -> throw new AssertionError(time);
        };
  }

  @Test
  void differencesHaveTheSignOfTheirMedians() {
    for (long seed = 0; seed < STUDIES; seed++) {
      var study = study(seed);
      var unfused = study.unfusedMedianNanos();
      var lines = csv(study).lines().map(line -> List.of(line.split(OUTSIDE_QUOTES, -1))).toList();
      int median = lines.getFirst().indexOf("median ms");
      int change = lines.getFirst().indexOf("vs unfused %");
      for (int i = 0; i < study.trials().size(); i++) {
        var tuning = study.trials().get(i).configuration();
        double quotient = study.medianNanos(tuning) / unfused - 1;
        var place = "seed %d, row %d".formatted(seed, i + 1);
        assertThat(-study.saved().get(i).value()).as(place).isEqualTo(quotient);
        assertThat(study.excess(tuning, study.reference()).value()).as(place).isEqualTo(quotient);
        check(
            place,
            lines.get(i + 2).get(median) + " ms",
            lines.get(1).get(median) + " ms",
            lines.get(i + 2).get(change));
      }
    }
  }

  @Test
  void printedDifferencesNeverContradictPrintedMedians() {
    var inTable = Pattern.compile("(?m)^(\\S.*?) {2,}\\S.*? {2,}([\\d.]+) +([−+\\d.]+)% \\(");
    var inChart = Pattern.compile("([\\d.]+ ms)  ([−+\\d.]+)% \\(");
    var inHeadline = Pattern.compile(": ([\\d.]+ ms), ([\\d.]+)% less than unfused's ([\\d.]+ ms)");
    int headlines = 0;
    for (long seed = 0; seed < STUDIES / 5; seed++) {
      var study = study(seed);
      var text = study.display().text();
      var reference = Pattern.compile("(?m)^unfused +reference.*? {2,}([\\d.]+) ").matcher(text);
      assertThat(reference.find()).as(text).isTrue();
      int rows = 0;
      for (var row = inTable.matcher(text); row.find(); rows++) {
        check(
            "seed %d, table".formatted(seed),
            row.group(2) + " ms",
            reference.group(1) + " ms",
            row.group(3));
      }
      assertThat(rows).as(text).isEqualTo(study.trials().size());
      var plot = study.configurations().getXYPlot();
      var unfused = plot.getLegendItems().get(0).getLabel().substring("unfused ".length());
      for (var label : ((SymbolAxis) plot.getRangeAxis(1)).getSymbols()) {
        var words = inChart.matcher(label);
        assertThat(words.find()).as(label).isTrue();
        check("seed %d, chart".formatted(seed), words.group(1), unfused, words.group(2));
      }
      var headline = inHeadline.matcher(study.headline());
      if (headline.find()) {
        check(
            "seed %d, headline".formatted(seed),
            headline.group(1),
            headline.group(3),
            "-" + headline.group(2));
        headlines++;
      }
    }
    assertThat(headlines).isPositive();
  }
}
