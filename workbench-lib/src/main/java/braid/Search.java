package braid;

import braid.SearchSamples.Batch;
import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.report.progress.ProgressBar;
import braid.internal.report.statistics.PairedSamples;
import braid.model.BackendKind;
import braid.model.Configuration;
import braid.model.Estimate;
import braid.model.Link;
import braid.model.Problem;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Search for the fastest of many tunings: a simulation of this machine predicts all of them, few
/// are measured, and those that may be the fastest race each other.
///
/// The most promising tuning of each kind is measured first; tunings of one kind differ only in
/// numbers, such as splits. Each measurement corrects the predictions of all that are alike
/// ([CorrectedTimes]). Then the most promising tunings are measured, a batch at a time, until every
/// other one is surely slower than the fastest by its prediction, a third of all are measured, or
/// most of the search's time is spent. What was measured in few rounds is not known well: so the
/// contenders, the fastest and all that are not surely slower, are measured in more and more rounds
/// together, and drop out one by one. All samples of a tuning count, from whatever batch. The
/// finalists are left to a study. Its verdict is of new rounds only: the finalists were chosen
/// because they were fast in the old ones, also by luck.
///
/// The next batch follows from the batches so far, with the time that each took, and nothing else.
/// So every rank searches alike, by rank 0's predictions and clock and the times of the slowest
/// rank, and a search that is resumed with the batches of an interrupted one goes on where that one
/// was.
///
/// A batch is only as large as the budget allows, by the time that the reference takes. If even the
/// smallest would take longer, predictions alone choose the finalists.
final class Search {
  /// Share of all tunings that a search measures at most.
  static final double MOST_MEASURED = 1.0 / 3;

  /// Share of the budget that is for the search, and the share for tunings that are new.
  private static final double SEARCHING = 0.5;

  private static final double EXPLORING = 0.3;

  /// New tunings of a batch. The pipelines of a batch exist at once.
  private static final int BATCH = 6;

  /// Contenders of a batch, beside the fastest.
  private static final int RACING = 9;

  /// So few tunings are all left to the study.
  static final int MOST_FINALISTS = 8;

  private static final int EXPLORING_ROUNDS = Tuner.MIN_REPEATS;

  private static final int RACING_ROUNDS = 12;

  /// Rounds that tell contenders apart, or nothing does.
  private static final int MOST_ROUNDS = 72;

  /// Confidence of the interval beyond which a tuning is surely slower. The fastest must survive
  /// the comparison with each other tuning.
  private static final double SURELY = 0.998;

  /// Fewest rounds of such an interval. With fewer, the whole ranges must not overlap.
  private static final int LEAST_ROUNDS = 10;

  /// Share by which two pipelines of one tuning may differ, by the place of their memory and
  /// threads. Rounds of one batch do not show it, since the batch builds each tuning once.
  private static final double BUILD_MARGIN = 0.07;

  /// Standard deviations of a corrected prediction within which a tuning may be the fastest.
  private static final double DEVIATIONS = 2;

  private static final int ROOT = 0;

  /// Settings that do not distinguish kinds.
  private static final List<String> NUMBERS = List.of("splits", "streams", "workers");

  private final ProcessGroup group;
  private final List<Tuning> all;
  private final Predictions predictions;
  private final long budgetNanos;

  /// Time of one measurement of the reference, on the slowest rank.
  private final long onceNanos;

  private final List<Batch> batches = new ArrayList<>();

  /// Predicted times.
  ///
  /// @param machine title of the described machine
  /// @param ratios predicted time of each tuning ÷ the reference's; without those of which the
  ///   simulation knows no time
  record Predictions(String machine, Map<Tuning, Double> ratios) {
    double ratio(Tuning tuning) {
      return ratios.getOrDefault(tuning, 1.0);
    }
  }

  /// Measures tunings beside the reference.
  @FunctionalInterface
  interface Measuring {
    Study<?> measure(List<Tuning> tunings, int rounds);
  }

  /// Tunings to measure together, in so many rounds.
  private record Next(List<Tuning> tunings, int rounds) {
    static final Next NONE = new Next(List.of(), 0);
  }

  /// @param all tunings, more than [#MOST_FINALISTS]
  /// @param once time of one measurement of the reference, the same on all ranks
  Search(
      ProcessGroup group,
      List<Tuning> all,
      Predictions predictions,
      Duration budget,
      Duration once) {
    this.group = group;
    this.all = all;
    this.predictions = predictions;
    budgetNanos = budget.toNanos();
    onceNanos = Math.max(1, once.toNanos());
  }

  /// Predicts all tunings, on rank 0.
  ///
  /// @param described machine of the predictions; by default this host, or the built-in machine
  ///   that is nearest to these GPUs
  static Predictions predictions(
      ProcessGroup group, Problem problem, List<Tuning> all, Optional<Machine> described) {
    var rows = new ArrayList<String>();
    if (group.rank() == ROOT) {
      try (var progress =
          new ProgressBar(
                  "predicting",
                  all.size(),
                  "describing this machine",
                  RankContext.current().outbox())
              .ticking()) {
        var simulated = described.orElseGet(() -> thisMachine(group));
        rows.add(simulated.title());
        double reference = nanos(problem, Tuning.unfused(problem), group.size(), simulated);
        for (var tuning : all) {
          progress.step(tuning.toString());
          rows.add(Double.toString(nanos(problem, tuning, group.size(), simulated) / reference));
        }
        progress.finish("done");
      }
    }
    var shared = group.broadcast(String.join("\n", rows), ROOT).lines().toList();
    var ratios = new LinkedHashMap<Tuning, Double>();
    for (int i = 1; i < shared.size(); i++) {
      double ratio = Double.parseDouble(shared.get(i));
      if (ratio > 0 && ratio < Double.POSITIVE_INFINITY) {
        ratios.put(all.get(i - 1), ratio);
      }
    }
    return new Predictions(shared.getFirst(), ratios);
  }

  /// Returns this host as measured, or the built-in machine that is nearest to these GPUs.
  static Machine thisMachine(ProcessGroup group) {
    var backend = group.context().backend();
    return backend.kind() == BackendKind.HOST
        ? Machine.ofThisHost(group.context().env().local().size())
            .withLink(Link.parse(backend.link()))
        : Machine.nearest(backend.deviceName(), group.context().env().local().size());
  }

  /// Returns the predicted time of an iteration; 0 if it cannot be simulated.
  static double nanos(Problem problem, Tuning tuning, int ranks, Machine simulated) {
    return Chain.predictedNanos(Schedule.of(problem, tuning, ranks), simulated);
  }

  /// Returns the tunings that a study must tell apart, in the order of the grid.
  ///
  /// @param samples samples of an earlier search, which this one goes on with, and where it keeps
  ///   its own
  /// @param notes receives a line on what was measured
  List<Tuning> finalists(Measuring measuring, SearchSamples samples, List<String> notes) {
    batches.addAll(samples.read());
    for (var next = next(); !next.tunings.isEmpty(); next = next()) {
      long startNanos = System.nanoTime();
      var study = measuring.measure(next.tunings, next.rounds);
      long spent = group.broadcast(System.nanoTime() - startNanos, ROOT);
      batches.add(new Batch(Clock.systemUTC().instant(), spent, study));
      samples.keep(batches);
    }
    var measured = measured();
    notes.add(note(measured));
    int most = Math.max(1, affordable((double) budgetNanos, Tuner.DEFAULT_REPEATS, MOST_FINALISTS));
    if (most < MOST_FINALISTS) {
      notes.add(
          String.format(
              Locale.ROOT,
              "one measurement takes %.2g s, so a budget of %.3g s compares %d of the tunings; take a larger budget or a smaller problem to compare more",
              onceNanos / 1e9,
              budgetNanos / 1e9,
              most));
    }
    var ordered = measured.isEmpty() ? predicted() : contenders(measured);
    var finalists = ordered.stream().limit(most).toList();
    return all.stream().filter(finalists::contains).toList();
  }

  /// Returns how many tunings beside the reference, which is measured twice, some time is enough
  /// for.
  private int affordable(double nanos, int rounds, int most) {
    return (int) Math.clamp(nanos / (rounds * (double) onceNanos) - 2, 0, most);
  }

  /// Returns all tunings, those with the shortest predictions first.
  private List<Tuning> predicted() {
    return all.stream().sorted(Comparator.comparingDouble(predictions::ratio)).toList();
  }

  /// Returns the next tunings to measure: new ones, or contenders; none at the end.
  private Next next() {
    var measured = measured();
    int most = most();
    double spent = batches.stream().mapToLong(Batch::spentNanos).sum();
    int size = affordable(budgetNanos - spent, EXPLORING_ROUNDS, BATCH);
    var firsts = firsts(most).stream().filter(each -> !measured.containsKey(each)).toList();
    if (!firsts.isEmpty()) {
      return new Next(firsts.subList(0, Math.min(size, firsts.size())), EXPLORING_ROUNDS);
    }
    if (spent < EXPLORING * budgetNanos) {
      var promising = promising(measured, Math.min(most, measured.size() + size));
      if (!promising.isEmpty()) {
        return new Next(promising, EXPLORING_ROUNDS);
      }
    }
    var racing = measured.isEmpty() ? List.<Tuning>of() : racing(measured);
    double left = SEARCHING * budgetNanos - spent;
    return affordable(left, RACING_ROUNDS, racing.size()) < racing.size()
        ? Next.NONE
        : new Next(racing, RACING_ROUNDS);
  }

  /// Returns the number of tunings to measure at most.
  private int most() {
    return predictions.ratios().isEmpty()
        ? all.size()
        : (int) Math.floor(all.size() * MOST_MEASURED);
  }

  /// Returns the share by which each measured tuning takes longer than the reference.
  private SequencedMap<Tuning, Estimate> measured() {
    var measured = new LinkedHashMap<Tuning, Estimate>();
    for (var batch : batches) {
      for (var trial : batch.study().trials()) {
        if (trial.configuration() instanceof Tuning tuning) {
          measured.computeIfAbsent(tuning, each -> excess(each, batch.study().reference()));
        }
      }
    }
    return measured;
  }

  /// Returns the share by which a configuration takes longer than another, by all rounds that had
  /// both.
  private Estimate excess(Configuration configuration, Configuration base) {
    return PairedSamples.excess(times(base, configuration), times(configuration, base), SURELY);
  }

  /// Returns the times of a configuration in all rounds that had another one, too.
  private double[] times(Configuration configuration, Configuration partner) {
    return batches.stream()
        .map(Batch::study)
        .filter(study -> nanos(study, partner).length > 0)
        .flatMapToDouble(study -> Arrays.stream(nanos(study, configuration)))
        .toArray();
  }

  /// Returns the times of a configuration in a study, of the reference the means of both times of a
  /// round; none if the study does not have it.
  private static double[] nanos(Study<?> study, Configuration configuration) {
    if (configuration.equals(study.reference())) {
      return IntStream.range(0, study.repeats())
          .mapToDouble(
              round ->
                  Math.sqrt(
                      (double) study.unfusedFirst().get(round) * study.unfusedAgain().get(round)))
          .toArray();
    }
    return study.trials().stream()
        .filter(trial -> trial.configuration().equals(configuration))
        .flatMapToDouble(trial -> trial.nanos().stream().mapToDouble(Long::doubleValue))
        .toArray();
  }

  /// Returns the most promising tuning of each kind.
  private List<Tuning> firsts(int most) {
    var firsts = new LinkedHashMap<SequencedMap<String, String>, Tuning>();
    for (var tuning : all) {
      firsts.merge(
          kind(tuning),
          tuning,
          (one, more) -> predictions.ratio(more) < predictions.ratio(one) ? more : one);
    }
    return firsts.values().stream()
        .sorted(Comparator.comparingDouble(predictions::ratio))
        .limit(most)
        .toList();
  }

  private static SequencedMap<String, String> kind(Tuning tuning) {
    var kind = new LinkedHashMap<>(tuning.columns());
    kind.keySet().removeAll(NUMBERS);
    return kind;
  }

  /// Returns new tunings that may be faster than the fastest, the most promising first.
  private List<Tuning> promising(SequencedMap<Tuning, Estimate> measured, int most) {
    var corrected = corrected(measured);
    double fastest = Math.log1p(fastest(measured).getValue().value());
    var limits = new LinkedHashMap<Tuning, Double>();
    for (var tuning : all) {
      if (!measured.containsKey(tuning)) {
        var expected = corrected.expected(tuning);
        if (predictions.ratios().isEmpty()
            || expected.log() - DEVIATIONS * expected.deviation() < fastest) {
          limits.put(tuning, expected.log() - expected.deviation());
        }
      }
    }
    return limits.entrySet().stream()
        .sorted(Map.Entry.comparingByValue())
        .limit(Math.max(0, Math.min(BATCH, most - measured.size())))
        .map(Map.Entry::getKey)
        .toList();
  }

  private CorrectedTimes corrected(SequencedMap<Tuning, Estimate> measured) {
    var ratios = new LinkedHashMap<Tuning, Double>();
    measured.forEach((tuning, excess) -> ratios.put(tuning, 1 + excess.value()));
    return new CorrectedTimes(predictions::ratio, ratios);
  }

  private static Map.Entry<Tuning, Estimate> fastest(SequencedMap<Tuning, Estimate> measured) {
    return measured.entrySet().stream()
        .min(Comparator.comparingDouble(each -> each.getValue().value()))
        .orElseThrow();
  }

  /// Returns the measured tunings that may be the fastest, fastest first.
  private List<Tuning> contenders(SequencedMap<Tuning, Estimate> measured) {
    var fastest = fastest(measured);
    return measured.entrySet().stream()
        .filter(each -> !isSurelySlower(each, fastest))
        .sorted(Comparator.comparingDouble(each -> each.getValue().value()))
        .map(Map.Entry::getKey)
        .toList();
  }

  private boolean isSurelySlower(
      Map.Entry<Tuning, Estimate> each, Map.Entry<Tuning, Estimate> fastest) {
    var tuning = each.getKey();
    var best = fastest.getKey();
    return times(tuning, best).length >= LEAST_ROUNDS
        ? excess(tuning, best).low() > 0
        : 1 + each.getValue().low() > (1 + fastest.getValue().high()) * (1 + BUILD_MARGIN);
  }

  /// Returns the fastest, and the contenders of the fewest rounds; none if few are left.
  private List<Tuning> racing(SequencedMap<Tuning, Estimate> measured) {
    var contenders = contenders(measured);
    var fastest = contenders.getFirst();
    var others =
        contenders.stream()
            .skip(1)
            .filter(tuning -> rounds(tuning) < MOST_ROUNDS)
            .sorted(Comparator.comparingInt(this::rounds))
            .limit(RACING)
            .toList();
    return contenders.size() <= MOST_FINALISTS || others.isEmpty()
        ? List.of()
        : Stream.concat(Stream.of(fastest), others.stream()).toList();
  }

  private int rounds(Tuning tuning) {
    return times(tuning, tuning).length;
  }

  private String note(SequencedMap<Tuning, Estimate> measured) {
    return predictions.ratios().isEmpty()
        ? "searched %d configurations: %s were measured, since nothing predicts them"
            .formatted(
                all.size(), measured.size() == all.size() ? "all" : String.valueOf(measured.size()))
        : "searched %d configurations: predicted on %s, measured %s"
            .formatted(
                all.size(),
                predictions.machine(),
                measured.isEmpty()
                    ? "none"
                    : "%d; corrected by their times, 9 of 10 predictions are off by %.0f%% or less"
                        .formatted(measured.size(), 100 * corrected(measured).error()));
  }
}
