package braid.evidence;

import braid.internal.report.ConfigurationColumns;
import braid.internal.report.EvidenceDisplay;
import braid.internal.report.ProfileTables;
import braid.internal.report.TableTypes;
import braid.internal.report.chart.BreakdownChart;
import braid.internal.report.chart.TimelineChart;
import braid.internal.report.json.ChromeTrace;
import braid.internal.report.statistics.RankTimes;
import braid.internal.report.statistics.Spread;
import braid.internal.report.statistics.StreamOrder;
import braid.internal.report.statistics.TwoSamples;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.BraidException;
import braid.model.HostLoad;
import braid.model.MimeBundle;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;
import tech.tablesaw.columns.Column;

/// Profiles of all ranks for one configuration, by rank. An iteration's time is the time of its
/// slowest rank.
public record ProfileSet(List<Profile> profiles) implements Evidence {
  /// Backend of a profile that a simulation predicts.
  public static final String SIMULATED = "simulated";

  private static final String EXPOSED = "exposed ms";

  /// Confidence with which profiling must cost time for its cost to be printed.
  private static final double SURE_OF_COST = 0.95;

  /// Times of an iteration, each of its slowest rank.
  ///
  /// @param predicted whether a simulation predicts them
  public record Summary(
      int ranks,
      int iterations,
      double medianNanos,
      double p10Nanos,
      double p90Nanos,
      boolean predicted) {
    @Override
    public String toString() {
      return "%s%s an iteration (median of %d, p10 %s, p90 %s; slowest of %d %s)"
          .formatted(
              predicted ? "predicted: " : "",
              TimeScale.format(medianNanos),
              iterations,
              TimeScale.format(p10Nanos),
              TimeScale.format(p90Nanos),
              ranks,
              ranks == 1 ? "rank" : "ranks");
    }
  }

  public ProfileSet {
    profiles = profiles.stream().sorted(Comparator.comparingInt(p -> p.place().rank())).toList();
    if (profiles.isEmpty()) {
      throw new BraidException("a profile set needs the profile of every rank but has none");
    }
    var first = profiles.getFirst();
    for (var profile : profiles) {
      requireSameRun(first, profile);
    }
    for (int rank = 0; rank < first.place().size(); rank++) {
      int wanted = rank;
      long found = profiles.stream().filter(p -> p.place().rank() == wanted).count();
      if (found != 1) {
        throw new BraidException(
            "a profile set needs one profile of each rank 0..%d but rank %d has %d"
                .formatted(first.place().size() - 1, rank, found));
      }
    }
  }

  /// Gathers the ranks' profiles, in any order; a missing rank or one with another configuration is
  /// an error that names it.
  public static ProfileSet of(List<Profile> profiles) {
    return new ProfileSet(profiles);
  }

  private static void requireSameRun(Profile first, Profile other) {
    requireSame("world size", first, first.place().size(), other, other.place().size());
    requireSame("iterations", first, first.iterations(), other, other.iterations());
    var names = new LinkedHashMap<>(first.configuration());
    names.putAll(other.configuration());
    for (var name : names.keySet()) {
      requireSame(
          "`" + name + "`",
          first,
          first.configuration().getOrDefault(name, "none"),
          other,
          other.configuration().getOrDefault(name, "none"));
    }
  }

  private static void requireSame(String property, Profile a, Object ofA, Profile b, Object ofB) {
    if (!ofA.equals(ofB)) {
      throw new BraidException(
          "profiles of one set must agree in %s but rank %d has %s and rank %d has %s"
              .formatted(property, a.place().rank(), ofA, b.place().rank(), ofB));
    }
  }

  public int ranks() {
    return profiles.size();
  }

  public int iterations() {
    return profiles.getFirst().iterations();
  }

  public SequencedMap<String, String> configuration() {
    return profiles.getFirst().configuration();
  }

  @Override
  public boolean timesCount() {
    return Caveats.timesCount(configuration());
  }

  @Override
  public List<String> faults() {
    var limits = SpeedLimits.of(configuration(), ranks());
    var name =
        configuration().containsKey("method") ? ConfigurationLabel.ownName(configuration()) : "";
    var faults = new ArrayList<String>();
    limits.fault(name, summary().medianNanos()).ifPresent(faults::add);
    double moved =
        profiles.stream()
                .flatMap(profile -> profile.spans().stream())
                .filter(ProfileSet::isCopy)
                .mapToDouble(Span::bytes)
                .sum()
            / iterations()
            / ranks();
    if (moved > 0) {
      limits.bytesFault(name, moved).ifPresent(faults::add);
    }
    return faults;
  }

  private static boolean isCopy(Span span) {
    return span.stage() == Stage.COPY;
  }

  /// Returns the limits of what this profile shows, one line each.
  private List<String> notes() {
    var notes = new ArrayList<String>();
    if (!timesCount()) {
      notes.add(Caveats.SHARED);
    }
    profiles.stream()
        .flatMap(profile -> profile.load().stream())
        .filter(HostLoad::isHigh)
        .forEach(load -> notes.add("doubtful: " + load));
    Caveats.oneRank(configuration(), ranks()).ifPresent(notes::add);
    return notes;
  }

  /// Returns the largest error of position between spans of two ranks.
  public long clockErrorNanos() {
    return profiles.stream().mapToLong(Profile::clockErrorNanos).max().orElseThrow();
  }

  /// Returns the slowest rank's time of an iteration.
  public long slowestNanos(int iteration) {
    requireIteration(iteration);
    return profiles.stream().mapToLong(p -> p.iterationNanos().get(iteration)).max().orElseThrow();
  }

  /// Returns the iteration whose time is nearest to the median: the one to look at first.
  public int medianIteration() {
    double median = summary().medianNanos();
    return IntStream.range(0, iterations())
        .boxed()
        .min(Comparator.comparingDouble(i -> Math.abs(slowestNanos(i) - median)))
        .orElseThrow();
  }

  public Summary summary() {
    var times = Spread.of(slowest(iterations(), Profile::iterationNanos));
    return new Summary(
        ranks(),
        iterations(),
        times.medianNanos(),
        times.p10Nanos(),
        times.p90Nanos(),
        isPredicted());
  }

  /// Returns whether a simulation predicts it, so no rank has run.
  boolean isPredicted() {
    return SIMULATED.equals(configuration().get("backend"));
  }

  /// Returns the cost of profiling: the median time of an iteration with profiling ÷ without, each
  /// of the slowest rank. Empty if no iteration ran without, as in profiles of earlier versions.
  public OptionalDouble cost() {
    return Spread.ratioOfMedians(slowest(iterations(), Profile::iterationNanos), plain());
  }

  private List<Long> plain() {
    int plain = profiles.stream().mapToInt(p -> p.plainNanos().size()).min().orElseThrow();
    return slowest(plain, Profile::plainNanos);
  }

  /// Returns true if the cost is more than the noise of the iterations.
  private boolean costs() {
    var plain = doubles(plain());
    if (plain.length == 0) {
      return false;
    }
    var excess =
        TwoSamples.excess(
            plain, doubles(slowest(iterations(), Profile::iterationNanos)), SURE_OF_COST);
    return excess.confidence() >= SURE_OF_COST && excess.low() > 0;
  }

  private static double[] doubles(List<Long> nanos) {
    return nanos.stream().mapToDouble(Long::doubleValue).toArray();
  }

  private List<Long> slowest(int iterations, Function<Profile, List<Long>> times) {
    return IntStream.range(0, iterations)
        .mapToObj(i -> profiles.stream().mapToLong(p -> times.apply(p).get(i)).max().orElseThrow())
        .toList();
  }

  /// Returns one row per span: rank, iteration, chunk, stage, stream, times, bytes, flops and the
  /// configuration.
  public Table table() {
    return ProfileTables.spans(profiles);
  }

  /// Returns one row per set: a name, the settings in which they differ, exposed communication,
  /// times of the slowest rank, and bytes received per iteration by the rank that receives most.
  /// GB/s are these bytes in the median time.
  public static Table compared(List<ProfileSet> sets) {
    var rows = sets.stream().map(ProfileSet::configuration).toList();
    TableTypes.ready();
    var columns = new ArrayList<Column<?>>();
    columns.add(StringColumn.create("configuration", ConfigurationLabel.names(rows)));
    for (var column : ConfigurationColumns.of(rows)) {
      if (column.name().equals("pattern") || column.unique().size() > 1) {
        columns.add(column);
      }
    }
    var times = sets.stream().map(ProfileSet::summary).toList();
    columns.add(millis(EXPOSED, sets.stream().mapToDouble(ProfileSet::exposedNanos)));
    columns.add(millis("median ms", times.stream().mapToDouble(Summary::medianNanos)));
    columns.add(millis("p10 ms", times.stream().mapToDouble(Summary::p10Nanos)));
    columns.add(millis("p90 ms", times.stream().mapToDouble(Summary::p90Nanos)));
    var received = sets.stream().mapToDouble(ProfileSet::receivedBytes).toArray();
    columns.add(DoubleColumn.create("received MB", Arrays.stream(received).map(b -> b / 1e6)));
    columns.add(
        DoubleColumn.create(
            "GB/s",
            IntStream.range(0, sets.size())
                .mapToDouble(i -> received[i] / times.get(i).medianNanos())));
    var common = ConfigurationLabel.of(ConfigurationLabel.common(rows));
    return Table.create(common.isEmpty() ? "profiles" : common, columns);
  }

  /// Returns the display of several configurations: what the time of an iteration was spent on, and
  /// the most important columns of [#compared].
  static MimeBundle overview(List<ProfileSet> sets, List<String> findings) {
    if (sets.isEmpty()) {
      return MimeBundle.text(
          findings.isEmpty() ? "nothing has been measured yet" : String.join("\n", findings));
    }
    var rows = sets.stream().map(ProfileSet::configuration).toList();
    var all = compared(sets);
    var few = all.selectColumns("configuration", EXPOSED, "median ms", "p10 ms", "p90 ms", "GB/s");
    var shown = sets.stream().filter(ProfileSet::hasSpans).toList();
    var headline = sets.size() == 1 ? sets.getFirst().headline() : headline(sets, all);
    var notes = new ArrayList<>(findings);
    notes.add(
        exposedMeans(sets.stream().flatMap(set -> set.profiles.stream()))
            + "; profiles.table() has all columns, profiles.of(\"ring\") one configuration");
    return EvidenceDisplay.of(
        headline,
        few.setName("median over iterations"),
        () ->
            shown.isEmpty()
                ? List.of()
                : List.of(
                    BreakdownChart.ofConfigurations(
                        ConfigurationLabel.names(
                            shown.stream().map(ProfileSet::configuration).toList()),
                        shown.stream().map(ProfileSet::profiles).toList(),
                        ConfigurationLabel.of(ConfigurationLabel.common(rows)))),
        notes);
  }

  private static String exposedMeans(Stream<Profile> profiles) {
    return "exposed: time in which communication runs and no %s does, on the rank with the most of it"
        .formatted(RankTimes.compute(profiles.map(RankTimes::of).toList()));
  }

  private static String headline(List<ProfileSet> sets, Table all) {
    var parts = new ArrayList<String>();
    parts.add(
        sets.stream().allMatch(ProfileSet::timesCount)
            ? leastExposed(all)
            : all.rowCount() + " configurations");
    sets.stream().map(ProfileSet::notes).flatMap(List::stream).distinct().forEach(parts::add);
    return String.join("; ", parts);
  }

  private static String leastExposed(Table all) {
    var exposed = all.doubleColumn(EXPOSED);
    int least =
        IntStream.range(0, all.rowCount())
            .boxed()
            .min(Comparator.comparingDouble(exposed::getDouble))
            .orElseThrow();
    return "%d configurations; least exposed communication: %s, %s of %s"
        .formatted(
            all.rowCount(),
            all.stringColumn("configuration").get(least),
            TimeScale.format(1e6 * exposed.getDouble(least)),
            TimeScale.format(1e6 * all.doubleColumn("median ms").getDouble(least)));
  }

  private static DoubleColumn millis(String name, DoubleStream nanos) {
    return DoubleColumn.create(name, nanos.map(n -> n / 1e6));
  }

  /// Returns the exposed communication of an iteration: the time in which communication runs and no
  /// GEMM or attention does, on the rank with the most of it, as the median over the iterations.
  public double exposedNanos() {
    return Spread.quantile(
        IntStream.range(0, iterations())
            .mapToDouble(
                i ->
                    profiles.stream()
                        .mapToDouble(p -> RankTimes.of(p, i).exposed())
                        .max()
                        .orElse(0))
            .toArray(),
        0.5);
  }

  /// Returns the most important columns of [#stages], exposed communication first. Ranks with the
  /// same numbers share a row.
  public Table overview() {
    return ProfileTables.overview(profiles);
  }

  /// Returns when the first span of a stage begins, as a share of the iteration from its first span
  /// to the end of its last; the mean of all ranks and iterations. An iteration without the stage
  /// counts as 1.
  public double firstStart(Stage stage) {
    requireSpans();
    double sum = 0;
    for (var profile : profiles) {
      for (int i = 0; i < iterations(); i++) {
        long begin = Long.MAX_VALUE;
        long end = Long.MIN_VALUE;
        long first = Long.MAX_VALUE;
        for (var span : profile.spans()) {
          if (span.iteration() == i) {
            begin = Math.min(begin, span.startNanos());
            end = Math.max(end, span.endNanos());
            first = span.stage() == stage ? Math.min(first, span.startNanos()) : first;
          }
        }
        sum += end <= begin ? 1 : (double) (Math.min(first, end) - begin) / (end - begin);
      }
    }
    return sum / ranks() / iterations();
  }

  private double receivedBytes() {
    return profiles.stream()
        .mapToDouble(
            profile ->
                (double)
                        profile.spans().stream()
                            .filter(ProfileSet::isCopy)
                            .mapToLong(Span::bytes)
                            .sum()
                    / profile.iterations())
        .max()
        .orElseThrow();
  }

  /// Returns the time per stage of each rank's mean iteration, and both measures of overlap. Here
  /// saved ÷ savable uses T_compute and T_comm of this run, in which they slow each other; it is
  /// missing if less than 1% of an iteration could be saved.
  public Table stages() {
    return ProfileTables.stages(profiles, profiles);
  }

  /// Returns [#stages()] with T_compute and T_comm of the unfused run in saved ÷ savable: the share
  /// of the possible saving that the overlap reached, mutual slowdown included.
  public Table stages(ProfileSet unfused) {
    requireSame(
        "world size", profiles.getFirst(), ranks(), unfused.profiles.getFirst(), unfused.ranks());
    return ProfileTables.stages(profiles, unfused.profiles);
  }

  /// Returns the units that did each stage on each rank in a mean iteration, as far as the backend
  /// reports them: on GPUs every kernel by name, every copy and every fill, also those that belong
  /// to no step. A stage without a row of a kernel used no kernel.
  public Table engines() {
    return ProfileTables.engines(profiles);
  }

  /// Returns each rank's counters: rendezvous, allocations, plans built and reused.
  public Table counters() {
    return ProfileTables.counters(profiles);
  }

  /// Returns all spans in the trace event format, for <https://ui.perfetto.dev> or
  /// chrome://tracing: one process per rank, one thread per stream.
  public String chromeTrace() {
    return ChromeTrace.write(profiles, StreamOrder.of(profiles));
  }

  /// Writes [#chromeTrace()] to a file, atomically, and returns its absolute path. An existing file
  /// is replaced.
  public Path saveChromeTrace(Path file) {
    var target = file.toAbsolutePath().normalize();
    try {
      WholeFile.write(target, chromeTrace());
    } catch (IOException e) {
      throw new BraidException(
          "the trace could not be saved in %s: %s; name a file in an existing directory"
              .formatted(target, e),
          e);
    }
    return target;
  }

  /// Returns a Gantt chart of the median iteration: one lane per stream of a rank.
  public JFreeChart timeline() {
    return timeline(medianIteration());
  }

  /// Returns the chart of one iteration.
  ///
  /// @param ranks ranks to draw; all if none is given
  public JFreeChart timeline(int iteration, int... ranks) {
    requireIteration(iteration);
    requireSpans();
    for (int rank : ranks) {
      if (rank < 0 || rank >= ranks()) {
        throw new BraidException(
            "the rank of a timeline must be 0..%d but was %d".formatted(ranks() - 1, rank));
      }
    }
    var shown = ranks.length == 0 ? IntStream.range(0, ranks()) : Arrays.stream(ranks);
    return TimelineChart.of(
        profiles,
        new TimelineChart.Shown(
            iteration,
            shown.boxed().toList(),
            slowestNanos(iteration),
            iteration == medianIteration(),
            clockErrorNanos()));
  }

  /// Returns the chart of the median iteration of some ranks: `timelineOf(0)`.
  public JFreeChart timelineOf(int... ranks) {
    return timeline(medianIteration(), ranks);
  }

  /// Returns one bar per rank, by what the time of a mean iteration was spent on.
  public JFreeChart breakdown() {
    requireSpans();
    return BreakdownChart.of(profiles);
  }

  private boolean hasCounters() {
    return profiles.stream().anyMatch(p -> !p.counters().isEmpty());
  }

  private boolean hasEngines() {
    return profiles.stream()
        .anyMatch(
            p ->
                !p.unowned().isEmpty()
                    || p.spans().stream().anyMatch(span -> !span.activities().isEmpty()));
  }

  private boolean hasSpans() {
    return profiles.stream().anyMatch(p -> !p.spans().isEmpty());
  }

  private void requireSpans() {
    if (!hasSpans()) {
      throw new BraidException(
          "a timeline needs spans but these profiles have 0; use pipe.profile(n)");
    }
  }

  private void requireIteration(int iteration) {
    if (iteration < 0 || iteration >= iterations()) {
      throw new BraidException(
          "iteration must be 0..%d but was %d".formatted(iterations() - 1, iteration));
    }
  }

  @Override
  public String headline() {
    var name = ConfigurationLabel.brief(configuration());
    var parts = new ArrayList<String>();
    SpeedLimits.brief(faults()).ifPresent(parts::add);
    parts.add((name.isEmpty() ? "" : name + ": ") + summary());
    if (costs()) {
      parts.add(String.format(Locale.ROOT, "with profiling ÷ without: %.2f", cost().orElseThrow()));
    }
    parts.addAll(notes());
    return String.join("; ", parts);
  }

  @Override
  public SequencedMap<String, Table> tables() {
    var tables = new LinkedHashMap<String, Table>();
    tables.put("stages", stages());
    if (hasEngines()) {
      tables.put("engines", engines());
    }
    if (hasCounters()) {
      tables.put("counters", counters());
    }
    tables.put("spans", table());
    return tables;
  }

  @Override
  public SequencedMap<String, JFreeChart> charts() {
    var charts = new LinkedHashMap<String, JFreeChart>();
    if (hasSpans()) {
      charts.put("breakdown", breakdown());
      charts.put("timeline", timeline());
    }
    return charts;
  }

  @Override
  public MimeBundle display() {
    var more = new ArrayList<String>();
    more.add("stages()");
    if (hasEngines()) {
      more.add("engines()");
    }
    if (hasCounters()) {
      more.add("counters()");
    }
    more.add("timelineOf(0)");
    return EvidenceDisplay.of(
        headline(),
        overview().removeColumns(ProfileTables.SAVED),
        () -> List.copyOf(charts().sequencedValues()),
        List.of(
            exposedMeans(profiles.stream())
                + (isPredicted()
                    ? "; more by calls on it: ."
                    : "; more in %%front: profiles.latest().")
                + String.join(", .", more)));
  }

  @Override
  public String toString() {
    return headline();
  }
}
