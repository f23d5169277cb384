package braid.launcher.bench;

import braid.bench.MethodTimes;
import braid.bench.Workload;
import braid.launcher.bench.report.Measure;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/// The tables of `braid bench gpu`: a row per workload, then a row per form. A ratio is the median
/// of the rounds' ratios, with their range; a round times both within a minute.
final class GpuTable {
  private static final String NOTHING = "–";
  private static final String GEMM_ALONE = "GEMM alone";
  private static final String COLLECTIVE_ALONE = "all-gather alone";

  private final List<Workload> workloads;
  private final GpuTimes ours;
  private final GpuTimes peers;
  private final Map<String, Map<String, Double>> predicted;

  GpuTable(
      List<Workload> workloads,
      GpuTimes ours,
      GpuTimes peers,
      Map<String, Map<String, Double>> predicted) {
    this.workloads = workloads;
    this.ours = ours;
    this.peers = peers;
    this.predicted = predicted;
  }

  /// Predicts the milliseconds of all forms on a machine.
  static Map<String, Map<String, Double>> predicted(
      List<Workload> workloads, int ranks, Machine machine) {
    var all = new LinkedHashMap<String, Map<String, Double>>();
    for (var workload : workloads) {
      var forms = new LinkedHashMap<String, Double>();
      for (var form : MethodTimes.forms(workload)) {
        if (isPossible(workload, form)) {
          var run = Schedule.of(workload.spec(), form, ranks).simulate(machine, 3);
          forms.put(form.toString(), run.summary().medianNanos() / 1e6);
        }
      }
      all.put(workload.name(), forms);
    }
    return all;
  }

  private static boolean isPossible(Workload workload, Overlap form) {
    return form.splits() == 1 || workload.spec().m() / form.splits() > 0;
  }

  /// Returns both tables in Markdown.
  String text(boolean withGoals) {
    var text = new StringBuilder();
    line(
        text,
        List.of(
            "workload, ms",
            GEMM_ALONE,
            "unfused",
            "fastest",
            "form",
            "÷ GEMM alone",
            "goal",
            "÷ PyTorch",
            "PyTorch's fastest",
            "hidden",
            "predicted"));
    text.append("|---".repeat(11)).append("|\n");
    for (var workload : workloads) {
      row(workload, withGoals).ifPresent(row -> line(text, row));
    }
    text.append('\n');
    line(text, List.of("workload", "by", "form", "ms", "from", "to", "predicted"));
    text.append("|---".repeat(7)).append("|\n");
    for (var workload : workloads) {
      forms(workload, "Braid", ours, text);
      forms(workload, "PyTorch", peers, text);
    }
    return text.toString();
  }

  private void forms(Workload workload, String by, GpuTimes times, StringBuilder text) {
    times
        .of(workload.name())
        .forEach(
            (form, values) -> {
              var all = Measure.range(values);
              line(
                  text,
                  List.of(
                      workload.name(),
                      by,
                      form,
                      number(all.median()),
                      number(all.low()),
                      number(all.high()),
                      by.equals("Braid") ? prediction(workload, form) : NOTHING));
            });
  }

  private String prediction(Workload workload, String form) {
    var value = predicted.getOrDefault(workload.name(), Map.of()).get(form);
    return value == null ? NOTHING : number(value);
  }

  private Optional<List<String>> row(Workload workload, boolean withGoals) {
    var forms = ours.of(workload.name());
    var fastest = fastest(forms);
    if (fastest.isEmpty()) {
      return Optional.empty();
    }
    var best = fastest.get().getValue();
    // The unfused method has one form here: eager or replayed.
    var unfused =
        forms.entrySet().stream()
            .filter(form -> form.getKey().startsWith(Method.UNFUSED.toString()))
            .map(Map.Entry::getValue)
            .findFirst()
            .orElse(best);
    var other = peers.of(workload.name());
    var alone = Optional.ofNullable(other.get(GEMM_ALONE));
    // Beside a collective, the larger of both is the least possible time.
    var least = workload.spec().pattern().beside() ? larger(alone, other) : alone;
    var rivals = new LinkedHashMap<>(other);
    rivals.keySet().removeIf(form -> form.contains(" alone"));
    var rival = fastest(rivals);
    var row = new ArrayList<String>();
    row.add(workload.name());
    row.add(alone.map(values -> number(Measure.range(values).median())).orElse(NOTHING));
    row.add(number(Measure.range(unfused).median()));
    row.add(number(Measure.range(best).median()));
    row.add(fastest.get().getKey());
    row.add(least.map(values -> ratio(best, values)).orElse(NOTHING));
    row.add(
        withGoals && workload.goal().isPresent()
            ? "≤ " + number(workload.goal().getAsDouble())
            : NOTHING);
    row.add(rival.map(form -> ratio(best, form.getValue())).orElse(NOTHING));
    row.add(rival.map(Map.Entry::getKey).orElse(NOTHING));
    row.add(least.map(values -> hidden(unfused, best, values)).orElse(NOTHING));
    row.add(prediction(workload, fastest.get().getKey()));
    return Optional.of(row);
  }

  private static Optional<List<Double>> larger(
      Optional<List<Double>> alone, Map<String, List<Double>> forms) {
    return forms.entrySet().stream()
        .filter(form -> form.getKey().startsWith(COLLECTIVE_ALONE))
        .map(Map.Entry::getValue)
        .min(Comparator.comparingDouble(GpuTable::median))
        .flatMap(
            collective -> alone.map(gemm -> median(gemm) >= median(collective) ? gemm : collective))
        .or(() -> alone);
  }

  private static Optional<Map.Entry<String, List<Double>>> fastest(
      Map<String, List<Double>> forms) {
    return forms.entrySet().stream()
        .min(Comparator.comparingDouble(form -> median(form.getValue())));
  }

  private static double median(List<Double> values) {
    return Measure.range(values).median();
  }

  /// Returns the share of the communication's time that the fastest form hides: all of it if its
  /// own GEMM is faster than PyTorch's.
  private static String hidden(List<Double> unfused, List<Double> best, List<Double> least) {
    double all = median(unfused) - median(least);
    return all <= 0
        ? NOTHING
        : "%.0f%%".formatted(100 * Math.min(1, (median(unfused) - median(best)) / all));
  }

  private static String ratio(List<Double> some, List<Double> others) {
    var ratios = new ArrayList<Double>();
    for (int i = 0; i < Math.min(some.size(), others.size()); i++) {
      ratios.add(some.get(i) / others.get(i));
    }
    var all = Measure.range(ratios);
    return "%s (%s–%s)".formatted(number(all.median()), number(all.low()), number(all.high()));
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, value >= 1 ? "%.2f" : "%.3f", value);
  }

  private static void line(StringBuilder text, List<String> words) {
    text.append("| ").append(String.join(" | ", words)).append(" |\n");
  }
}
