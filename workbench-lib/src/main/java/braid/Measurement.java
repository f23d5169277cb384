package braid;

import braid.internal.backend.Stream;
import braid.internal.pipeline.ClockAlignment;
import braid.internal.report.progress.Progress;
import braid.model.BraidException;
import braid.model.Profile;
import braid.model.Span;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.function.IntConsumer;
import java.util.function.Supplier;

/// Iterations that all ranks of a group run together, timed or profiled span by span.
record Measurement(ProcessGroup group, Iteration iteration) {
  private static final Progress.Task TIMING = new Progress.Task("timing", "timed", "iterations");
  private static final Progress.Task PROFILING =
      new Progress.Task("profiling", "profiled", "iterations");

  /// Unprofiled iterations: enough for the median that the profile's median is compared with.
  private static final int MOST_PLAIN = 10;

  /// The measured code, from its beginning to its end on this rank.
  @FunctionalInterface
  interface Iteration {
    void run(int number);
  }

  /// Streams of one pipeline.
  ///
  /// @param prefix prefix of the streams' names
  record Lanes(String prefix, List<Stream> streams) {
    List<Span> recorded() {
      return streams.stream()
          .flatMap(stream -> stream.recorded().stream())
          .map(span -> span.on(prefix + span.stream()))
          .toList();
    }
  }

  /// Returns the nanoseconds of each iteration on this rank. All ranks begin together.
  long[] time(int iterations) {
    checkIterations("time", iterations);
    return together(group, iterations, TIMING, done -> times(iterations, done).nanos);
  }

  /// Begin of each iteration on this rank's clock, and its duration.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  private record Times(long[] starts, long[] nanos) {}

  private Times times(int iterations, IntConsumer done) {
    var times = new Times(new long[iterations], new long[iterations]);
    for (int i = 0; i < iterations; i++) {
      times.starts[i] = System.nanoTime();
      iteration.run(i);
      times.nanos[i] = System.nanoTime() - times.starts[i];
      done.accept(i + 1);
    }
    return times;
  }

  /// Measures iterations that are not timed one by one, such as those in flight. All ranks begin
  /// together.
  ///
  /// @param body runs the iterations; it reports the number of iterations that are done to its
  ///   argument
  static long[] time(ProcessGroup group, int iterations, Function<IntConsumer, long[]> body) {
    checkIterations("time", iterations);
    return together(group, iterations, TIMING, body);
  }

  private static <T> T together(
      ProcessGroup group, int iterations, Progress.Task task, Function<IntConsumer, T> body) {
    boolean reports = group.rank() == 0;
    try (var progress = Progress.of(task, iterations, group.context().outbox(), reports)) {
      group.barrier();
      return body.apply(progress::done);
    }
  }

  /// Profiles this rank's streams on the clock of the group's rank 0. The front gathers the
  /// profile. The same number of iterations, but at most ten, run unprofiled, half of them before
  /// and half after, so that a drift of the machine is not taken for the cost of profiling.
  ///
  /// @param configuration called after all iterations
  Profile profile(
      int iterations, List<Lanes> lanes, Supplier<SequencedMap<String, String>> configuration) {
    checkIterations("profile", iterations);
    int plain = Math.min(iterations, MOST_PLAIN);
    boolean reports = group.rank() == 0;
    try (var progress = Progress.of(PROFILING, iterations, group.context().outbox(), reports)) {
      return profile(iterations, plain, progress, lanes, configuration);
    }
  }

  private Profile profile(
      int iterations,
      int plain,
      Progress progress,
      List<Lanes> lanes,
      Supplier<SequencedMap<String, String>> configuration) {
    var load = new MachineLoad(group);
    var plainNanos = new ArrayList<Long>();
    plainNanos.addAll(timePlain((plain + 1) / 2));
    var clock = ClockAlignment.measure(group.rank(), group::gather);
    // Origin of all ranks' times, on this rank's clock.
    long origin = group.broadcast(System.nanoTime(), 0) + clock.offsetNanos();
    lanes.forEach(each -> each.streams.forEach(stream -> stream.record(origin)));
    var starts = new ArrayList<Long>();
    var nanos = new ArrayList<Long>();
    var spans = new ArrayList<Span>();
    try {
      group.barrier();
      var times = times(iterations, progress::done);
      for (int i = 0; i < iterations; i++) {
        starts.add(times.starts[i] - origin);
        nanos.add(times.nanos[i]);
      }
    } finally {
      lanes.stream().map(Lanes::recorded).forEach(spans::addAll);
    }
    plainNanos.addAll(timePlain(plain / 2));
    // Before the hardware changes its state.
    var readings = group.context().backend().readings();
    spans.sort(Comparator.comparingLong(Span::startNanos));
    var counters = new LinkedHashMap<>(group.counters());
    counters.putAll(readings);
    var loadMeanwhile = load.sinceCreation(0);
    var columns = configuration.get();
    group.describeMachine(columns);
    var profile =
        new Profile(
            group.place(),
            columns,
            nanos,
            spans,
            clock.errorNanos() + group.context().backend().clockErrorNanos(),
            counters,
            plainNanos,
            starts,
            group.context().backend().unowned(),
            loadMeanwhile,
            group.hostIfSeveral());
    group.context().outbox().publish(profile.display());
    return profile;
  }

  private List<Long> timePlain(int iterations) {
    group.barrier();
    return Arrays.stream(times(iterations, _ -> {}).nanos).boxed().toList();
  }

  private static void checkIterations(String call, int iterations) {
    if (iterations < 1) {
      throw new BraidException(
          "%s needs 1 or more iterations but was given %d; try %s(10)"
              .formatted(call, iterations, call));
    }
  }
}
