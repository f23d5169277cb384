package braid.schedule.simulation;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/// A measurement in passes, interleaved with others: a disturbance of the machine then affects all
/// of them alike, and the lower quartile of each excludes it.
final class Probe {
  /// Number of passes, which the caller makes.
  static final int PASSES = 8;

  private static final int MOST_RUNS = 1000;
  private static final long LEAST_NANOS = 50_000;

  private final double amount;
  private final Runnable body;
  private final List<Double> nanos = new ArrayList<>();

  /// @param amount amount of work of one run
  Probe(double amount, Runnable body) {
    this.amount = amount;
    this.body = body;
  }

  void run() {
    long start = System.nanoTime();
    body.run();
    long once = Math.max(1, System.nanoTime() - start);
    int runs = Math.clamp(LEAST_NANOS / once, 1, MOST_RUNS);
    start = System.nanoTime();
    for (int run = 0; run < runs; run++) {
      body.run();
    }
    nanos.add(Math.max(1, (double) (System.nanoTime() - start) / runs));
  }

  /// Returns the amount of work per nanosecond.
  double rate() {
    return amount / nanos.stream().sorted().skip(PASSES / 4).findFirst().orElseThrow();
  }

  /// Returns the rates of multiplications.
  static List<Double> gflops(List<Probe> multiplications) {
    return multiplications.stream().map(probe -> Math.rint(1e3 * probe.rate()) / 1e3).toList();
  }

  static long bytes(int rows, int columns) {
    return (long) rows * columns * Float.BYTES;
  }

  static MemorySegment numbers(Arena arena, long count) {
    var segment = arena.allocate(count * Float.BYTES, 64);
    for (long i = 0; i < count; i++) {
      segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) (1 + i % 7));
    }
    return segment;
  }
}
