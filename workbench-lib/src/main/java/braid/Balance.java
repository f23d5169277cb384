package braid;

import braid.evidence.Charts;
import braid.internal.report.EvidenceDisplay;
import braid.internal.report.TableTypes;
import braid.internal.report.value.TimeScale;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Configuration.LayoutTuning;
import braid.model.ContextParallel;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import org.jfree.chart.JFreeChart;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Tokens, work and received bytes of each rank, for each division of an attention's tokens and
/// each method, counted in the schedules before anything runs. All ranks wait for the one with the
/// most work.
///
/// @param rows by layout and method; by predicted time if there is a machine
/// @param machine title of the machine of the predictions
/// @param leftOut a line for each layout that was not counted
public record Balance(
    AttentionSpec spec, int ranks, List<Row> rows, Optional<String> machine, List<String> leftOut)
    implements Displayable {
  /// Runs of consecutive tokens of a rank up to which a layout with a window is counted.
  private static final int MOST_RUNS = 64;

  private static final double BYTES_PER_MEGABYTE = 1e6;
  private static final double NANOS_PER_MILLI = 1e6;

  /// A division by a method.
  ///
  /// @param tokens tokens of each rank: its queries
  /// @param flops multiplications and additions of each rank
  /// @param receivedBytes bytes that each rank receives in an iteration
  /// @param nanos predicted time of an iteration
  public record Row(
      LayoutTuning division,
      List<Long> tokens,
      List<Double> flops,
      List<Long> receivedBytes,
      OptionalDouble nanos) {
    /// Returns the tokens of the rank with the most ÷ their mean.
    public double mostTokens() {
      return mostByMean(tokens);
    }

    /// Returns the work of the rank with the most ÷ its mean.
    public double mostWork() {
      return mostByMean(flops);
    }

    private static double mostByMean(List<? extends Number> values) {
      var all = values.stream().mapToDouble(Number::doubleValue).summaryStatistics();
      return all.getSum() == 0 ? 1 : all.getMax() / all.getAverage();
    }

    private double mostMegabytes() {
      return receivedBytes.stream().mapToLong(Long::longValue).max().orElse(0) / BYTES_PER_MEGABYTE;
    }
  }

  public Balance {
    rows = List.copyOf(rows);
    leftOut = List.copyOf(leftOut);
  }

  /// Counts what every layout costs by every method that the heads and lengths allow.
  public static Balance of(AttentionSpec spec, int ranks) {
    Given.check("spec", spec);
    if (ranks < 2) {
      throw new BraidException(
          "a balance needs 2 or more ranks but has %d; try Balance.of(spec, 4)".formatted(ranks));
    }
    var rows = new ArrayList<Row>();
    var leftOut = new ArrayList<String>();
    for (var layout : TokenLayout.values()) {
      var divided = spec.layout(layout);
      var without = Tokens.without(divided, ranks);
      if (without.isPresent()) {
        leftOut.add("left out %s: rank %d has no tokens".formatted(layout, without.getAsInt()));
        continue;
      }
      int runs = Tokens.of(divided, ranks, 0).runs().size();
      if (spec.window() > 0 && runs > MOST_RUNS) {
        leftOut.add(
            "left out %s: with a window, each pair of runs is a step, and rank 0 has %d runs of tokens; at most %d are counted"
                .formatted(layout, runs, MOST_RUNS));
        continue;
      }
      try {
        ContextParallel.ring().check(divided, ranks);
        methods(divided, ranks).forEach(tuning -> rows.add(row(divided, tuning, ranks)));
      } catch (BraidException e) {
        leftOut.add("left out %s: %s".formatted(layout, e.getMessage()));
      }
    }
    return new Balance(spec, ranks, rows, Optional.empty(), leftOut);
  }

  private static List<ContextParallel> methods(AttentionSpec spec, int ranks) {
    var methods = new ArrayList<ContextParallel>();
    methods.add(ContextParallel.ring());
    methods.add(ContextParallel.allGatherKv());
    IntStream.rangeClosed(2, ranks)
        .filter(_ -> spec.layout() != TokenLayout.STRIPED)
        .filter(sharing -> ranks % sharing == 0 && spec.kvHeads() % sharing == 0)
        .mapToObj(
            sharing ->
                sharing == ranks ? ContextParallel.ulysses() : ContextParallel.twoLevel(sharing))
        .forEach(methods::add);
    return methods;
  }

  private static Row row(AttentionSpec spec, ContextParallel tuning, int ranks) {
    var schedule = Schedule.of(spec, tuning, ranks);
    var flops = new double[ranks];
    var received = new long[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      for (var step : schedule.stepsUncached(rank)) {
        if (step instanceof Step.Attend attend) {
          flops[rank] += flops(attend);
        } else if (step instanceof Step.Copy copy) {
          for (var move : copy.moves()) {
            received[move.to().rank()] += move.isLocal() ? 0 : move.to().bytes();
          }
        }
      }
    }
    return new Row(
        new LayoutTuning(spec.layout(), tuning),
        IntStream.range(0, ranks).mapToObj(rank -> Tokens.of(spec, ranks, rank).count()).toList(),
        Arrays.stream(flops).boxed().toList(),
        Arrays.stream(received).boxed().toList(),
        OptionalDouble.empty());
  }

  private static double flops(Step.Attend attend) {
    var spec = attend.spec();
    return 4 * attend.pairs() * spec.heads() * spec.headSize();
  }

  /// Adds the times that a machine is predicted to take, and sorts by them. Heads that are divided
  /// are exchanged in two splits where that is faster: the second then hides behind the first.
  public Balance on(Machine described) {
    Given.check("described", described);
    var timed =
        rows.stream()
            .map(row -> timed(row, described))
            .sorted(Comparator.comparingDouble((Row row) -> row.nanos().orElseThrow()))
            .toList();
    return new Balance(spec, ranks, timed, Optional.of(described.title()), leftOut);
  }

  private Row timed(Row row, Machine machine) {
    var layout = row.division().layout();
    var divided = spec.layout(layout);
    var tunings = new ArrayList<ContextParallel>();
    tunings.add(row.division().tuning());
    var inTwo = tunings.getFirst().splits(2).streams(2);
    if (inTwo.headRanks(ranks) > 1 && inTwo.mostSplits(divided, ranks) % 2 == 0) {
      tunings.add(inTwo);
    }
    return tunings.stream()
        .map(
            tuning ->
                new Row(
                    new LayoutTuning(layout, tuning),
                    row.tokens(),
                    row.flops(),
                    row.receivedBytes(),
                    OptionalDouble.of(machine.iterationNanos(Schedule.of(divided, tuning, ranks)))))
        .min(Comparator.comparingDouble(each -> each.nanos().orElseThrow()))
        .orElseThrow();
  }

  /// Returns the division with the shortest predicted time, or with the least work of the busiest
  /// rank, then the fewest bytes received, if nothing is predicted.
  public Row best() {
    return rows.stream()
        .min(
            Comparator.comparingDouble((Row row) -> row.nanos().orElse(0))
                .thenComparingDouble(Row::mostWork)
                .thenComparingDouble(Row::mostMegabytes))
        .orElseThrow();
  }

  /// Returns the finding in one line.
  public String headline() {
    var best = best();
    var time =
        best.nanos().isPresent()
            ? "%s predicted on %s; "
                .formatted(TimeScale.format(best.nanos().getAsDouble()), machine.orElse(""))
            : "";
    return "%s: %swork of the busiest rank %.2f × the mean, %.1f MB received at most"
        .formatted(best.division(), time, best.mostWork(), best.mostMegabytes());
  }

  /// Returns one row per layout and method.
  public Table table() {
    TableTypes.ready();
    var layout = StringColumn.create("layout");
    var method = StringColumn.create("method");
    var tokens = DoubleColumn.create("tokens, most ÷ mean");
    var work = DoubleColumn.create("work, most ÷ mean");
    var received = DoubleColumn.create("received MB, most");
    var predicted = DoubleColumn.create("predicted ms");
    for (var row : rows) {
      layout.append(row.division().layout().toString());
      method.append(name(row.division().tuning()));
      tokens.append(row.mostTokens());
      work.append(row.mostWork());
      received.append(row.mostMegabytes());
      row.nanos().ifPresent(nanos -> predicted.append(nanos / NANOS_PER_MILLI));
    }
    var title = title() + machine.map(each -> "; predicted on " + each).orElse("");
    var table = Table.create(title, layout, method, tokens, work, received);
    return machine.isPresent() ? table.addColumns(predicted) : table;
  }

  private String title() {
    return "%s, %d ranks"
        .formatted(spec.packing().isSingle() ? "one sequence" : spec.packing(), ranks);
  }

  private static String name(ContextParallel tuning) {
    var method =
        tuning.method() == ContextParallel.Method.TWO_LEVEL
            ? "two-level, %d ranks per all-to-all".formatted(tuning.ulyssesRanks())
            : tuning.method().toString();
    return tuning.splits() == 1 ? method : "%s, %d splits".formatted(method, tuning.splits());
  }

  /// Returns the work of the busiest rank ÷ the mean: a bar per layout and method.
  public JFreeChart chart() {
    return Charts.bars(table())
        .names("layout")
        .series("method")
        .values("work, most ÷ mean")
        .title("Work of the busiest rank; " + title())
        .chart();
  }

  @Override
  public MimeBundle display() {
    return EvidenceDisplay.of(headline(), table(), () -> List.of(chart()), leftOut);
  }

  @Override
  public String toString() {
    return headline();
  }
}
