package braid;

import braid.internal.backend.Stream;
import braid.internal.pipeline.ClockAlignment;
import braid.internal.report.progress.Progress;
import braid.model.BraidException;
import braid.model.Profile;
import braid.model.Span;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.function.IntConsumer;
import java.util.function.Supplier;

/// Iterations of something that all ranks of a group run together, timed or looked at span by span.
record Measurement(ProcessGroup group, Iteration iteration) {
  private static final Progress.Task TIMING = new Progress.Task("timing", "timed", "iterations");
  private static final Progress.Task PROFILING =
      new Progress.Task("profiling", "profiled", "iterations");

  /// Enough for a median that a profile's is compared with.
  private static final int MOST_PLAIN = 10;

  /// What is measured, from its beginning to its end on this rank.
  @FunctionalInterface
  interface Iteration {
    void run(int number);
  }

  /// Streams whose spans are of one pipeline.
  ///
  /// @param prefix of their names
  record Lanes(String prefix, List<Stream> streams) {
    List<Span> recorded() {
      return streams.stream()
          .flatMap(stream -> stream.recorded().stream())
          .map(span -> span.on(prefix + span.stream()))
          .toList();
    }
  }

  /// Nanoseconds that each iteration took on this rank. All ranks begin together.
  long[] time(int iterations) {
    checkIterations("time", iterations);
    return times(iterations, TIMING);
  }

  private long[] times(int iterations, Progress.Task task) {
    return together(
        group,
        iterations,
        task,
        done -> {
          var nanos = new long[iterations];
          for (int i = 0; i < iterations; i++) {
            long start = System.nanoTime();
            iteration.run(i);
            nanos[i] = System.nanoTime() - start;
            done.accept(i + 1);
          }
          return nanos;
        });
  }

  /// Times by iterations that are not measured one by one, such as those in flight. All ranks begin
  /// together.
  ///
  /// @param body receives what it calls with the number of iterations that are done
  static long[] time(ProcessGroup group, int iterations, Function<IntConsumer, long[]> body) {
    checkIterations("time", iterations);
    return together(group, iterations, TIMING, body);
  }

  private static long[] together(
      ProcessGroup group, int iterations, Progress.Task task, Function<IntConsumer, long[]> body) {
    boolean speaks = group.rank() == 0;
    try (var progress = Progress.of(task, iterations, group.context().outbox(), speaks)) {
      group.barrier();
      return body.apply(progress::done);
    }
  }

  /// What this rank did on those streams, on the clock of the group's rank 0. The front gathers it.
  /// As many iterations, but at most ten, run without being looked at, half of them before and half
  /// after, so that a drift of the machine is not taken for the cost of profiling.
  ///
  /// @param configuration asked for when all iterations are done
  Profile profile(
      int iterations, List<Lanes> lanes, Supplier<SequencedMap<String, String>> configuration) {
    checkIterations("profile", iterations);
    int plain = Math.min(iterations, MOST_PLAIN);
    var plainNanos = new ArrayList<Long>();
    timePlain((plain + 1) / 2, plainNanos);
    var clock = ClockAlignment.measure(group.rank(), group::gather);
    // The start that all ranks' times are after, as this rank's clock shows it.
    long origin = group.broadcast(System.nanoTime(), 0) + clock.offsetNanos();
    lanes.forEach(each -> each.streams.forEach(stream -> stream.record(origin)));
    var nanos = new ArrayList<Long>();
    var spans = new ArrayList<Span>();
    try {
      for (long each : times(iterations, PROFILING)) {
        nanos.add(each);
      }
    } finally {
      lanes.stream().map(Lanes::recorded).forEach(spans::addAll);
    }
    timePlain(plain / 2, plainNanos);
    // While the hardware is still as it was.
    var readings = group.context().backend().readings();
    spans.sort(Comparator.comparingLong(Span::startNanos));
    var counters = new LinkedHashMap<>(group.counters());
    counters.putAll(readings);
    var profile =
        new Profile(
            group.place(),
            configuration.get(),
            nanos,
            spans,
            clock.errorNanos() + group.context().backend().clockErrorNanos(),
            counters,
            plainNanos);
    group.context().outbox().publish(profile.display());
    return profile;
  }

  private void timePlain(int iterations, List<Long> into) {
    for (long each : times(iterations, PROFILING)) {
      into.add(each);
    }
  }

  private static void checkIterations(String call, int iterations) {
    if (iterations < 1) {
      throw new BraidException(
          "%s needs 1 or more iterations but was given %d; try %s(10)"
              .formatted(call, iterations, call));
    }
  }
}
