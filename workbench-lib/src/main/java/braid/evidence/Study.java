package braid.evidence;

import braid.internal.report.EvidenceDisplay;
import braid.internal.report.StudyTable;
import braid.internal.report.chart.ConfigurationsChart;
import braid.internal.report.chart.HeatmapChart;
import braid.internal.report.chart.SplitsChart;
import braid.internal.report.json.StudyJson;
import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.PairedSamples;
import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.Standing;
import braid.internal.report.statistics.Ranking;
import braid.internal.report.statistics.Spread;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.Configuration.Named;
import braid.model.Configuration.OwnSchedule;
import braid.model.Estimate;
import braid.model.HardwareReading;
import braid.model.HostLoad;
import braid.model.MimeBundle;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.Table;

/// Measurements of the tuner: every configuration in every round, beside the reference, which runs
/// twice per round to show how much two measurements of the same work differ. Of a pipeline, the
/// configurations are tunings and schedules of one's own, and the reference is unfused; of steps,
/// they are names. A time is always that of the slowest rank. Readings of the hardware after each
/// measurement are kept beside the times, if available.
///
/// If ranks shared a GPU, the times are no evidence ([#timesCount]): no configuration is judged,
/// and predictions on a described machine stand beside the times.
///
/// @param <C> kind of its configurations; [#cast] finds it out for a study that was loaded
/// @param problem problem as table columns
/// @param seed seed that shuffled the order of measurement
/// @param unfusedReadings readings of both unfused measurements per round, in the order of
///   measurement; empty if the hardware reports none
/// @param reference the reference, to which the times named unfused belong
/// @param prediction predicted times; empty if none were asked for, and in studies of one device
///   per rank
/// @param measuredNanos time that all rounds took, including what is not timed; 0 if unknown
/// @param starts rounds of each start, if those of several starts on fresh ranks are pooled; else
///   empty
/// @param builds rounds of each build, if all pipelines of one start were built several times; else
///   empty
/// @param load what other processes did meanwhile; empty if that is unknown
public record Study<C extends Configuration>(
    SequencedMap<String, String> problem,
    int ranks,
    long seed,
    List<Long> unfusedFirst,
    List<Long> unfusedAgain,
    List<Trial<C>> trials,
    List<HardwareReading> unfusedReadings,
    C reference,
    Optional<Prediction> prediction,
    long measuredNanos,
    List<Integer> starts,
    List<Integer> builds,
    Optional<HostLoad> load)
    implements Evidence {
  /// Least margin of equal times: two are equal if the whole interval of their difference lies
  /// within it, or within the noise floor if that is larger, up to [#MOST_MARGIN].
  public static final double LEAST_MARGIN = Ranking.LEAST_MARGIN;

  /// Largest margin at which two times are called equal.
  public static final double MOST_MARGIN = Ranking.MOST_MARGIN;

  /// Largest number of rounds; a larger one is taken for a mistake.
  public static final int MAX_REPEATS = 10_000;

  /// Times of an iteration that a simulation predicts.
  ///
  /// @param machine the described machine
  /// @param nanos time of the reference, then of each trial; 0 for one that cannot be simulated
  public record Prediction(String machine, List<Long> nanos) {
    public Prediction {
      nanos = List.copyOf(nanos);
    }
  }

  /// One configuration, its time per round, and the hardware readings of all ranks together; no
  /// readings if the hardware reports none.
  public record Trial<C extends Configuration>(
      C configuration, List<Long> nanos, List<HardwareReading> readings) {
    public Trial {
      nanos = List.copyOf(nanos);
      readings = known(readings);
    }

    /// Creates a value without readings of the hardware.
    public Trial(C configuration, List<Long> nanos) {
      this(configuration, nanos, List.of());
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
    unfusedReadings = known(unfusedReadings);
    starts = List.copyOf(starts);
    builds = List.copyOf(builds);
    if (trials.isEmpty() || unfusedFirst.isEmpty()) {
      throw new BraidException("a study needs at least 1 configuration and 1 round but has none");
    }
    int predicted = prediction.map(each -> each.nanos().size()).orElse(trials.size() + 1);
    if (predicted != trials.size() + 1) {
      throw new BraidException(
          "a prediction needs a time of the reference and of each of %d configurations but has %d"
              .formatted(trials.size(), predicted));
    }
    requireRounds("the unfused reference's second time", unfusedFirst.size(), unfusedAgain);
    requireParts("starts", unfusedFirst.size(), starts);
    requireParts("builds", unfusedFirst.size(), builds);
    var seen = new HashSet<Configuration>();
    seen.add(reference);
    requireReadings("the unfused reference", 2 * unfusedFirst.size(), unfusedReadings);
    for (var trial : trials) {
      var configuration = trial.configuration();
      requireRounds(configuration.toString(), unfusedFirst.size(), trial.nanos());
      requireReadings(configuration.toString(), unfusedFirst.size(), trial.readings());
      boolean isAddition = isAddition(configuration) && !(reference instanceof Named);
      if (!isAddition && configuration.getClass() != reference.getClass()) {
        throw new BraidException(
            "a study has configurations of one kind, and schedules of one's own and steps beside tunings, but has `%s` and `%s`"
                .formatted(reference, configuration));
      }
      if (!seen.add(configuration)) {
        throw new BraidException("a study has each configuration once but twice " + configuration);
      }
    }
  }

  /// Creates a study without readings of the hardware and without a prediction.
  public Study(
      SequencedMap<String, String> problem,
      int ranks,
      long seed,
      List<Long> unfusedFirst,
      List<Long> unfusedAgain,
      List<Trial<C>> trials,
      C reference) {
    this(
        problem,
        ranks,
        seed,
        unfusedFirst,
        unfusedAgain,
        trials,
        List.of(),
        reference,
        Optional.empty(),
        0,
        List.of(),
        List.of(),
        Optional.empty());
  }

  private static List<HardwareReading> known(List<HardwareReading> readings) {
    return readings.stream().allMatch(HardwareReading.NONE::equals)
        ? List.of()
        : List.copyOf(readings);
  }

  private static void requireParts(String name, int rounds, List<Integer> parts) {
    if (!parts.isEmpty()
        && (parts.stream().anyMatch(part -> part < 1)
            || parts.stream().mapToLong(part -> part).sum() != rounds)) {
      throw new BraidException(
          "the rounds of all %s must be the study's %d but are %s".formatted(name, rounds, parts));
    }
  }

  private static void requireReadings(
      String configuration, int times, List<HardwareReading> readings) {
    if (!readings.isEmpty() && readings.size() != times) {
      throw new BraidException(
          "a study needs a reading of the hardware for each time or none but has %d of %s for %d times"
              .formatted(readings.size(), configuration, times));
    }
  }

  private static void requireRounds(String configuration, int rounds, List<Long> nanos) {
    if (nanos.size() != rounds) {
      throw new BraidException(
          "a study needs %d times of each configuration but has %d of %s"
              .formatted(rounds, nanos.size(), configuration));
    }
    if (nanos.stream().anyMatch(n -> n <= 0)) {
      throw new BraidException("a time must be positive but " + configuration + " has " + nanos);
    }
  }

  public int repeats() {
    return unfusedFirst.size();
  }

  /// Returns all times of the unfused reference.
  public long[] unfusedNanos() {
    return LongStream.concat(
            unfusedFirst.stream().mapToLong(Long::longValue),
            unfusedAgain.stream().mapToLong(Long::longValue))
        .toArray();
  }

  /// Reads the JSON that `display()` published or [Runs] saved.
  public static Study<?> fromJson(String json) {
    var kept = StudyJson.read(json);
    return new Study<>(
        kept.problem(),
        kept.ranks(),
        kept.seed(),
        kept.unfusedNanos(),
        kept.unfusedAgainNanos(),
        kept.trials().stream()
            .map(t -> new Trial<>(t.configuration(), t.nanos(), t.readings()))
            .toList(),
        kept.unfusedReadings(),
        kept.referenceConfiguration(),
        kept.predictedOn().map(machine -> new Prediction(machine, kept.predictedNanos())),
        kept.measuredNanos(),
        kept.starts(),
        kept.builds(),
        kept.load());
  }

  public String toJson() {
    var kept =
        trials.stream()
            .map(t -> new StudyJson.Trial(t.configuration(), t.nanos(), t.readings()))
            .toList();
    boolean step = reference instanceof Configuration.Named;
    return new StudyJson(
            problem,
            ranks,
            seed,
            step ? Optional.of(reference.toString()) : Optional.empty(),
            step || reference.equals(Overlap.unfused()) ? Optional.empty() : Optional.of(reference),
            unfusedFirst,
            unfusedAgain,
            kept,
            unfusedReadings,
            prediction.map(Prediction::machine),
            prediction.map(Prediction::nanos).orElse(List.of()),
            measuredNanos,
            starts,
            builds,
            load)
        .write();
  }

  @Override
  public boolean timesCount() {
    return Caveats.timesCount(problem);
  }

  /// Returns this study as one of configurations of a kind: `study.cast(Overlap.class).best()` of a
  /// study that was loaded.
  ///
  /// @throws BraidException if any configuration is of another kind
  @SuppressWarnings("unchecked") // All configurations are checked.
  public <D extends Configuration> Study<D> cast(Class<D> kind) {
    all()
        .filter(each -> !kind.isInstance(each))
        .findFirst()
        .ifPresent(
            other -> {
              throw new BraidException(
                  "the study's `%s` is %s, not %s; cast(Configuration.class) takes every kind"
                      .formatted(other, other.getClass().getSimpleName(), kind.getSimpleName()));
            });
    return (Study<D>) this;
  }

  /// Returns the configuration to use: the fastest that beats the unfused reference beyond the
  /// noise, or the unfused reference if none does.
  ///
  /// @throws BraidException if the times are no evidence ([#timesCount])
  public C best() {
    if (!timesCount()) {
      throw new BraidException(
          "a study's best needs times that count but %s; build with study.reference() or study.fastest(), or tune with a GPU per rank"
              .formatted(Caveats.SHARED));
    }
    int best = ranking().best();
    return best == Ranking.UNFUSED ? reference : trials.get(best).configuration();
  }

  /// Returns the median time of [#best] over all rounds.
  public double bestMedianNanos() {
    return medianNanos(best());
  }

  /// Returns the median time of the unfused reference.
  public double unfusedMedianNanos() {
    return unfused().medianNanos();
  }

  /// Returns the configurations that are as fast as the best within the margin, fastest first.
  public List<C> ties() {
    return configurations(Standing.EQUAL);
  }

  /// Returns the configurations of which these measurements do not show whether they are as fast as
  /// the best, fastest first.
  public List<C> undecided() {
    return configurations(Standing.UNDECIDED);
  }

  private List<C> configurations(Standing standing) {
    return ranking().configurations(standing).stream()
        .map(i -> trials.get(i).configuration())
        .toList();
  }

  /// Returns the configuration with the smallest median besides the reference, whatever the verdict
  /// on it: to look at an overlap even if the reference is best.
  public C fastest() {
    return trials.get(ranking().byTime().getFirst()).configuration();
  }

  /// Returns the configuration with the fewest splits and streams of [#best] and [#ties].
  public C simplest() {
    return simplest(Double.POSITIVE_INFINITY);
  }

  /// Returns the simplest of those that take at most a share longer than the fastest of them, by
  /// the times within each round: quotients of medians waste the pairs.
  C simplest(double most) {
    var best = best();
    var equals = Stream.concat(Stream.of(best), ties().stream()).toList();
    var ratios =
        equals.stream()
            .mapToDouble(
                each ->
                    1
                        + PairedSamples.excess(
                                doubles(nanos(best)), doubles(nanos(each)), Ranking.CONFIDENCE)
                            .value())
            .toArray();
    double limit = Arrays.stream(ratios).min().orElse(1) * (1 + most);
    return IntStream.range(0, ratios.length)
        .filter(i -> ratios[i] <= limit)
        .mapToObj(equals::get)
        .min(
            Comparator.<C>comparingInt(each -> each.count("splits", 1))
                .thenComparingInt(each -> each.count("streams", 1))
                .thenComparingInt(each -> each.count("workers", 0)))
        .orElseThrow();
  }

  /// Returns the rounds of each start; of a single start, those of each build.
  List<Integer> parts() {
    return starts.isEmpty() ? builds : starts;
  }

  /// Returns the configuration with the smallest median, the reference included, in each start; in
  /// each build, if there was one start; in all rounds, if there was one build.
  public List<C> fastestOfParts() {
    var fastest = new ArrayList<C>();
    int from = 0;
    for (int rounds : parts().isEmpty() ? List.of(repeats()) : parts()) {
      int first = from;
      int last = from + rounds;
      fastest.add(
          all()
              .min(
                  Comparator.comparingDouble(
                      each -> Spread.of(nanos(each).subList(first, last)).medianNanos()))
              .orElseThrow());
      from = last;
    }
    return fastest;
  }

  /// Returns the configuration of that name, as its `toString()` has it.
  public C configuration(String name) {
    return all()
        .filter(each -> each.toString().equals(name))
        .findFirst()
        .orElseThrow(() -> unknown(name));
  }

  private Stream<C> all() {
    return Stream.concat(Stream.of(reference), trials.stream().map(Trial::configuration));
  }

  private BraidException unknown(Object configuration) {
    return new BraidException(
        "a configuration must be one of this study's %d but was %s; study.trials() has all"
            .formatted(trials.size(), configuration));
  }

  /// Returns the median time of a configuration of this study.
  public double medianNanos(C configuration) {
    return configuration.equals(reference)
        ? unfusedMedianNanos()
        : trial(configuration).medianNanos();
  }

  /// Returns the share by which one configuration takes longer than another, negative if it is
  /// faster: the quotient of their medians minus 1. For the interval, times are compared within
  /// each round; it has 95% confidence, given enough rounds, and contains the quotient.
  public Estimate excess(C configuration, C reference) {
    return PairedSamples.excess(
            doubles(nanos(reference)), doubles(nanos(configuration)), Ranking.CONFIDENCE)
        .withValue(medianNanos(configuration) / medianNanos(reference) - 1);
  }

  private List<Long> nanos(C configuration) {
    return configuration.equals(reference) ? unfusedFirst : trial(configuration).nanos();
  }

  private Trial<C> trial(C configuration) {
    return trials.stream()
        .filter(trial -> trial.configuration().equals(configuration))
        .findFirst()
        .orElseThrow(() -> unknown(configuration));
  }

  /// Returns the noise floor as a share of the time: with 95% confidence, two measurements of the
  /// same work differ by less. Single disturbed rounds have little effect.
  public double noise() {
    return ranking().noiseFloor();
  }

  /// Returns, per trial, the share of the unfused median that its median saves; negative if it is
  /// slower. All these intervals hold together with 95% confidence, given enough rounds.
  public List<Estimate> saved() {
    return ranking().excess().stream().map(Estimate::negated).toList();
  }

  /// Returns the precision of the times as a share: half the width of the widest interval.
  public double precision() {
    return ranking().precision().share();
  }

  /// Returns the reason why it is undecided which configuration is best, and the rounds and time
  /// that would decide; empty if it is decided.
  public Optional<String> advice() {
    return words().advice();
  }

  private Ranking ranking() {
    var ranking =
        Ranking.of(
            doubles(unfusedFirst),
            doubles(unfusedAgain),
            trials.stream().map(t -> doubles(t.nanos())).toList(),
            parts());
    return timesCount() ? ranking : ranking.unjudged();
  }

  private Spread unfused() {
    return Spread.of(Arrays.stream(unfusedNanos()).boxed().toList());
  }

  private RankedConfigurations ranked() {
    var ranking = ranking();
    var configurations = new ArrayList<RankedConfigurations.RankedConfiguration>();
    for (int i = 0; i < trials.size(); i++) {
      var trial = trials.get(i);
      configurations.add(
          new RankedConfigurations.RankedConfiguration(
              trial.configuration(),
              trial.spread(),
              ranking.excess().get(i),
              ranking.verdicts().get(i),
              ranking.standings().get(i),
              Conditions.of(trial.readings()),
              predictedNanos(i + 1)));
    }
    return new RankedConfigurations(
        finding(),
        ConfigurationLabel.of(place()),
        basis(),
        varying(),
        reference,
        unfused(),
        Conditions.of(unfusedReadings),
        ranking.margin(),
        timesCount()
            && ranking.best() == Ranking.UNFUSED
            && ranking.configurations(Standing.UNDECIDED).isEmpty(),
        predictedNanos(0),
        List.copyOf(configurations));
  }

  /// @param entry 0 for the reference, else 1 + the index of a trial
  private OptionalDouble predictedNanos(int entry) {
    return prediction.stream()
        .mapToDouble(each -> each.nanos().get(entry))
        .filter(n -> n > 0)
        .findFirst();
  }

  /// Returns the settings in which the configurations differ.
  public SequencedSet<String> varying() {
    var all = trials.stream().map(Trial::configuration).toList();
    var varying = new LinkedHashSet<String>();
    all.forEach(each -> varying.addAll(each.columns().keySet()));
    varying.removeIf(
        name ->
            all.stream()
                    // A default has no column, and is a value too; what stands beside tunings has
                    // none.
                    .filter(each -> each.columns().containsKey(name) || !isAddition(each))
                    .map(each -> each.columns().getOrDefault(name, ""))
                    .distinct()
                    .count()
                < 2);
    return varying;
  }

  /// Returns true for what may stand beside tunings.
  private static boolean isAddition(Configuration configuration) {
    return configuration instanceof OwnSchedule || configuration instanceof Named;
  }

  /// Returns one row for the unfused reference and one per configuration.
  public Table table() {
    return StudyTable.of(ranked());
  }

  /// Returns the configurations of several studies in one table, without the references: first the
  /// columns in which their problems differ, such as the pattern or a size; then [#table].
  public static Table compared(List<? extends Study<?>> studies) {
    return StudyTable.joined(
        studies.stream().map(Study::place).toList(), studies.stream().map(Study::ranked).toList());
  }

  /// Returns time against split count if that forms lines, else [#configurations()].
  public JFreeChart chart() {
    var ranked = ranked();
    return SplitsChart.fits(ranked) ? SplitsChart.of(ranked) : ConfigurationsChart.of(ranked);
  }

  /// Returns one dot per configuration, the fastest at the top.
  public JFreeChart configurations() {
    return ConfigurationsChart.of(ranked());
  }

  /// Returns split count × stream count; needs at least two stream counts.
  public JFreeChart heatmap() {
    return HeatmapChart.of(ranked());
  }

  /// Returns the finding in a few words, for a chart's title.
  public String finding() {
    return words().finding();
  }

  private SequencedMap<String, String> place() {
    var columns = new LinkedHashMap<>(problem);
    columns.put("ranks", Integer.toString(ranks));
    return columns;
  }

  /// Returns problem and ranks in one line.
  public String setting() {
    var columns = place();
    columns.remove(Caveats.COLUMN);
    return ConfigurationLabel.of(columns);
  }

  /// Returns the method of measurement in one line.
  public String basis() {
    return words().basis();
  }

  @Override
  public List<String> faults() {
    var limits = SpeedLimits.of(problem, ranks);
    return Stream.concat(
            limits.fault(ConfigurationLabel.reference(reference), unfusedMedianNanos()).stream(),
            trials.stream().flatMap(trial -> fault(limits, trial).stream()))
        .toList();
  }

  private Optional<String> fault(SpeedLimits limits, Trial<C> trial) {
    var name = trial.configuration().toString();
    // Another stack's bytes do not take the link that the host backend simulates.
    boolean otherLink =
        trial.configuration() instanceof Named
            && BackendKind.HOST.toString().equals(problem.get("backend"));
    return otherLink
        ? limits.rateFault(name, trial.medianNanos())
        : limits.fault(name, trial.medianNanos());
  }

  /// Returns reasons why the times may not be comparable: faults, clocks that differed by more than
  /// a few percent, everything that throttled the hardware, and other processes that kept the
  /// processors busy. Empty if none is known.
  public List<String> doubts() {
    return words().doubts();
  }

  @Override
  public String headline() {
    return words().headline();
  }

  private StudyText words() {
    return new StudyText(this, ranking(), unfused());
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
    charts.put(SplitsChart.fits(ranked()) ? "splits" : "configurations", chart());
    if (varying().containsAll(List.of("splits", "streams"))) {
      charts.put("heatmap", heatmap());
    }
    return charts;
  }

  @Override
  public MimeBundle display() {
    return EvidenceDisplay.of(
            headline(), StudyTable.shown(ranked()), () -> List.of(chart()), List.of())
        .with(StudyJson.MIME, toJson());
  }

  @Override
  public String toString() {
    return headline();
  }

  /// Returns true if these measurements show of every configuration whether it is the best; false
  /// if the times are no evidence, or impossible.
  public boolean isDecided() {
    return timesCount() && faults().isEmpty() && ranking().isDecided();
  }

  private static double[] doubles(List<Long> nanos) {
    return nanos.stream().mapToDouble(Long::doubleValue).toArray();
  }
}
