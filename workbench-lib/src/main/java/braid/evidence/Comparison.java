package braid.evidence;

import braid.internal.report.HtmlTable;
import braid.internal.report.TableTypes;
import braid.internal.report.statistics.Conditions;
import braid.internal.report.statistics.Doubts;
import braid.internal.report.statistics.Ranking;
import braid.internal.report.statistics.TwoSamples;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.Percent;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.Displayable;
import braid.model.Estimate;
import braid.model.HardwareReading;
import braid.model.HostLoad;
import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Two studies of one problem, compared by configuration: is the second as fast as the first?
///
/// Two studies share no rounds, so every time of one is compared with every time of the other; the
/// intervals of all rows hold together with 95% confidence, however many there are. Times that
/// depend on those of earlier rounds count as fewer samples. The difference is between the two
/// medians, so it agrees with the times beside it. A row is `SLOW` or `FAST` if its interval lies
/// beyond the threshold *and* it differs by more than the margin: the threshold, or the noise floor
/// of either study if that is larger. If both pool enough starts, a start counts as one value, and
/// the interval needs to exclude only zero. It is `SAME` if the whole interval lies within the
/// margin and the margin is small enough for the statement to mean anything, else `UNDECIDED`. If
/// ranks shared a GPU in either study, no time is judged: every row is `NOT_COMPARED`.
///
/// If the reference moved between the studies, each configuration is judged beside the reference of
/// its own study, and is `MACHINE_DIFFERED` where that says nothing: [Judge] has the rule.
///
/// @param setting problem and machine, in one line
/// @param rows the unfused reference first, then the configurations of both studies
/// @param threshold share within which a difference does not matter
/// @param noise larger noise floor of the two studies, or the larger drift within one of them
/// @param starts starts of the study that has fewer, if each start counted as one value; else 1
/// @param differing notable differences of the machines: another link, clock or temperature
/// @param unmatched configurations of only one study
public record Comparison(
    String setting,
    List<Row> rows,
    double threshold,
    double noise,
    int starts,
    List<String> differing,
    List<String> unmatched)
    implements Displayable {
  /// Default threshold. Two starts of the same program can differ by almost this share, which the
  /// rounds within a start cannot show.
  public static final double DEFAULT_THRESHOLD = 0.03;

  /// Largest margin at which two times are called the same.
  public static final double MOST_MARGIN_OF_SAME = 0.10;

  /// Confidence required for a drift: a false drift would hide real differences.
  private static final double SURE_OF_DRIFT = 0.999;

  private static final double NANOS_PER_MILLI = 1e6;

  /// Columns that a table has only if the reference moved: the change beside the reference and its
  /// interval.
  public static final List<String> BESIDE_COLUMNS = List.of("÷ reference %", "÷ from %", "÷ to %");

  /// Columns that describe the machine, not the problem.
  private static final Set<String> MACHINE_COLUMNS =
      Set.of("backend", Caveats.DEVICE, Caveats.HOSTS, "link", "memory", Caveats.COLUMN);

  /// Verdict on the second time against the first.
  public enum Verdict {
    SAME,
    FAST,
    SLOW,
    UNDECIDED,
    /// The reference moved too, and the change beside it is neither none nor larger than its own.
    MACHINE_DIFFERED,
    /// Ranks shared a GPU in either study, so times are no evidence.
    NOT_COMPARED
  }

  /// One configuration in both studies.
  ///
  /// @param firstNanos median of the first study
  /// @param secondNanos median of the second study
  /// @param difference share by which the second median is longer
  /// @param beside share by which the second time is longer in units of the reference's time in the
  ///   same round; empty for the reference
  /// @param moreRounds approximate number of additional rounds, or starts if they are the values,
  ///   in each study that would decide; empty if decided, or if no measurable number of rounds
  ///   would
  public record Row(
      String configuration,
      double firstNanos,
      double secondNanos,
      Estimate difference,
      Optional<Estimate> beside,
      Verdict verdict,
      OptionalInt moreRounds) {
    private Row notCompared() {
      return new Row(
          configuration,
          firstNanos,
          secondNanos,
          difference,
          beside,
          Verdict.NOT_COMPARED,
          OptionalInt.empty());
    }
  }

  public Comparison {
    rows = List.copyOf(rows);
    differing = List.copyOf(differing);
    unmatched = List.copyOf(unmatched);
  }

  public static Comparison of(Study<?> first, Study<?> second) {
    return of(first, second, DEFAULT_THRESHOLD);
  }

  /// Compares two studies.
  ///
  /// @param threshold share within which a difference does not matter, for example 0.03
  /// @throws BraidException if the studies are of different problems, or share no configuration
  public static Comparison of(Study<?> first, Study<?> second, double threshold) {
    return of(first, second, threshold, /* alone= */ false);
  }

  /// Compares the times of two studies, whatever the reference did: on a machine that nothing else
  /// uses, it finds what makes all configurations slower, the reference included.
  ///
  /// @throws BraidException as [#of]
  public static Comparison ofTimes(Study<?> first, Study<?> second, double threshold) {
    return of(first, second, threshold, /* alone= */ true);
  }

  private static Comparison of(Study<?> first, Study<?> second, double threshold, boolean alone) {
    if (!(threshold >= 0 && threshold < 1)) {
      throw new BraidException(
          "a threshold must be a share, 0 to less than 1, but was %s; try %s"
              .formatted(threshold, DEFAULT_THRESHOLD));
    }
    requireAlike(first, second);
    var before = times(first);
    var after = times(second);
    var shared = new LinkedHashSet<>(before.keySet());
    shared.retainAll(after.keySet());
    var varying = new LinkedHashSet<>(first.varying());
    varying.addAll(second.varying());
    if (!shareConfiguration(List.of(first, second))) {
      throw new BraidException(
          "two studies must share a configuration but the first has %s and the second %s; compare studies of the same ones"
              .formatted(names(before.keySet(), varying), names(after.keySet(), varying)));
    }
    double floor = Math.max(first.noise(), second.noise());
    double confidence = 1 - (1 - Ranking.CONFIDENCE) / shared.size();
    var starts = new Judge.Starts(startsOf(first), startsOf(second));
    boolean ofStarts = starts.suffice(confidence);
    double drift = ofStarts ? 0 : Math.max(drift(first), drift(second));
    var judge =
        new Judge(unfused(first), unfused(second), threshold, floor, drift, confidence, starts);
    var rows = new ArrayList<Row>();
    for (var configuration : shared) {
      var name = name(configuration, varying);
      var row =
          configuration.equals(first.reference())
              ? judge.reference(name, alone)
              : judge.configuration(
                  name,
                  Objects.requireNonNull(before.get(configuration)),
                  Objects.requireNonNull(after.get(configuration)),
                  alone);
      rows.add(first.timesCount() && second.timesCount() ? row : row.notCompared());
    }
    var unmatched = new ArrayList<String>();
    unmatched("first", before.keySet(), shared, varying).forEach(unmatched::add);
    unmatched("second", after.keySet(), shared, varying).forEach(unmatched::add);
    return new Comparison(
        first.setting(),
        rows,
        threshold,
        Math.max(floor, drift),
        ofStarts ? starts.fewest() : 1,
        differing(first, second),
        unmatched);
  }

  /// Returns one study of the rounds of several starts on fresh ranks. Configurations that one of
  /// them lacks are left out.
  ///
  /// @throws BraidException if they are of different problems, or share no configuration
  public static Study<?> pooled(List<? extends Study<?>> starts) {
    return pooled(
        starts, starts.stream().flatMap(start -> startsOf(start).stream()).toList(), List.of());
  }

  /// Returns one study of the rounds of several builds in one start.
  ///
  /// @throws BraidException as [#pooled]
  public static Study<?> ofBuilds(List<? extends Study<?>> builds) {
    return pooled(builds, List.of(), builds.stream().map(Study::repeats).toList());
  }

  private static Study<?> pooled(
      List<? extends Study<?>> turns, List<Integer> starts, List<Integer> builds) {
    var first = turns.getFirst();
    turns.forEach(turn -> requireAlike(first, turn));
    var trials = new ArrayList<Study.Trial<Configuration>>();
    for (var trial : first.trials()) {
      var same =
          turns.stream()
              .<Study.Trial<?>>flatMap(turn -> turn.trials().stream())
              .filter(each -> each.configuration().equals(trial.configuration()))
              .toList();
      if (same.size() == turns.size()) {
        trials.add(
            new Study.Trial<>(
                trial.configuration(),
                joined(same, Study.Trial::nanos),
                readings(same, Study.Trial::readings)));
      }
    }
    if (!shareConfiguration(turns)) {
      throw new BraidException(
          "studies that are pooled must share a configuration but share none; compare them one by"
              + " one");
    }
    return new Study<Configuration>(
        first.problem(),
        first.ranks(),
        first.seed(),
        joined(turns, Study::unfusedFirst),
        joined(turns, Study::unfusedAgain),
        trials,
        readings(turns, Study::unfusedReadings),
        first.reference(),
        trials.size() == first.trials().size() ? first.prediction() : Optional.empty(),
        turns.stream().mapToLong(Study::measuredNanos).sum(),
        starts,
        builds,
        turns.stream()
            .flatMap(turn -> turn.load().stream())
            .max(Comparator.comparingDouble(HostLoad::others)));
  }

  private static List<Integer> startsOf(Study<?> study) {
    return study.starts().isEmpty() ? List.of(study.repeats()) : study.starts();
  }

  private static <T, V> List<V> joined(List<? extends T> turns, Function<T, List<V>> part) {
    return turns.stream().flatMap(turn -> part.apply(turn).stream()).toList();
  }

  /// Returns no readings if one of them has none.
  private static <T> List<HardwareReading> readings(
      List<? extends T> turns, Function<T, List<HardwareReading>> part) {
    return turns.stream().anyMatch(turn -> part.apply(turn).isEmpty())
        ? List.of()
        : joined(turns, part);
  }

  /// Returns true if both studies are of one problem, on whatever machine.
  public static boolean alike(Study<?> first, Study<?> second) {
    return unlike(first, second).isEmpty();
  }

  /// Returns true if all studies measured some configuration besides the reference: two searches of
  /// one problem can end with other candidates.
  public static boolean shareConfiguration(List<? extends Study<?>> studies) {
    var shared = new LinkedHashSet<>(times(studies.getFirst()).keySet());
    studies.forEach(study -> shared.retainAll(times(study).keySet()));
    return shared.size() > 1;
  }

  private static void requireAlike(Study<?> first, Study<?> second) {
    var unlike = unlike(first, second);
    if (!unlike.isEmpty()) {
      throw new BraidException(
          "two studies must be of one problem to be compared but differ in %s; compare runs with the same sizes"
              .formatted(String.join(", ", unlike)));
    }
  }

  private static List<String> unlike(Study<?> first, Study<?> second) {
    var unlike = new ArrayList<>(differences(first.problem(), second.problem(), false));
    if (!first.reference().equals(second.reference())) {
      unlike.add("reference: %s and %s".formatted(first.reference(), second.reference()));
    }
    if (first.ranks() != second.ranks()) {
      unlike.add("ranks: %d and %d".formatted(first.ranks(), second.ranks()));
    }
    return unlike;
  }

  private static List<String> differing(Study<?> first, Study<?> second) {
    var differing = new ArrayList<>(differences(first.problem(), second.problem(), true));
    differing.addAll(Doubts.between(conditions(first), conditions(second)));
    if (Stream.of(first, second).flatMap(each -> each.load().stream()).anyMatch(HostLoad::isHigh)) {
      differing.add("kept busy by other processes: %s and %s".formatted(busy(first), busy(second)));
    }
    return differing;
  }

  private static String busy(Study<?> study) {
    return study
        .load()
        .map(load -> String.format(Locale.ROOT, "%.1f of %d cores", load.others(), load.cores()))
        .orElse("unknown");
  }

  private static Conditions conditions(Study<?> study) {
    var trials = study.trials().stream().flatMap(trial -> trial.readings().stream());
    return Conditions.of(Stream.concat(study.unfusedReadings().stream(), trials).toList());
  }

  private static List<String> differences(
      SequencedMap<String, String> first, SequencedMap<String, String> second, boolean ofMachine) {
    var names = new LinkedHashSet<>(first.keySet());
    names.addAll(second.keySet());
    return names.stream()
        .filter(name -> MACHINE_COLUMNS.contains(name) == ofMachine)
        // Studies of earlier versions do not name it.
        .filter(
            name ->
                !name.equals(Caveats.DEVICE)
                    || (first.containsKey(name) && second.containsKey(name)))
        .filter(name -> !Objects.equals(first.get(name), second.get(name)))
        .map(
            name ->
                "%s: %s and %s"
                    .formatted(
                        name, first.getOrDefault(name, "none"), second.getOrDefault(name, "none")))
        .toList();
  }

  /// Returns how much the reference's time changed within the study, if it did: a machine that
  /// changes within a run may change between two.
  private static double drift(Study<?> study) {
    var unfused = unfused(study);
    int half = unfused.length / 2;
    if (half < TwoSamples.leastRounds(SURE_OF_DRIFT)) {
      return 0;
    }
    var early = Arrays.copyOf(unfused, half);
    var late = Arrays.copyOfRange(unfused, unfused.length - half, unfused.length);
    var change = TwoSamples.excess(early, late, SURE_OF_DRIFT);
    boolean drifts =
        change.confidence() >= SURE_OF_DRIFT && (change.low() > 0 || change.high() < 0);
    // The middles of the halves are half of the study apart.
    return drifts ? 2 * Math.abs(change.value()) : 0;
  }

  /// Returns the unfused reference's time per round: the mean of its two.
  private static double[] unfused(Study<?> study) {
    var unfused = new double[study.repeats()];
    for (int round = 0; round < unfused.length; round++) {
      unfused[round] = (study.unfusedFirst().get(round) + study.unfusedAgain().get(round)) / 2.0;
    }
    return unfused;
  }

  private static SequencedMap<Configuration, double[]> times(Study<?> study) {
    var times = new LinkedHashMap<Configuration, double[]>();
    times.put(study.reference(), unfused(study));
    for (var trial : study.trials()) {
      times.put(trial.configuration(), trial.nanos().stream().mapToDouble(n -> n).toArray());
    }
    return times;
  }

  private static String name(Configuration configuration, SequencedSet<String> varying) {
    return ConfigurationLabel.distinguishing(configuration, varying);
  }

  private static String names(Set<Configuration> overlaps, SequencedSet<String> varying) {
    return String.join(
        ", ",
        overlaps.stream().skip(1).map(configuration -> name(configuration, varying)).toList());
  }

  private static Stream<String> unmatched(
      String side,
      Set<Configuration> all,
      Set<Configuration> shared,
      SequencedSet<String> varying) {
    return all.stream()
        .filter(configuration -> !shared.contains(configuration))
        .map(candidate -> "%s only in the %s".formatted(name(candidate, varying), side));
  }

  /// Returns the difference above which a change counts.
  public double margin() {
    return Math.max(threshold, noise);
  }

  /// Returns what counted as one value: "rounds" or "starts".
  public String values() {
    return starts > 1 ? "starts" : "rounds";
  }

  /// Returns true if the times of both studies may be compared.
  public boolean timesCount() {
    return count(Verdict.NOT_COMPARED) == 0;
  }

  /// Returns true if the reference's time changed, so that the configurations were judged beside
  /// it.
  public boolean referenceMoved() {
    return rows.getFirst().verdict() == Verdict.MACHINE_DIFFERED;
  }

  /// Returns the verdict on all configurations: slow if any is, else that the machine differed if
  /// that hides any, else fast if any is, else undecided if any is; not compared if ranks shared a
  /// GPU. A reference that moved is no verdict on the configurations.
  public Verdict verdict() {
    return Stream.of(
            Verdict.NOT_COMPARED,
            Verdict.SLOW,
            Verdict.MACHINE_DIFFERED,
            Verdict.FAST,
            Verdict.UNDECIDED)
        .filter(verdict -> judged().anyMatch(row -> row.verdict() == verdict))
        .findFirst()
        .orElse(Verdict.SAME);
  }

  private Stream<Row> judged() {
    return rows.stream().skip(referenceMoved() ? 1 : 0);
  }

  public long count(Verdict verdict) {
    return rows.stream().filter(row -> row.verdict() == verdict).count();
  }

  /// Returns the finding in one line, for example "SLOW: of 4 configurations 1 slower (4 splits by
  /// 9.8%), 3 the same (margin ±3.0%)".
  public String headline() {
    if (!timesCount()) {
      return "%s; the times of %d configurations are not compared"
          .formatted(Caveats.SHARED, rows.size());
    }
    var parts = new ArrayList<String>();
    mention(Verdict.SLOW, "slower", Comparator.<Row>comparingDouble(r -> -judgedBy(r).value()))
        .ifPresent(parts::add);
    mention(Verdict.FAST, "faster", Comparator.<Row>comparingDouble(r -> judgedBy(r).value()))
        .ifPresent(parts::add);
    mention(Verdict.SAME, "the same").ifPresent(parts::add);
    mention(Verdict.UNDECIDED, "undecided").ifPresent(parts::add);
    mention(Verdict.MACHINE_DIFFERED, "cannot be judged").ifPresent(parts::add);
    return "%s: %sof %d configurations %s (%smargin ±%s%s)%s"
        .formatted(
            verdict(),
            referenceMoved() ? reference() + " " : "",
            judged().count(),
            String.join(", ", parts),
            starts > 1 ? starts + " starts each, " : "",
            Percent.of(margin()),
            noise > threshold
                ? noise > MOST_MARGIN_OF_SAME
                    ? ", the noise: too much to call anything the same"
                    : ", the noise"
                : "",
            referenceChangedToo() + moreRounds());
  }

  /// Returns the change that decides on a row.
  private Estimate judgedBy(Row row) {
    return referenceMoved() ? row.beside().orElse(row.difference()) : row.difference();
  }

  /// Notes that the reference moved, in half a sentence.
  private String reference() {
    double moved = rows.getFirst().difference().value();
    return "the reference itself took %s %s, so each is judged beside its own run's reference:"
        .formatted(Percent.of(Math.abs(moved)), moved > 0 ? "longer" : "less time");
  }

  private Optional<String> mention(Verdict verdict, String word) {
    long rows = judged().filter(row -> row.verdict() == verdict).count();
    return rows == 0 ? Optional.empty() : Optional.of(rows + " " + word);
  }

  private String moreRounds() {
    var undecided = rows.stream().filter(row -> row.verdict() == Verdict.UNDECIDED).toList();
    var more = undecided.stream().map(Row::moreRounds).flatMapToInt(OptionalInt::stream).toArray();
    if (more.length == 0) {
      return undecided.isEmpty() ? "" : "; more rounds would not decide, a quieter machine may";
    }
    return "; about %d more %s in each run would decide%s"
        .formatted(
            Arrays.stream(more).max().orElseThrow(),
            values(),
            more.length < undecided.size() ? " " + more.length + " of the undecided" : "");
  }

  private Optional<String> mention(Verdict verdict, String word, Comparator<Row> most) {
    return rows.stream()
        .filter(row -> row.verdict() == verdict)
        .min(most)
        .map(
            row ->
                "%d %s (%s by %s%s)"
                    .formatted(
                        count(verdict),
                        word,
                        row.configuration(),
                        Percent.of(Math.abs(judgedBy(row).value())),
                        count(verdict) > 1 ? ", the most" : ""));
  }

  /// Notes a change of the reference too where times alone are judged: then the machine changed, or
  /// something that all configurations depend on.
  private String referenceChangedToo() {
    var unfused = rows.getFirst().verdict();
    boolean changed = unfused == Verdict.SLOW || unfused == Verdict.FAST;
    return changed && rows.size() > count(Verdict.UNDECIDED) + 1
        ? "; the unfused reference changed too, so it is not the overlap alone"
        : "";
  }

  /// Returns one row per configuration; its change beside the reference only if the reference
  /// moved.
  public Table table() {
    TableTypes.ready();
    var configuration = StringColumn.create("configuration");
    var verdicts = StringColumn.create("verdict");
    var first = DoubleColumn.create("first ms");
    var second = DoubleColumn.create("second ms");
    var difference = new Columns("difference %", "from %", "to %");
    var beside = new Columns(BESIDE_COLUMNS.get(0), BESIDE_COLUMNS.get(1), BESIDE_COLUMNS.get(2));
    var more = IntColumn.create("more " + values());
    for (var row : rows) {
      configuration.append(row.configuration());
      verdicts.append(row.verdict().toString());
      first.append(row.firstNanos() / NANOS_PER_MILLI);
      second.append(row.secondNanos() / NANOS_PER_MILLI);
      difference.append(Optional.of(row.difference()));
      beside.append(row.beside());
      row.moreRounds().ifPresentOrElse(more::append, more::appendMissing);
    }
    var table = Table.create(setting, configuration, verdicts, first, second);
    if (timesCount()) {
      difference.addTo(table);
      if (referenceMoved()) {
        beside.addTo(table);
      }
      table.addColumns(more);
    }
    return table;
  }

  /// The columns of an estimate, in percent.
  private record Columns(DoubleColumn value, DoubleColumn low, DoubleColumn high) {
    Columns(String value, String low, String high) {
      this(DoubleColumn.create(value), DoubleColumn.create(low), DoubleColumn.create(high));
    }

    void append(Optional<Estimate> estimate) {
      if (estimate.isEmpty()) {
        Stream.of(value, low, high).forEach(DoubleColumn::appendMissing);
        return;
      }
      value.append(100 * estimate.get().value());
      low.append(100 * estimate.get().low());
      high.append(100 * estimate.get().high());
    }

    void addTo(Table table) {
      table.addColumns(value, low, high);
    }
  }

  /// The table as text, with notes.
  @Override
  public String toString() {
    var lines = new ArrayList<String>();
    lines.add(HtmlTable.text(table(), rows.size()));
    differing.forEach(each -> lines.add("not measured alike: " + each));
    unmatched.forEach(each -> lines.add("not compared: " + each));
    lines.add(headline());
    return String.join("\n", lines);
  }

  @Override
  public MimeBundle display() {
    var notes = new ArrayList<String>();
    notes.add(headline());
    differing.forEach(each -> notes.add("not measured alike: " + each));
    unmatched.forEach(each -> notes.add("not compared: " + each));
    var html = new StringBuilder(HtmlTable.html(table(), rows.size()));
    notes.forEach(note -> html.append("<div>").append(HtmlTable.escape(note)).append("</div>"));
    return MimeBundle.text(toString()).with(MimeBundle.HTML, html.toString());
  }
}
