package braid;

import braid.evidence.Comparison;
import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.evidence.RankValues;
import braid.internal.report.json.ReadingsJson;
import braid.internal.report.progress.Progress;
import braid.internal.report.progress.ProgressBar;
import braid.internal.report.statistics.Ranking;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.statistics.Rounds;
import braid.model.Configuration;
import braid.model.HardwareReading;
import braid.model.HostLoad;
import braid.model.Timing;
import braid.schedule.simulation.Machine;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.function.IntConsumer;
import java.util.function.Supplier;

/// Candidates of a study: verifies them and measures all in rounds, on all ranks together. Rank 0
/// shows the progress, decides when to stop, and broadcasts the study.
final class Candidates {
  private static final int ROOT = 0;

  private final ProcessGroup group;
  private final RoundPlan plan;
  private final int warmup;
  private final Timing form;
  private final long order;
  private final Optional<Machine> machine;
  private final int configurations;
  private final int builds;
  private int roundsBefore;
  private Optional<ProgressBar> progress = Optional.empty();

  /// @param configurations number of candidates without the reference
  /// @param warmup untimed iterations before each measurement
  /// @param seed seed of the order; rank 0's counts
  /// @param machine machine of the predictions; empty for none
  /// @param builds number of times that everything is built and measured; the plan is for all
  Candidates(
      ProcessGroup group,
      int configurations,
      RoundPlan plan,
      int warmup,
      Timing form,
      long seed,
      Optional<Machine> machine,
      int builds) {
    this.group = group;
    this.plan = plan.ofEach(builds);
    this.builds = builds;
    this.warmup = warmup;
    this.form = form;
    this.machine = machine;
    this.configurations = configurations;
    order = group.broadcast(seed, ROOT);
  }

  /// @param verified number of steps that verify, before those that measure
  private void begin(String subject, int verified, int measured, String first) {
    if (group.rank() == ROOT) {
      var outbox = RankContext.current().outbox();
      progress =
          Optional.of(
              new ProgressBar(subject, verified + measured, first, outbox)
                  .pacedAfter(verified)
                  .ticking());
    }
  }

  /// Shows a line beside the progress, on rank 0.
  private void note(String line) {
    if (group.rank() == ROOT) {
      RankContext.current().outbox().note(line);
    }
  }

  /// Shows the load until the end of the progress; then the study has its own.
  private void warn(HostLoad load) {
    progress.ifPresent(bar -> bar.warn(load.toString()));
  }

  /// Work of a candidate, on this rank.
  sealed interface Work {
    default void verify() {}

    long[] time(int iterations, Timing form);

    /// Returns the time of an iteration that a simulation predicts; 0 if it cannot be simulated.
    default double predictedNanos(Machine machine) {
      return 0;
    }

    default void close() {}

    /// @param verification verifies the chain, or another one of the same tunings
    /// @param closing closes what the tuner has built
    record OfChain(Chain chain, Runnable verification, Runnable closing) implements Work {
      @Override
      public void verify() {
        verification.run();
      }

      @Override
      public long[] time(int iterations, Timing form) {
        return chain.time(iterations, form);
      }

      @Override
      public double predictedNanos(Machine machine) {
        return chain.predictedNanos(machine);
      }

      @Override
      public void close() {
        closing.run();
      }
    }

    /// Code, which runs once at a time.
    record OfCode(ProcessGroup group, Runnable code) implements Work {
      @Override
      public long[] time(int iterations, Timing form) {
        return new Measurement(group, _ -> code.run()).time(iterations);
      }
    }

    /// A step of another stack, which times itself.
    record OfPeers(Peers peers, String step) implements Work {
      @Override
      public long[] time(int iterations, Timing form) {
        return peers.time(step, iterations, form);
      }
    }
  }

  /// A configuration with its work and the hardware's readings.
  record Candidate(Configuration configuration, Work work, List<HardwareReading> readings) {
    Candidate(Configuration configuration, Work work) {
      this(configuration, work, new ArrayList<>());
    }
  }

  /// @param work builds the work of each configuration, the reference first; what is built is
  ///   closed even if building fails
  /// @param problem returns the problem's columns, given the reference
  /// @param notes lines to show beside the progress
  Study<?> study(
      SequencedMap<Configuration, Supplier<Work>> work,
      Function<Work, SequencedMap<String, String>> problem,
      List<String> notes) {
    begin(
        "tuning",
        configurations + 1,
        (configurations + 2) * plan.first() * builds,
        "building and verifying %d configurations".formatted(configurations + 1));
    int least = Ranking.leastRounds(configurations);
    int most = builds * plan.mostRounds();
    if (most < least) {
      note(
          "%d rounds are too few to call one of %d configurations better; it takes %d: repeats(%d)"
              .formatted(most, configurations, least, least));
    }
    var load = new MachineLoad(group);
    notes.forEach(this::note);
    try (var _ = Progress.reportedElsewhere()) {
      var studies = new ArrayList<Study<?>>();
      for (int build = 1; build <= builds; build++) {
        boolean first = build == 1;
        studies.add(
            built(
                work,
                candidates -> {
                  if (first) {
                    verify(candidates);
                  }
                  var columns = columns(problem, candidates);
                  if (first) {
                    load.sinceCreation(ROOT).filter(HostLoad::isHigh).ifPresent(this::warn);
                  }
                  return measure(candidates, columns);
                }));
        roundsBefore += studies.getLast().repeats();
      }
      var study = builds == 1 ? studies.getFirst() : Comparison.ofBuilds(studies);
      progress.ifPresent(
          bar -> {
            bar.finish("done after " + study.repeats() + " rounds");
            RankContext.current().outbox().publish(RankValues.bundle(study));
          });
      return study;
    } finally {
      progress.ifPresent(ProgressBar::close);
    }
  }

  /// Builds the work of all candidates, and closes it.
  private static Study<?> built(
      SequencedMap<Configuration, Supplier<Work>> work,
      Function<List<Candidate>, Study<?>> measurement) {
    var candidates = new ArrayList<Candidate>();
    try {
      work.forEach(
          (configuration, built) -> candidates.add(new Candidate(configuration, built.get())));
      return measurement.apply(candidates);
    } finally {
      candidates.reversed().forEach(each -> each.work().close());
    }
  }

  private void verify(List<Candidate> candidates) {
    for (var candidate : candidates) {
      progress.ifPresent(bar -> bar.step("verifying " + candidate.configuration()));
      candidate.work().verify();
    }
  }

  private SequencedMap<String, String> columns(
      Function<Work, SequencedMap<String, String>> problem, List<Candidate> candidates) {
    var columns = problem.apply(candidates.getFirst().work());
    // Studies of earlier versions have no such column; all of them were timed one by one.
    if (form != Timing.LATENCY) {
      columns.put("timing", form.toString());
    }
    group.describeMachine(columns);
    return columns;
  }

  /// Measures candidates without verifying them, and publishes nothing: to choose those of a study.
  Study<?> screen(SequencedMap<Configuration, Supplier<Work>> work) {
    begin(
        "searching",
        0,
        (configurations + 2) * plan.first(),
        "building %d configurations".formatted(configurations + 1));
    try (var _ = Progress.reportedElsewhere()) {
      var study = built(work, candidates -> measure(candidates, new LinkedHashMap<>()));
      progress.ifPresent(bar -> bar.finish("done"));
      return study;
    } finally {
      progress.ifPresent(ProgressBar::close);
    }
  }

  private Study<?> measure(List<Candidate> candidates, SequencedMap<String, String> problem) {
    var reference = candidates.getFirst();
    var entries = new ArrayList<Candidate>();
    entries.add(reference);
    entries.addAll(candidates);
    var load = new MachineLoad(group);
    long startNanos = System.nanoTime();
    var slowest = measureAsPlanned(entries);
    long measuredNanos = System.nanoTime() - startNanos;
    var loadMeanwhile = load.sinceCreation(ROOT);
    var ofReference = readingsOfAllRanks(reference);
    var trials = new ArrayList<Study.Trial<Configuration>>();
    for (int entry = 2; entry < entries.size(); entry++) {
      var candidate = entries.get(entry);
      trials.add(
          new Study.Trial<>(
              candidate.configuration(), list(slowest[entry]), readingsOfAllRanks(candidate)));
    }
    var study =
        new Study<>(
            problem,
            group.size(),
            order,
            list(slowest[0]),
            list(slowest[1]),
            trials,
            ofReference,
            reference.configuration(),
            machine
                .filter(_ -> group.rank() == ROOT)
                .map(described -> predicted(described, candidates)),
            measuredNanos,
            List.of(),
            List.of(),
            loadMeanwhile);
    return Study.fromJson(group.broadcast(study.toJson(), ROOT));
  }

  private static Study.Prediction predicted(Machine machine, List<Candidate> candidates) {
    return new Study.Prediction(
        machine.title(),
        candidates.stream().map(each -> Math.round(each.work().predictedNanos(machine))).toList());
  }

  /// Measures rounds until rank 0 decides to stop.
  ///
  /// @return times of the slowest rank: one row per entry, one column per round
  private long[][] measureAsPlanned(List<Candidate> entries) {
    var rounds =
        new Rounds(
            entries.stream().<Rounds.Candidate>map(each -> () -> nanos(each)).toList(),
            order + roundsBefore);
    long startNanos = System.nanoTime();
    IntConsumer begun =
        e -> progress.ifPresent(bar -> bar.step(entries.get(e).configuration().toString()));
    rounds.measure(1, begun);
    long roundNanos = System.nanoTime() - startNanos;
    int first = (int) group.broadcast(plan.firstAfforded(roundNanos, builds), ROOT);
    tooLong(roundNanos, first).ifPresent(this::note);
    if (first < plan.first()) {
      int all = entries.size() - 1 + entries.size() * (roundsBefore + first);
      progress.ifPresent(bar -> bar.expect(all));
    }
    long more = first - 1L;
    long[][] slowest;
    do {
      rounds.measure((int) more, begun);
      slowest = slowestOfAllRanks(rounds.nanos());
      long decided = group.rank() == ROOT ? plan.more(slowest, System.nanoTime() - startNanos) : 0;
      more = group.broadcast(decided, ROOT);
      if (more > 0) {
        int expected = roundsBefore + slowest[0].length + (int) more;
        int all = entries.size() - 1 + entries.size() * expected;
        progress.ifPresent(bar -> bar.expect(all));
      }
    } while (more > 0);
    group.context().spentDeciding(System.nanoTime() - startNanos);
    return slowest;
  }

  /// Says that the first rounds take longer than the budget, by the duration of the first one.
  private Optional<String> tooLong(long roundNanos, int first) {
    double firstNanos = (double) roundNanos * plan.first();
    return plan.budget().isZero() || firstNanos < 2.0 * plan.budget().toNanos()
        ? Optional.empty()
        : Optional.of(
            String.format(
                Locale.ROOT,
                "a round of %d configurations takes %.2g s, so the fewest rounds that can decide, %d, take about %.0f s, more than the budget of %.3g s%s; try fewer configurations or a smaller problem",
                configurations,
                roundNanos / 1e9,
                plan.first(),
                firstNanos / 1e9,
                plan.budget().toNanos() / 1e9,
                first < plan.first() ? ": only %d are measured".formatted(first) : ""));
  }

  private long nanos(Candidate candidate) {
    long nanos = candidate.work().time(warmup + 1, form)[warmup];
    // Before the hardware changes its state.
    candidate.readings().add(group.context().backend().reading());
    return nanos;
  }

  private long[][] slowestOfAllRanks(long[][] mine) {
    int rounds = mine[0].length;
    var bytes = ByteBuffer.allocate(mine.length * rounds * Long.BYTES);
    for (var row : mine) {
      bytes.asLongBuffer().put(row);
      bytes.position(bytes.position() + rounds * Long.BYTES);
    }
    var ofRanks =
        group.gather(bytes.array()).stream().map(b -> ByteBuffer.wrap(b).asLongBuffer()).toList();
    var slowest = new long[mine.length][rounds];
    for (int row = 0; row < mine.length; row++) {
      for (int round = 0; round < rounds; round++) {
        int index = row * rounds + round;
        slowest[row][round] = ofRanks.stream().mapToLong(b -> b.get(index)).max().orElseThrow();
      }
    }
    return slowest;
  }

  private static List<Long> list(long[] nanos) {
    return Arrays.stream(nanos).boxed().toList();
  }

  /// Returns the readings of all ranks, in the order of measurement.
  private List<HardwareReading> readingsOfAllRanks(Candidate candidate) {
    return HardwareReading.together(
        group.gather(ReadingsJson.write(candidate.readings())).stream()
            .map(ReadingsJson::read)
            .toList());
  }
}
