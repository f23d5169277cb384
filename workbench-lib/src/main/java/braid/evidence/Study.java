package braid.evidence;

import braid.internal.report.EvidenceDisplay;
import braid.internal.report.StudyTable;
import braid.internal.report.chart.ConfigurationsChart;
import braid.internal.report.chart.HeatmapChart;
import braid.internal.report.chart.SplitsChart;
import braid.internal.report.json.StudyJson;
import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.Doubts;
import braid.internal.report.statistics.PairedSamples;
import braid.internal.report.statistics.Precision;
import braid.internal.report.statistics.Ranking;
import braid.internal.report.statistics.Standings;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.BraidException;
import braid.model.Estimate;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Reading;
import braid.model.Spread;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// What the tuner measured: every configuration in every round, beside the unfused reference, which
/// was measured twice a round to learn how much two measurements of the same thing differ. A time
/// is always that of the slowest rank. Where the hardware tells what it was at after each
/// measurement, that stands beside the times.
///
/// @param problem the GEMM as table columns
/// @param seed what shuffled the order of measurement
/// @param unfusedReadings of both of its measurements in each round, in the order they were made;
///   none where the hardware tells nothing
public record Study(
    SequencedMap<String, String> problem,
    int ranks,
    long seed,
    List<Long> unfusedFirst,
    List<Long> unfusedAgain,
    List<Trial> trials,
    List<Reading> unfusedReadings)
    implements Evidence {
  /// The most rounds that are measured: more is hardly ever meant.
  public static final int MAX_REPEATS = 10_000;

  /// As many ties as a line can name; the table marks all.
  private static final int TIES_NAMED = 3;

  /// One configuration, its time in each round, and what the hardware was at then, of all ranks
  /// together; no readings where it tells nothing.
  public record Trial(Overlap overlap, List<Long> nanos, List<Reading> readings) {
    public Trial {
      nanos = List.copyOf(nanos);
      readings = told(readings);
    }

    /// On hardware that tells nothing.
    public Trial(Overlap overlap, List<Long> nanos) {
      this(overlap, nanos, List.of());
    }

    public double medianNanos() {
      return spread().medianNanos();
    }

    public double p10Nanos() {
      return spread().p10Nanos();
    }

    public double p90Nanos() {
      return spread().p90Nanos();
    }

    private Spread spread() {
      return Spread.of(nanos);
    }
  }

  public Study {
    problem = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(problem));
    unfusedFirst = List.copyOf(unfusedFirst);
    unfusedAgain = List.copyOf(unfusedAgain);
    trials = List.copyOf(trials);
    unfusedReadings = told(unfusedReadings);
    if (trials.isEmpty() || unfusedFirst.isEmpty()) {
      throw new BraidException("a study needs at least 1 configuration and 1 round but has none");
    }
    requireRounds("the unfused reference's second time", unfusedFirst.size(), unfusedAgain);
    requireReadings("the unfused reference", 2 * unfusedFirst.size(), unfusedReadings);
    var seen = new HashSet<Overlap>();
    for (var trial : trials) {
      requireRounds(trial.overlap().toString(), unfusedFirst.size(), trial.nanos());
      requireReadings(trial.overlap().toString(), unfusedFirst.size(), trial.readings());
      if (!seen.add(trial.overlap())) {
        throw new BraidException(
            "a study has each configuration once but twice " + trial.overlap());
      }
    }
  }

  /// On hardware that tells nothing.
  public Study(
      SequencedMap<String, String> problem,
      int ranks,
      long seed,
      List<Long> unfusedFirst,
      List<Long> unfusedAgain,
      List<Trial> trials) {
    this(problem, ranks, seed, unfusedFirst, unfusedAgain, trials, List.of());
  }

  private static List<Reading> told(List<Reading> readings) {
    return readings.stream().allMatch(Reading.NONE::equals) ? List.of() : List.copyOf(readings);
  }

  private static void requireReadings(String what, int times, List<Reading> readings) {
    if (!readings.isEmpty() && readings.size() != times) {
      throw new BraidException(
          "a study needs a reading of the hardware for each time or none but has %d of %s for %d times"
              .formatted(readings.size(), what, times));
    }
  }

  private static void requireRounds(String what, int rounds, List<Long> nanos) {
    if (nanos.size() != rounds) {
      throw new BraidException(
          "a study needs %d times of each configuration but has %d of %s"
              .formatted(rounds, nanos.size(), what));
    }
    if (nanos.stream().anyMatch(n -> n <= 0)) {
      throw new BraidException("a time must be positive but " + what + " has " + nanos);
    }
  }

  public int repeats() {
    return unfusedFirst.size();
  }

  /// All times of the unfused reference.
  public long[] unfusedNanos() {
    return LongStream.concat(
            unfusedFirst.stream().mapToLong(Long::longValue),
            unfusedAgain.stream().mapToLong(Long::longValue))
        .toArray();
  }

  /// Reads what `display()` published or [Runs] saved.
  public static Study fromJson(String json) {
    var kept = StudyJson.read(json);
    return new Study(
        kept.problem(),
        kept.ranks(),
        kept.seed(),
        kept.unfusedFirst(),
        kept.unfusedAgain(),
        kept.trials().stream().map(t -> new Trial(t.overlap(), t.nanos(), t.readings())).toList(),
        kept.unfusedReadings());
  }

  public String toJson() {
    var kept =
        trials.stream()
            .map(t -> new StudyJson.Trial(t.overlap(), t.nanos(), t.readings()))
            .toList();
    return new StudyJson(problem, ranks, seed, unfusedFirst, unfusedAgain, kept, unfusedReadings)
        .write();
  }

  /// What to use: the fastest configuration that beats the unfused reference beyond the noise, or
  /// the unfused reference if none does.
  public Overlap best() {
    int best = ranking().best();
    return best == Ranking.UNFUSED ? Overlap.unfused() : trials.get(best).overlap();
  }

  /// The median time of [#best], by the measurements of all rounds.
  public double bestMedianNanos() {
    int best = ranking().best();
    return best == Ranking.UNFUSED ? unfusedMedianNanos() : trials.get(best).medianNanos();
  }

  /// The median time of the unfused reference.
  public double unfusedMedianNanos() {
    return unfused().medianNanos();
  }

  /// Configurations that these measurements cannot tell from the best, fastest first.
  public List<Overlap> ties() {
    return ranking().ties().stream().map(i -> trials.get(i).overlap()).toList();
  }

  /// The configuration with the fewest splits and streams of [#best] and [#ties].
  public Overlap simplest() {
    return Stream.concat(Stream.of(best()), ties().stream())
        .min(
            Comparator.comparingInt(Overlap::splits)
                .thenComparingInt(Overlap::streams)
                .thenComparingInt(Overlap::workers))
        .orElseThrow();
  }

  /// The median time of a configuration of this study.
  public double medianNanos(Overlap how) {
    return Spread.of(nanos(how)).medianNanos();
  }

  /// The share by which one configuration takes longer than another, negative if it is faster.
  /// Times are compared within each round; the interval has 95% confidence, if there are rounds
  /// enough.
  public Estimate excess(Overlap how, Overlap than) {
    return PairedSamples.excess(doubles(nanos(than)), doubles(nanos(how)), Ranking.CONFIDENCE);
  }

  private List<Long> nanos(Overlap how) {
    if (how.equals(Overlap.unfused())) {
      return unfusedFirst;
    }
    return trials.stream()
        .filter(trial -> trial.overlap().equals(how))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "a configuration must be one of this study's %d but was %s; study.trials() has all"
                        .formatted(trials.size(), how)))
        .nanos();
  }

  /// The noise floor as a share of the time: within it lies, with 95% confidence, the difference of
  /// two measurements of the same thing. Single disturbed rounds hardly count.
  public double noise() {
    return ranking().noiseFloor();
  }

  /// For each trial the share of the unfused time that it saves; negative where it loses. All these
  /// intervals hold together with 95% confidence, if there are rounds enough.
  public List<Estimate> saved() {
    return ranking().saved();
  }

  /// How exactly times are known, as a share: half the width of the widest interval.
  public double precision() {
    return ranking().precision().share();
  }

  /// The reason why more could be found, and what to do; none where times are known to within 1%.
  public Optional<String> advice() {
    int least = Ranking.leastRounds(trials.size());
    if (repeats() < least) {
      return Optional.of(
          "too few rounds to call anything better: %d of the %d that %s; measure more"
              .formatted(
                  repeats(),
                  least,
                  trials.size() == 1
                      ? "1 configuration needs"
                      : trials.size() + " configurations need"));
    }
    var precision = ranking().precision();
    if (precision.isEnough()) {
      return Optional.empty();
    }
    long wanted = precision.roundsFor(Precision.GOAL);
    return Optional.of(
        "noisy: ±%s after %d rounds%s; raise the budget or quiet the machine"
            .formatted(
                percent(precision.share()),
                repeats(),
                wanted <= MAX_REPEATS
                    ? " (±%s takes about %d)".formatted(percent(Precision.GOAL), wanted)
                    : ""));
  }

  private Ranking ranking() {
    return Ranking.of(
        doubles(unfusedFirst),
        doubles(unfusedAgain),
        trials.stream().map(t -> doubles(t.nanos())).toList());
  }

  private Spread unfused() {
    return Spread.of(Arrays.stream(unfusedNanos()).boxed().toList());
  }

  private Standings standings() {
    var ranking = ranking();
    var configurations = new ArrayList<Standings.Standing>();
    for (int i = 0; i < trials.size(); i++) {
      var verdict =
          i == ranking.best()
              ? Standings.Verdict.BEST
              : ranking.ties().contains(i) ? Standings.Verdict.TIED : Standings.Verdict.SLOWER;
      var trial = trials.get(i);
      configurations.add(
          new Standings.Standing(
              trial.overlap(),
              trial.spread(),
              ranking.saved().get(i),
              verdict,
              Conditions.of(trial.readings())));
    }
    return new Standings(
        finding(),
        setting(),
        basis(),
        varying(),
        unfused(),
        Conditions.of(unfusedReadings),
        ranking.best() == Ranking.UNFUSED,
        List.copyOf(configurations));
  }

  /// The settings in which the configurations differ.
  public SequencedSet<String> varying() {
    var names = new LinkedHashSet<String>();
    trials.forEach(trial -> names.addAll(trial.overlap().columns().keySet()));
    var varying = new LinkedHashSet<String>();
    for (var name : names) {
      // What is as usual has no column, and that is a value too.
      var values = trials.stream().map(t -> t.overlap().columns().getOrDefault(name, ""));
      if (values.distinct().count() > 1) {
        varying.add(name);
      }
    }
    return varying;
  }

  /// A row for the unfused reference and each configuration.
  public Table table() {
    return StudyTable.of(standings());
  }

  /// Time against split count where that makes lines, else [#configurations()].
  public JFreeChart chart() {
    var standings = standings();
    return SplitsChart.fits(standings)
        ? SplitsChart.of(standings)
        : ConfigurationsChart.of(standings);
  }

  /// A dot for each configuration, the fastest at the top.
  public JFreeChart configurations() {
    return ConfigurationsChart.of(standings());
  }

  /// Split count × stream count; needs two stream counts at least.
  public JFreeChart heatmap() {
    return HeatmapChart.of(standings());
  }

  /// The finding in a few words, as a chart's title says it.
  public String finding() {
    int best = ranking().best();
    if (best == Ranking.UNFUSED) {
      return "No overlap beats unfused here beyond the noise";
    }
    return "%s: %s less time than unfused"
        .formatted(name(trials.get(best).overlap()), percent(saved().get(best).value()));
  }

  /// What was tuned where, in one line.
  public String setting() {
    return ConfigurationLabel.of(problem) + (ranks == 1 ? ", 1 rank" : ", " + ranks + " ranks");
  }

  /// How the numbers came about, in one line.
  public String basis() {
    return "median of %d rounds in shuffled order, slowest rank; noise floor ±%s"
        .formatted(repeats(), percent(noise()));
  }

  /// Why the times may not be comparable, in words: clocks that differed by more than a few
  /// percent, whatever held the hardware back. None where nothing speaks against it, or nothing is
  /// known.
  public List<String> doubts() {
    var measured = new LinkedHashMap<String, Conditions>();
    measured.put("unfused", Conditions.of(unfusedReadings));
    trials.forEach(t -> measured.put(name(t.overlap()), Conditions.of(t.readings())));
    return Doubts.of(measured);
  }

  @Override
  public String headline() {
    var doubts = doubts();
    return found()
        + advice().map(advice -> "; " + advice).orElse("")
        + (doubts.isEmpty() ? "" : "; doubtful: " + String.join("; ", doubts));
  }

  private String found() {
    var ranking = ranking();
    double unfused = unfused().medianNanos();
    var ties = ties(ranking);
    if (ranking.best() == Ranking.UNFUSED) {
      return "no overlap beats unfused (%s) here beyond the noise (±%s)%s"
          .formatted(TimeScale.format(unfused), percent(ranking.noiseFloor()), ties);
    }
    var trial = trials.get(ranking.best());
    var saved = ranking.saved().get(ranking.best());
    return "%s: %s, %s less than unfused's %s (%s to %s with %s confidence; noise ±%s)%s"
        .formatted(
            name(trial.overlap()),
            TimeScale.format(trial.medianNanos()),
            percent(saved.value()),
            TimeScale.format(unfused),
            percent(saved.low()),
            percent(saved.high()),
            TimeScale.percent(ranking.confidence()),
            percent(ranking.noiseFloor()),
            ties);
  }

  private String ties(Ranking ranking) {
    if (ranking.ties().isEmpty()) {
      return "";
    }
    int more = ranking.ties().size() - TIES_NAMED;
    return "; as good within the noise: "
        + ranking.ties().stream()
            .limit(TIES_NAMED)
            .map(i -> name(trials.get(i).overlap()))
            .collect(Collectors.joining(", "))
        + (more > 0 ? " and " + more + " more" : "");
  }

  private String name(Overlap overlap) {
    return ConfigurationLabel.distinguishing(overlap, varying());
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.1f%%", 100 * share);
  }

  @Override
  public SequencedMap<String, Table> tables() {
    var tables = new LinkedHashMap<String, Table>();
    tables.put("study", table());
    return tables;
  }

  @Override
  public SequencedMap<String, JFreeChart> charts() {
    var charts = new LinkedHashMap<String, JFreeChart>();
    charts.put(SplitsChart.fits(standings()) ? "splits" : "configurations", chart());
    if (varying().containsAll(List.of("splits", "streams"))) {
      charts.put("heatmap", heatmap());
    }
    return charts;
  }

  @Override
  public MimeBundle display() {
    return EvidenceDisplay.of(headline(), table(), List.of(), this::charts)
        .with(StudyJson.MIME, toJson());
  }

  @Override
  public String toString() {
    return headline();
  }

  private static double[] doubles(List<Long> nanos) {
    return nanos.stream().mapToDouble(Long::doubleValue).toArray();
  }
}
