package braid;

import braid.internal.backend.Stream;
import braid.internal.pipeline.ClockAlignment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/// Does something again and again on all ranks of a group together, and says how long it took and
/// what this rank's streams did.
record Measurement(ProcessGroup group, List<Stream> streams) {
  static void checkIterations(String call, int iterations) {
    if (iterations < 1) {
      throw new BraidException(
          "%s needs 1 or more iterations but was given %d; try %s(10)"
              .formatted(call, iterations, call));
    }
  }

  /// How many nanoseconds each iteration took on this rank.
  long[] time(int iterations, IntConsumer iteration) {
    group.barrier();
    var nanos = new long[iterations];
    for (int i = 0; i < iterations; i++) {
      long start = System.nanoTime();
      iteration.accept(i);
      nanos[i] = System.nanoTime() - start;
    }
    return nanos;
  }

  /// What this rank did, span by span, on the clock of the group's rank 0. The front gathers it
  /// too.
  ///
  /// @param configuration asked for when all iterations are done
  Profile profile(
      int iterations, IntConsumer iteration, Supplier<SequencedMap<String, String>> configuration) {
    var clock = ClockAlignment.measure(group);
    // The start that all ranks' times are after, as this rank's clock shows it.
    long origin = group.broadcast(System.nanoTime(), 0) + clock.offsetNanos();
    streams.forEach(stream -> stream.record(origin));
    var spans = new ArrayList<Span>();
    long[] nanos;
    try {
      nanos = time(iterations, iteration);
    } finally {
      streams.stream().map(Stream::recorded).forEach(spans::addAll);
    }
    spans.sort(Comparator.comparingLong(Span::startNanos));
    var profile =
        new Profile(
            group.place(),
            configuration.get(),
            LongStream.of(nanos).boxed().toList(),
            spans,
            clock.errorNanos(),
            group.counters());
    group.context().outbox().publish(profile.display());
    return profile;
  }
}
