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
/// starts from what it would start from if the host had synchronized in between. Between ranks
/// nothing else is needed: no signal is given by the host, and a rank's `begun` of an iteration is
/// raised behind the join. Handshake says how far two ranks may be apart.
public final class Flight implements AutoCloseable {
  private static final int LEAST_IN_FLIGHT = 2;
  private static final long LONG_NANOS = 100_000_000;

  private final Sequence sequence;
  private final Supplier<String> what;

  /// The end of iteration i is entry i + 1, modulo their number; the start of the first is entry 0.
  private final Stamp[] stamps = new Stamp[Executable.MOST_IN_FLIGHT + 1];

  private final long[] nanos;
  private @Nullable Event end;
  private int launched;
  private int ended;

  /// @param iterations that will be launched
  /// @param what they are, for messages
  public Flight(Sequence sequence, int iterations, Supplier<String> what) {
    this.sequence = sequence;
    this.what = what;
    this.nanos = new long[iterations];
    var first = sequence.first();
    for (int i = 0; i < stamps.length; i++) {
      stamps[i] = first.stamp();
    }
  }

  /// Enqueues the next iteration behind those in flight; where there are as many as may be, waits
  /// for the first of them to end. Returns whether it was a replay.
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

  /// Two are enough for the device never to wait for the host, more make up for its hiccups. Until
  /// iterations are known to be short there are no more than two, since all that are enqueued have
  /// to end after a failure.
  private int most() {
    return ended == 0 || nanos[ended - 1] > LONG_NANOS ? LEAST_IN_FLIGHT : sequence.mostInFlight();
  }

  /// How many have ended.
  public int ended() {
    return ended;
  }

  /// Waits for all that were launched. Returns the nanoseconds between the ends of consecutive
  /// iterations; the first is from before the first iteration.
  public long[] finish() {
    while (ended < launched) {
      awaitFirst();
    }
    sequence.synchronize(what);
    return nanos.clone();
  }

  private void awaitFirst() {
    // A stamp is of the first stream, which may only wait for another.
    stamp(ended + 1).await(() -> sequence.waitingFor().orElseGet(what));
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
