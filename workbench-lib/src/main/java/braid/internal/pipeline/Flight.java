package braid.internal.pipeline;

import braid.internal.backend.Event;
import braid.internal.backend.Executable;
import braid.internal.backend.Stamp;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Iterations of a sequence of plans in flight: each is enqueued while earlier ones still run.
///
/// ```
/// comm    | iteration 0     |         join ─ stamp | iteration 1     |         join ─ stamp |
/// gemm-0  | iteration 0          ─┘           └─ | iteration 1           ─┘           └─
/// ```
///
/// All streams of a rank are joined at the end of every iteration, so within a rank an iteration
/// starts as if the host had synchronized before it. Between ranks no further synchronization is
/// needed: the host raises no signals, and a rank raises `begun` of an iteration after the join.
/// `Handshake` limits how far two ranks may be apart.
public final class Flight implements AutoCloseable {
  private static final int LEAST_IN_FLIGHT = 2;
  private static final long LONG_NANOS = 100_000_000;

  private final Sequence sequence;
  private final Supplier<String> label;

  /// Entry 0 is the start of the first iteration, entry i + 1 (modulo the length) the end of
  /// iteration i.
  private final Stamp[] stamps = new Stamp[Executable.MOST_IN_FLIGHT + 1];

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

  /// Enqueues the next iteration behind those in flight; if the maximum is in flight, waits for the
  /// first of them to end. Returns whether it was replayed.
  public boolean launch() {
    while (launched - ended >= most()) {
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

  /// Returns the maximum number of iterations in flight. Two suffice to keep the device from
  /// waiting for the host; more absorb delays of the host. Until iterations are known to be short
  /// the maximum is two, because all enqueued iterations must end after a failure.
  private int most() {
    return ended == 0 || nanos[ended - 1] > LONG_NANOS ? LEAST_IN_FLIGHT : sequence.mostInFlight();
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
    // The stamp is on the first stream, which may itself wait for another stream.
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
