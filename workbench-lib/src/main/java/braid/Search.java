package braid;

import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.report.progress.ProgressBar;
import braid.internal.report.statistics.Spread;
import braid.model.BackendKind;
import braid.model.Link;
import braid.model.Problem;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Search for the fastest of many tunings: a simulation of this machine predicts all of them, and
/// few are measured.
///
/// The most promising tuning of each kind is measured first; tunings of one kind differ only in
/// numbers, such as splits. Simulations err alike for tunings of one kind, so each measurement
/// corrects the predictions of its kind. Then the most promising tunings are measured, a batch at a
/// time. The search ends if each tuning that is left is predicted slower than the fastest by more
/// than predictions have erred so far, if a third of all are measured, or if half of the budget is
/// spent, but not before the first of each kind. The finalists, the fastest and all that may be as
/// fast, are left to a study.
///
/// Every rank searches alike: it has rank 0's predictions and clock, and the times of the slowest
/// rank.
final class Search {
  /// Share of all tunings that a search measures at most.
  static final double MOST_MEASURED = 1.0 / 3;

  /// Tunings of a batch: their pipelines exist at once.
  static final int BATCH = 6;

  /// So few tunings are all left to the study.
  static final int FEW = 8;

  static final int MOST_FINALISTS = 6;

  /// Least share by which a finalist may be slower than the fastest tuning in the search's few
  /// rounds.
  static final double LEAST_MARGIN = 0.05;

  /// Least error of predictions.
  static final double LEAST_ERROR = 0.03;

  private static final int ROOT = 0;

  /// Settings that do not distinguish kinds.
  private static final List<String> NUMBERS = List.of("splits", "streams", "workers");

  private final ProcessGroup group;
  private final List<Tuning> all;

  /// Predicted time of each tuning ÷ the reference's; empty if the simulation knows no time.
  private final Map<Tuning, Double> predicted;

  private final String machine;

  /// Measured time of each tuning ÷ the reference's.
  private final SequencedMap<Tuning, Double> measured = new LinkedHashMap<>();

  private double noise;

  /// Predicts all tunings.
  ///
  /// @param described machine of the predictions; by default this host, or the built-in machine
  ///   that is nearest to these GPUs
  Search(ProcessGroup group, Problem problem, List<Tuning> all, Optional<Machine> described) {
    this.group = group;
    this.all = all;
    var rows = new ArrayList<String>();
    if (group.rank() == ROOT && all.size() > FEW) {
      try (var progress =
          new ProgressBar(
                  "predicting",
                  all.size(),
                  "describing this machine",
                  RankContext.current().outbox())
              .ticking()) {
        var simulated = described.orElseGet(this::thisMachine);
        rows.add(simulated.title());
        double reference = nanos(problem, Tuning.unfused(problem), simulated);
        for (var tuning : all) {
          progress.step(tuning.toString());
          rows.add(Double.toString(nanos(problem, tuning, simulated) / reference));
        }
        progress.finish("done");
      }
    }
    var shared = group.broadcast(String.join("\n", rows), ROOT).lines().toList();
    machine = shared.isEmpty() ? "" : shared.getFirst();
    predicted = new LinkedHashMap<>();
    for (int i = 1; i < shared.size(); i++) {
      double ratio = Double.parseDouble(shared.get(i));
      if (ratio > 0 && ratio < Double.POSITIVE_INFINITY) {
        predicted.put(all.get(i - 1), ratio);
      }
    }
  }

  private Machine thisMachine() {
    var backend = group.context().backend();
    return backend.kind() == BackendKind.HOST
        ? Machine.ofThisHost(group.context().env().local().size())
            .withLink(Link.parse(backend.link()))
        : Machine.nearest(backend.deviceName(), group.context().env().local().size());
  }

  private double nanos(Problem problem, Tuning tuning, Machine simulated) {
    return Chain.predictedNanos(Schedule.of(problem, tuning, group.size()), simulated);
  }

  /// Returns the tunings that a study must tell apart, in the order of the grid.
  ///
  /// @param measure measures tunings beside the reference, in few rounds
  /// @param budget half of it is for the search
  /// @param notes receives a line on what was measured
  List<Tuning> finalists(
      Function<Collection<Tuning>, Study<?>> measure, Duration budget, List<String> notes) {
    if (all.size() <= FEW) {
      return all;
    }
    long startNanos = System.nanoTime();
    int most = predicted.isEmpty() ? all.size() : (int) Math.floor(all.size() * MOST_MEASURED);
    var next = firsts(most);
    while (!next.isEmpty()) {
      for (int start = 0; start < next.size(); start += BATCH) {
        add(measure.apply(next.subList(start, Math.min(next.size(), start + BATCH))));
      }
      long spent = group.broadcast(System.nanoTime() - startNanos, ROOT);
      next = spent > budget.toNanos() / 2 ? List.of() : promising(most);
    }
    notes.add(note());
    double slowest = fastest() * (1 + Math.max(LEAST_MARGIN, 2 * noise));
    var finalists =
        measured.entrySet().stream()
            .filter(each -> each.getValue() <= slowest)
            .sorted(Map.Entry.comparingByValue())
            .limit(MOST_FINALISTS)
            .map(Map.Entry::getKey)
            .collect(Collectors.toSet());
    return all.stream().filter(finalists::contains).toList();
  }

  private void add(Study<?> study) {
    double reference = study.unfusedMedianNanos();
    for (var trial : study.trials()) {
      if (trial.configuration() instanceof Tuning tuning) {
        measured.put(tuning, trial.medianNanos() / reference);
      }
    }
    noise = Math.max(noise, study.noise());
  }

  private double fastest() {
    return measured.values().stream().min(Comparator.naturalOrder()).orElseThrow();
  }

  /// Returns the most promising tuning of each kind.
  private List<Tuning> firsts(int most) {
    var firsts = new LinkedHashMap<SequencedMap<String, String>, Tuning>();
    for (var tuning : all) {
      firsts.merge(
          kind(tuning), tuning, (one, more) -> predicted(more) < predicted(one) ? more : one);
    }
    return firsts.values().stream()
        .sorted(Comparator.comparingDouble(this::predicted))
        .limit(most)
        .toList();
  }

  private double predicted(Tuning tuning) {
    return predicted.getOrDefault(tuning, 1.0);
  }

  private static SequencedMap<String, String> kind(Tuning tuning) {
    var kind = new LinkedHashMap<>(tuning.columns());
    kind.keySet().removeAll(NUMBERS);
    return kind;
  }

  /// Returns the next batch: tunings that may be faster than the fastest.
  private List<Tuning> promising(int most) {
    double fastest = fastest();
    double error = error();
    return all.stream()
        .filter(tuning -> !measured.containsKey(tuning))
        .filter(tuning -> predicted.isEmpty() || expected(tuning) < fastest * (1 + error))
        .sorted(Comparator.comparingDouble(this::expected))
        .limit(Math.max(0, Math.min(BATCH, most - measured.size())))
        .toList();
  }

  /// Returns the prediction, corrected by the other measurements of its kind, or by all if there
  /// are none.
  private double expected(Tuning tuning) {
    var kind = kind(tuning);
    double ofKind = correction(tuning, kind);
    return predicted(tuning) * (ofKind > 0 ? ofKind : correction(tuning, null));
  }

  /// Returns the median of measured ÷ predicted times of a kind; 0 if there are none.
  private double correction(Tuning tuning, @Nullable SequencedMap<String, String> kind) {
    return median(
        measured.entrySet().stream()
            .filter(each -> !each.getKey().equals(tuning))
            .filter(each -> kind == null || kind(each.getKey()).equals(kind))
            .mapToDouble(each -> each.getValue() / predicted(each.getKey()))
            .toArray(),
        0.5);
  }

  /// Returns the share by which nine of ten predictions erred at most, each corrected by the other
  /// measurements.
  private double error() {
    var errors =
        measured.entrySet().stream()
            .mapToDouble(each -> Math.abs(Math.log(each.getValue() / expected(each.getKey()))))
            .filter(Double::isFinite)
            .toArray();
    return Math.max(LEAST_ERROR, Math.expm1(median(errors, 0.9)));
  }

  private static double median(double[] values, double share) {
    return values.length == 0 ? 0 : Spread.quantile(values, share);
  }

  private String note() {
    return predicted.isEmpty()
        ? "searched %d configurations: all were measured, since nothing predicts them"
            .formatted(all.size())
        : String.format(
            Locale.ROOT,
            "searched %d configurations: predicted on %s, measured %d; corrected by their times, 9 of 10 predictions are off by %.0f%% or less",
            all.size(),
            machine,
            measured.size(),
            100 * error());
  }
}
