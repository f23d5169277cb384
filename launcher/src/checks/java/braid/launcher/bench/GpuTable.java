package braid.launcher.bench;

import braid.bench.Form;
import braid.bench.Workload;
import braid.evidence.SpeedLimits;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;

/// The tables of `braid bench gpu`: a row per workload, then a row per form. A ratio is the median
/// of the rounds' ratios, in the first table with their range. Times of ranks that share a GPU have
/// one table, without ratios and goals.
final class GpuTable {
  private static final String NOTHING = "–";
  private static final String BRAID = "Braid";
  private static final String UNFUSED = "unfused";

  /// Part of the names of forms that only compute or only communicate.
  private static final String ALONE = " alone";

  private static final String COLLECTIVE_ALONE = "all-gather" + ALONE;
  private static final List<String> WORKLOAD_COLUMNS =
      List.of(
          "workload, ms",
          "compute alone",
          "unfused",
          "fastest",
          "form",
          "÷ compute alone",
          "goal",
          "÷ PyTorch (goal < 1)",
          "PyTorch's fastest",
          "hidden",
          "predicted");
  private static final List<String> FORM_COLUMNS =
      List.of(
          "workload",
          "by",
          "form",
          "ms",
          "from",
          "to",
          "TFLOPS per rank",
          "÷ compute alone",
          "goal",
          "predicted");

  private static final List<String> UNJUDGED_COLUMNS =
      List.of("workload", "form", "ms", "from", "to", "predicted");

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
  static Map<String, Map<String, Double>> predicted(List<Workload> workloads, Machine machine) {
    var all = new LinkedHashMap<String, Map<String, Double>>();
    for (var workload : workloads) {
      var forms = new LinkedHashMap<String, Double>();
      for (Form form : workload.forms()) {
        workload.predicted(form, machine).ifPresent(time -> forms.put(form.name(), time));
      }
      all.put(workload.name(), forms);
    }
    return all;
  }

  /// Returns the errors of times that no machine can reach, each with its name.
  ///
  /// @param machine the columns `backend`, `device` and `link`
  List<String> faults(Map<String, String> machine) {
    var faults = new ArrayList<String>();
    for (var workload : workloads) {
      if (workload.problems().isEmpty()) {
        continue;
      }
      var limits = SpeedLimits.of(workload.name(), workload.problems(), workload.ranks(), machine);
      for (var times : List.of(ours, peers)) {
        times
            .of(workload.name())
            .forEach(
                (form, values) -> {
                  double nanos = 1e6 * median(values);
                  if (!form.contains(ALONE)) {
                    limits.fault(form, nanos).ifPresent(faults::add);
                  } else if (workload.flops(form) > 0) {
                    limits.rateFault(form, nanos).ifPresent(faults::add);
                  }
                });
      }
    }
    return faults;
  }

  /// Returns both tables in Markdown.
  String text() {
    var text = new StringBuilder();
    header(text, WORKLOAD_COLUMNS);
    for (var workload : workloads) {
      row(workload).ifPresent(row -> line(text, row));
    }
    text.append('\n');
    header(text, FORM_COLUMNS);
    for (var workload : workloads) {
      forms(workload, BRAID, ours, text);
      forms(workload, "PyTorch", peers, text);
    }
    return text.toString();
  }

  /// Returns the times of all forms beside their predictions, in Markdown.
  ///
  /// @param caption why no form is judged
  String unjudged(String caption) {
    var text = new StringBuilder(caption).append("\n\n");
    header(text, UNJUDGED_COLUMNS);
    for (var workload : workloads) {
      ours.of(workload.name())
          .forEach(
              (form, values) -> {
                var all = Measure.range(values);
                line(
                    text,
                    List.of(
                        workload.name(),
                        form,
                        number(all.median()),
                        number(all.low()),
                        number(all.high()),
                        prediction(workload, form)));
              });
    }
    return text.toString();
  }

  private void forms(Workload workload, String cause, GpuTimes times, StringBuilder text) {
    var least = least(workload);
    times
        .of(workload.name())
        .forEach(
            (form, values) -> {
              var all = Measure.range(values);
              boolean isOurs = cause.equals(BRAID);
              line(
                  text,
                  List.of(
                      workload.name(),
                      cause,
                      form,
                      number(all.median()),
                      number(all.low()),
                      number(all.high()),
                      teraflops(workload.flops(form), all.median()),
                      form.contains(ALONE)
                          ? NOTHING
                          : least
                              .map(each -> number(ratios(values, each).median()))
                              .orElse(NOTHING),
                      isOurs ? goal(workload.goal(form)) : NOTHING,
                      isOurs ? prediction(workload, form) : NOTHING));
            });
  }

  private static String teraflops(double flops, double milliseconds) {
    double value = flops / milliseconds / 1e9;
    return flops == 0 ? NOTHING : value >= 10 ? "%.0f".formatted(value) : number(value);
  }

  private static String goal(OptionalDouble limit) {
    return limit.isPresent() ? "≤ " + number(limit.getAsDouble()) : NOTHING;
  }

  private String prediction(Workload workload, String form) {
    var value = predicted.getOrDefault(workload.name(), Map.of()).get(form);
    return value == null ? NOTHING : number(value);
  }

  private Optional<List<String>> row(Workload workload) {
    var forms = rivals(ours.of(workload.name()));
    forms.keySet().removeIf(workload::isRival);
    var fastest = fastest(forms);
    if (fastest.isEmpty()) {
      return Optional.empty();
    }
    var best = fastest.get().getValue();
    // The unfused method has one form here: eager or replayed.
    var unfused =
        forms.entrySet().stream()
            .filter(form -> form.getKey().startsWith(UNFUSED))
            .map(Map.Entry::getValue)
            .findFirst();
    var least = least(workload);
    var others = new LinkedHashMap<>(rivals(peers.of(workload.name())));
    ours.of(workload.name())
        .forEach(
            (form, values) -> {
              if (workload.isRival(form)) {
                others.put(form + ", by Braid", values);
              }
            });
    var rival = fastest(others);
    var row = new ArrayList<String>();
    row.add(workload.name());
    row.add(alone(workload).map(values -> number(median(values))).orElse(NOTHING));
    row.add(unfused.map(values -> number(median(values))).orElse(NOTHING));
    row.add(number(median(best)));
    row.add(fastest.get().getKey());
    row.add(least.map(values -> ratio(best, values)).orElse(NOTHING));
    row.add(goal(workload.goal()));
    row.add(rival.map(form -> ratio(best, form.getValue())).orElse(NOTHING));
    row.add(rival.map(Map.Entry::getKey).orElse(NOTHING));
    row.add(unfused.flatMap(all -> least.map(values -> hidden(all, best, values))).orElse(NOTHING));
    row.add(prediction(workload, fastest.get().getKey()));
    return Optional.of(row);
  }

  /// Returns the forms that solve the whole problem.
  private static Map<String, List<Double>> rivals(Map<String, List<Double>> forms) {
    var rivals = new LinkedHashMap<>(forms);
    rivals.keySet().removeIf(form -> form.contains(ALONE));
    return rivals;
  }

  /// Returns the times of the computation, by Braid if it has timed it, else by PyTorch.
  private Optional<List<Double>> alone(Workload workload) {
    return Optional.ofNullable(ours.of(workload.name()).get(workload.alone()))
        .or(() -> Optional.ofNullable(peers.of(workload.name()).get(workload.alone())));
  }

  /// Returns the least possible times: those of the computation, or of a collective beside it if
  /// that takes longer.
  private Optional<List<Double>> least(Workload workload) {
    var alone = alone(workload);
    return peers.of(workload.name()).entrySet().stream()
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

  /// Returns the share of the communication's time that the fastest form hides: all of it if it is
  /// faster than the computation alone.
  private static String hidden(List<Double> unfused, List<Double> best, List<Double> least) {
    double all = median(unfused) - median(least);
    return all <= 0
        ? NOTHING
        : "%.0f%%".formatted(100 * Math.min(1, (median(unfused) - median(best)) / all));
  }

  private static String ratio(List<Double> some, List<Double> others) {
    var all = ratios(some, others);
    return "%s (%s–%s)".formatted(number(all.median()), number(all.low()), number(all.high()));
  }

  private static Measure ratios(List<Double> some, List<Double> others) {
    var ratios = new ArrayList<Double>();
    for (int i = 0; i < Math.min(some.size(), others.size()); i++) {
      ratios.add(some.get(i) / others.get(i));
    }
    return Measure.range(ratios);
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, value >= 1 ? "%.2f" : "%.3f", value);
  }

  private static void header(StringBuilder text, List<String> columns) {
    line(text, columns);
    text.append("|---".repeat(columns.size())).append("|\n");
  }

  private static void line(StringBuilder text, List<String> words) {
    text.append("| ").append(String.join(" | ", words)).append(" |\n");
  }
}
