package braid.internal.pipeline;

import braid.internal.backend.Event;
import braid.internal.backend.Executable;
import braid.internal.backend.Stamp;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Runs iterations of a sequence of plans with several in flight: an iteration is enqueued while
/// earlier ones still run.
///
/// ```
/// comm    | iteration 0     |         join ─ stamp | iteration 1     |         join ─ stamp |
/// gemm-0  | iteration 0          ─┘           └─ | iteration 1           ─┘           └─
/// ```
///
/// All streams of a rank are joined at the end of every iteration. So within a rank an iteration
/// starts as if the host had synchronized before it. Ranks need no further synchronization: a rank
/// raises `begun` of an iteration only after the join, and all signals are raised by streams, not
/// by the host. `read` lets a rank end an iteration only after the others' last use of its memory.
public final class Flight implements AutoCloseable {
  private static final int MIN_IN_FLIGHT = 2;
  private static final long LONG_ITERATION_NANOS = 100_000_000;

  private final Sequence sequence;
  private final Supplier<String> label;

  /// Entry 0 is the start of the first iteration, entry i + 1 (modulo the length) the end of
  /// iteration i.
  private final Stamp[] stamps = new Stamp[Executable.MAX_IN_FLIGHT + 1];

  private final long[] nanos;
  private @Nullable Event end;
  private int launched;
  private int ended;

  /// @param iterations number of iterations that will be launched
  /// @param label names the iterations in messages
  public Flight(Sequence sequence, int iterations, Supplier<String> label) {
    this.sequence = sequence;
    this.label = label;
    this.nanos = new long[iterations];
    var first = sequence.first();
    for (int i = 0; i < stamps.length; i++) {
      stamps[i] = first.stamp();
    }
  }

  /// Enqueues the next iteration behind those in flight. If the maximum number is in flight, first
  /// waits for the oldest to end. Returns whether the new iteration was replayed.
  public boolean launch() {
    while (launched - ended >= maxInFlight()) {
      awaitFirst();
    }
    boolean replayed = sequence.turn(launched);
    if (launched == 0) {
      var _ = stamp(0).set();
    }
    sequence.launch(end);
    sequence.join();
    launched++;
    end = stamp(launched).set();
    return replayed;
  }

  /// Returns the maximum number of iterations in flight. With two the device need not wait for the
  /// host, and with more even a delay of the host does not stop it. Until iterations are known to
  /// be short the maximum is two, because after a failure all enqueued iterations must end first.
  private int maxInFlight() {
    return ended == 0 || nanos[ended - 1] > LONG_ITERATION_NANOS
        ? MIN_IN_FLIGHT
        : sequence.maxInFlight();
  }

  /// Returns the number of iterations that have ended.
  public int ended() {
    return ended;
  }

  /// Waits for all launched iterations. Returns the nanoseconds between the ends of consecutive
  /// iterations; the first counts from the start of the first iteration.
  public long[] finish() {
    while (ended < launched) {
      awaitFirst();
    }
    sequence.synchronize(label);
    return nanos.clone();
  }

  private void awaitFirst() {
    // The stamp is on the first stream, which may wait for another stream.
    stamp(ended + 1).await(() -> sequence.waitingFor().orElseGet(label));
    nanos[ended] = stamp(ended + 1).nanosSince(stamp(ended));
    ended++;
    sequence.settled(launched - ended);
  }

  private Stamp stamp(int number) {
    return stamps[number % stamps.length];
  }

  @Override
  public void close() {
    for (var stamp : stamps) {
      stamp.close();
    }
  }
}
