package braid.natives.kernels;

import braid.natives.cuda.GpuStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/// Words written and waited for, on two streams of one GPU.
final class SignalChecks {
  /// After so long a wait that should have ended is ended and counts as wrong.
  private static final long PATIENCE_NANOS = 2_000_000_000L;

  private static final long DELAY_NANOS = 2_000_000L;
  private static final long NANOS_PER_MILLISECOND = 1_000_000L;

  /// A word before, one that must not end the wait, one that must, and what is waited for.
  private record Wait(boolean exactly, long value, long before, long notYet, long now) {}

  private SignalChecks() {}

  /// One kernel at a time, as a tool has it that lets no two run at once.
  static void alone(CheckBench bench) {
    bench.check("signal_write", "a word", () -> writes(bench));
    bench.check("signal_wait", "at least, and it is there", () -> isThere(bench, false, 5, 7));
    bench.check("signal_wait", "exactly, and it is there", () -> isThere(bench, true, 8, 8));
    bench.check("signal_wait", "told to stop from the start", () -> isStopped(bench));
    bench.check("delay", "takes as long as it was told", () -> delays(bench));
  }

  /// A kernel that waits while another one writes.
  static void together(CheckBench bench) {
    bench.check("signal_wait", "at least", () -> waits(bench, new Wait(false, 5, 0, 4, 7)));
    bench.check("signal_wait", "exactly", () -> waits(bench, new Wait(true, 8, 7, 9, 8)));
    bench.check(
        "signal_wait",
        "at least, once the numbers have wrapped",
        () ->
            waits(
                bench,
                new Wait(
                    false, Long.MIN_VALUE, Long.MAX_VALUE - 5, Long.MAX_VALUE, Long.MIN_VALUE)));
    bench.check("signal_wait", "ends when it is told to stop", () -> stops(bench));
  }

  private static Optional<String> isThere(
      CheckBench bench, boolean exactly, long value, long word) {
    var kernels = bench.kernels();
    try (var there = bench.buffer(Long.BYTES, 0).put(bytes(word));
        var after = bench.buffer(Long.BYTES, 0).put(bytes(0))) {
      if (exactly) {
        kernels.signalAwaitEqual(bench.stream(), there.address(), value, 0);
      } else {
        kernels.signalAwaitAtLeast(bench.stream(), there.address(), value, 0);
      }
      kernels.signalWrite(bench.stream(), after.address(), 1);
      return after.holds(bytes(1)).or(() -> there.holds(bytes(word)));
    }
  }

  private static Optional<String> isStopped(CheckBench bench) {
    try (var word = bench.buffer(Long.BYTES, 0).put(bytes(0));
        var stop = bench.buffer(Long.BYTES, 0).put(bytes(1));
        var after = bench.buffer(Long.BYTES, 0).put(bytes(0))) {
      bench.kernels().signalAwaitAtLeast(bench.stream(), word.address(), 1, stop.address());
      bench.kernels().signalWrite(bench.stream(), after.address(), 1);
      return after.holds(bytes(1)).or(() -> word.holds(bytes(0)));
    }
  }

  private static Optional<String> writes(CheckBench bench) {
    long value = 0x123456789abcdef0L;
    try (var word = bench.buffer(Long.BYTES, 0)) {
      bench.kernels().signalWrite(bench.stream(), word.address(), value);
      return word.holds(bytes(value));
    }
  }

  private static Optional<String> waits(CheckBench bench, Wait wait) {
    var kernels = bench.kernels();
    try (var word = bench.buffer(Long.BYTES, 0).put(bytes(wait.before()));
        var after = bench.buffer(Long.BYTES, 0).put(bytes(0));
        var stop = bench.buffer(Long.BYTES, 0).put(bytes(0));
        var waiting = bench.gpu().stream(bench.gpu().leastPriority())) {
      if (wait.exactly()) {
        kernels.signalAwaitEqual(waiting, word.address(), wait.value(), stop.address());
      } else {
        kernels.signalAwaitAtLeast(waiting, word.address(), wait.value(), stop.address());
      }
      kernels.signalWrite(waiting, after.address(), 1);
      kernels.signalWrite(bench.stream(), word.address(), wait.notYet());
      // Read by the other stream, on which nothing waits.
      boolean early = after.holds(bytes(0)).isPresent();
      kernels.signalWrite(bench.stream(), word.address(), wait.now());
      boolean ended = ends(waiting);
      stop.put(bytes(1));
      waiting.synchronize();
      if (early || !ended) {
        return Optional.of(early ? "it ended too early" : "it did not end");
      }
      return after.holds(bytes(1)).or(word::beside);
    }
  }

  private static Optional<String> stops(CheckBench bench) {
    try (var word = bench.buffer(Long.BYTES, 0).put(bytes(0));
        var stop = bench.buffer(Long.BYTES, 0).put(bytes(0));
        var waiting = bench.gpu().stream(bench.gpu().leastPriority())) {
      bench.kernels().signalAwaitAtLeast(waiting, word.address(), 1, stop.address());
      stop.put(bytes(1));
      boolean ended = ends(waiting);
      word.put(bytes(1));
      waiting.synchronize();
      return ended ? Optional.empty() : Optional.of("it did not end");
    }
  }

  private static Optional<String> delays(CheckBench bench) {
    bench.stream().synchronize();
    long begun = System.nanoTime();
    bench.kernels().delay(bench.stream(), 1, DELAY_NANOS);
    bench.stream().synchronize();
    long took = System.nanoTime() - begun;
    // The GPU's clock may tick once in a millisecond.
    return took >= DELAY_NANOS - NANOS_PER_MILLISECOND
        ? Optional.empty()
        : Optional.of("it took %d ns instead of %d".formatted(took, DELAY_NANOS));
  }

  private static boolean ends(GpuStream stream) {
    long begun = System.nanoTime();
    while (!stream.isDone()) {
      if (System.nanoTime() - begun > PATIENCE_NANOS) {
        return false;
      }
      Thread.onSpinWait();
    }
    return true;
  }

  private static byte[] bytes(long value) {
    var bytes = new byte[Long.BYTES];
    MemorySegment.ofArray(bytes).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, value);
    return bytes;
  }
}
