package braid.schedule.simulation;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.Link;
import braid.natives.Blas;
import braid.natives.BlasBuild;
import braid.natives.Futex;
import braid.natives.LibC;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/// Measures this machine as a rank of the host backend sees it: multiplications by OpenBLAS with
/// the threads and processors of one rank, copies, sums, and the time that threads take to wake
/// each other.
final class MeasuredHost {
  private static final List<Integer> ROWS = List.of(1, 16, 64, 256, 1024);
  private static final List<Integer> SIZES = List.of(64, 256, 1024, 2048);
  private static final int OTHER_RANKS_SIZE = 1024;
  private static final int WAKE_ROUND_TRIPS = 400;
  private static final int SIGNAL_TRIPS = 80;
  private static final long SLEEP_NANOS = 1_000_000;
  private static final int ENTRIES = 4000;
  private static final long BYTES = 1 << 20;
  private static final long ROTATING_BYTES = 24 << 20;
  private static final long ALIGNMENT_BYTES = 64;
  private static final int ELEMENTS = 1 << 18;
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  /// Linux weights: 335 for a thread of nice 5, 1024 for nice 0.
  private static final double YIELDING_SHARE = 335.0 / 1024;

  private final int ranks;

  /// Read before a thread is pinned, which would reduce the number.
  private final int cores = Runtime.getRuntime().availableProcessors();

  private final List<Integer> processors;
  private final int units;
  private final Arena arena;

  private MeasuredHost(int ranks, Arena arena) {
    this.ranks = ranks;
    this.arena = arena;
    this.processors = LibC.allowedProcessors();
    this.units = Math.max(1, cores / ranks);
  }

  /// Measures this host.
  static Machine measure(int ranks) {
    int threadsBefore = BlasBuild.load().threads();
    try (var arena = Arena.ofShared()) {
      var host = new MeasuredHost(ranks, arena);
      Blas.limitThreads(host.units);
      var machine = new FutureTask<>(host::machine);
      join(host.start(0, machine));
      if (machine.state() != Future.State.SUCCESS) {
        throw new IllegalStateException("this host was not measured", machine.exceptionNow());
      }
      return machine.resultNow();
    } finally {
      Blas.limitThreads(threadsBefore);
    }
  }

  private Thread start(int rank, Runnable body) {
    return Thread.ofPlatform()
        .daemon()
        .name("braid-measuring-" + rank)
        .start(
            () -> {
              int first = rank % ranks * units % Math.max(1, processors.size());
              if (ranks > 1 && first + units <= processors.size()) {
                var _ = LibC.runOn(processors.subList(first, first + units));
              }
              body.run();
            });
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("interrupted while this host was measured", e);
    }
  }

  private Machine machine() {
    var multiplications = multiplications();
    var widening = new TreeMap<DType, Probe>();
    var narrowing = new TreeMap<DType, Probe>();
    for (var type : DType.values()) {
      if (!type.isStoredAsFp32()) {
        widening.put(type, widening(type));
        narrowing.put(type, narrowing(type));
      }
    }
    var copy = copy();
    var sum = sum();
    var attention = new AttentionProbes(arena);
    var probes = new ArrayList<>(multiplications);
    probes.addAll(attention.all());
    probes.addAll(widening.values());
    probes.addAll(narrowing.values());
    probes.addAll(List.of(copy, sum));
    var busy = new AtomicBoolean(true);
    var otherRanks = otherRanks(busy);
    for (int pass = 0; pass < Probe.PASSES; pass++) {
      probes.forEach(Probe::run);
    }
    busy.set(false);
    otherRanks.forEach(MeasuredHost::join);
    var rates = new GemmRates(ROWS, SIZES, SIZES, Probe.gflops(multiplications));
    var gemm = new TreeMap<>(Map.of(DType.FP32, rates, DType.TF32, rates));
    var attended = new TreeMap<>(Map.of(DType.FP32, attention.rates()));
    double copyBytes = Math.rint(1e9 * copy.rate());
    double reduceBytes = Math.rint(1e9 * sum.rate());
    long launch = launchNanos();
    long wake = wakeNanos();
    var signals = signals();
    return new Machine(
        "this host: %s, %d cores, %d ranks".formatted(MachineCache.processor(), cores, ranks),
        Optional.empty(),
        ranks,
        new Hardware.Links(Link.UNLIMITED, Link.UNLIMITED, true, 1, copyBytes, copyBytes),
        new Hardware.Compute(
            units,
            Math.max(1, Math.ceilDiv(ranks, cores)),
            YIELDING_SHARE,
            false,
            1,
            1,
            copyBytes,
            reduceBytes,
            attention.weightsPerSecond(),
            attention.resultsPerSecond(),
            gemm,
            attended,
            perSecond(widening),
            perSecond(narrowing)),
        new Hardware.Costs(
            launch,
            launch,
            launch,
            launch,
            1,
            0,
            signals.raise(),
            signals.pass(),
            signals.pass(),
            wake,
            oversleepNanos(),
            synchronizeNanos()));
  }

  private static SortedMap<DType, Double> perSecond(Map<DType, Probe> probes) {
    var rates = new TreeMap<DType, Double>();
    probes.forEach((type, probe) -> rates.put(type, Math.rint(1e9 * probe.rate())));
    return rates;
  }

  /// Starts the other ranks, which multiply during the measurement, because caches, memory and
  /// power are shared. Ranks with several threads are measured alone, because a process has only
  /// one thread pool.
  private List<Thread> otherRanks(AtomicBoolean busy) {
    var threads = new ArrayList<Thread>();
    for (int rank = 1; rank < ranks && rank < cores && units == 1; rank++) {
      threads.add(
          start(
              rank,
              () -> {
                try (var own = Arena.ofConfined()) {
                  int size = OTHER_RANKS_SIZE;
                  var a = own.allocate(Probe.bytes(size, size), ALIGNMENT_BYTES);
                  var b = own.allocate(Probe.bytes(size, size), ALIGNMENT_BYTES);
                  var c = own.allocate(Probe.bytes(size, size), ALIGNMENT_BYTES);
                  while (busy.get()) {
                    Blas.sgemm(
                        new Blas.Factor(a, size, false),
                        new Blas.Factor(b, size, false),
                        new Blas.Sum(size, size, size, 1, 0, c));
                  }
                }
              }));
    }
    return threads;
  }

  /// Returns probes of all combinations of sizes, in the order of [GemmRates].
  private List<Probe> multiplications() {
    int most = SIZES.getLast();
    var a = new Rotation();
    var b = Probe.numbers(arena, (long) most * most);
    var c = new Rotation();
    var probes = new ArrayList<Probe>();
    for (int n : SIZES) {
      for (int k : SIZES) {
        for (int m : ROWS) {
          probes.add(
              new Probe(
                  2.0 * m * n * k,
                  () ->
                      Blas.sgemm(
                          new Blas.Factor(a.next(Probe.bytes(m, k)), k, false),
                          new Blas.Factor(b, n, false),
                          new Blas.Sum(m, n, k, 1, 0, c.next(Probe.bytes(m, n))))));
        }
      }
    }
    return probes;
  }

  /// Memory whose pieces were not used recently, like data that arrives from other ranks.
  private final class Rotation {
    private final MemorySegment all = Probe.numbers(arena, ROTATING_BYTES / Float.BYTES);
    private long used;

    MemorySegment next(long bytes) {
      if (used + bytes > all.byteSize()) {
        used = 0;
      }
      var piece = all.asSlice(used, bytes);
      used += (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
      return piece;
    }
  }

  private Probe widening(DType type) {
    var narrow = arena.allocate((long) ELEMENTS * type.bytes(), ALIGNMENT_BYTES);
    var wide = arena.allocate((long) ELEMENTS * Float.BYTES, ALIGNMENT_BYTES);
    return new Probe(
        ELEMENTS,
        () -> {
          for (long i = 0; i < ELEMENTS; i++) {
            wide.setAtIndex(ValueLayout.JAVA_FLOAT, i, type.load(narrow, i));
          }
        });
  }

  private Probe narrowing(DType type) {
    var narrow = arena.allocate((long) ELEMENTS * type.bytes(), ALIGNMENT_BYTES);
    var wide = Probe.numbers(arena, ELEMENTS);
    return new Probe(
        ELEMENTS,
        () -> {
          for (long i = 0; i < ELEMENTS; i++) {
            type.store(narrow, i, wide.getAtIndex(ValueLayout.JAVA_FLOAT, i));
          }
        });
  }

  private Probe copy() {
    var from = new Rotation();
    var to = new Rotation();
    return new Probe(
        (double) BYTES, () -> MemorySegment.copy(from.next(BYTES), 0, to.next(BYTES), 0, BYTES));
  }

  /// Measures a sum of two parts: the first is copied, the second added; counts the bytes of both
  /// and of the sum.
  private Probe sum() {
    var parts = new Rotation();
    var sums = new Rotation();
    return new Probe(
        3.0 * BYTES,
        () -> {
          var sum = sums.next(BYTES);
          MemorySegment.copy(parts.next(BYTES), 0, sum, 0, BYTES);
          Blas.add(parts.next(BYTES), sum);
        });
  }

  /// Measures the time of the host thread to add an entry to a queue whose thread is awake.
  private long launchNanos() {
    var queue = new LinkedBlockingQueue<Runnable>();
    var ended = new CompletableFuture<Boolean>();
    var worker = start(0, () -> drain(queue, ended));
    var nanos = new long[ENTRIES];
    for (int i = 0; i < ENTRIES; i++) {
      long start = System.nanoTime();
      queue.add(() -> {});
      nanos[i] = System.nanoTime() - start;
    }
    queue.add(() -> ended.complete(true));
    join(worker);
    return median(nanos);
  }

  private static void drain(LinkedBlockingQueue<Runnable> queue, CompletableFuture<Boolean> ended) {
    try {
      while (!ended.isDone()) {
        queue.take().run();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Measures the time from an event until a waiting thread of the same rank continues.
  private long wakeNanos() {
    var requests = new LinkedBlockingQueue<Long>();
    var replies = new LinkedBlockingQueue<Long>();
    var answering =
        start(
            0,
            () -> {
              for (int i = 0; i < WAKE_ROUND_TRIPS; i++) {
                replies.add(taken(requests));
              }
            });
    var nanos = new long[WAKE_ROUND_TRIPS];
    for (int i = 0; i < WAKE_ROUND_TRIPS; i++) {
      long start = System.nanoTime();
      requests.add(start);
      var _ = taken(replies);
      nanos[i] = (System.nanoTime() - start) / 2;
    }
    join(answering);
    return median(nanos);
  }

  private static long taken(LinkedBlockingQueue<Long> from) {
    try {
      return from.take();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("interrupted while this host was measured", e);
    }
  }

  private static long median(long... nanos) {
    Arrays.sort(nanos);
    return nanos[nanos.length / 2];
  }

  /// Times of signals.
  ///
  /// @param raise time that raising a word occupies a lane
  /// @param pass time from then until a thread of the next rank that slept on the word continues
  private record Signals(long raise, long pass) {}

  private Signals signals() {
    var word = arena.allocate(Long.BYTES, Long.BYTES);
    var woken = new long[SIGNAL_TRIPS];
    var waiting =
        start(
            1,
            () -> {
              for (int i = 0; i < SIGNAL_TRIPS; i++) {
                sleepUntil(word, i + 1);
                woken[i] = System.nanoTime();
              }
            });
    var raises = new long[SIGNAL_TRIPS];
    var passes = new long[SIGNAL_TRIPS];
    for (int i = 0; i < SIGNAL_TRIPS; i++) {
      spin(SLEEP_NANOS);
      passes[i] = System.nanoTime();
      raise(word, i + 1);
      raises[i] = System.nanoTime() - passes[i];
    }
    join(waiting);
    for (int i = 0; i < SIGNAL_TRIPS; i++) {
      passes[i] = woken[i] - passes[i];
    }
    long raise = median(raises);
    return new Signals(raise, Math.max(0, median(passes) - raise));
  }

  /// Measures the time from the end of a lane until the host thread, which is not pinned,
  /// continues.
  private long synchronizeNanos() {
    var ends = new LinkedBlockingQueue<Long>();
    var nanos = new long[SIGNAL_TRIPS];
    var host =
        Thread.ofPlatform()
            .daemon()
            .start(
                () -> {
                  for (int i = 0; i < SIGNAL_TRIPS; i++) {
                    long ended = taken(ends);
                    nanos[i] = System.nanoTime() - ended;
                  }
                });
    for (int i = 0; i < SIGNAL_TRIPS; i++) {
      spin(SLEEP_NANOS);
      ends.add(System.nanoTime());
    }
    join(host);
    return median(nanos);
  }

  private static void raise(MemorySegment word, int value) {
    WORD.setRelease(word, 0L, value);
    Futex.wakeAll(word.asSlice(0, Integer.BYTES));
  }

  private static void sleepUntil(MemorySegment word, int value) {
    for (int now = (int) WORD.getAcquire(word, 0L);
        now < value;
        now = (int) WORD.getAcquire(word, 0L)) {
      Futex.await(word.asSlice(0, Integer.BYTES), now, TimeUnit.SECONDS.toNanos(1));
    }
  }

  private static long oversleepNanos() {
    var nanos = new long[SIGNAL_TRIPS];
    for (int i = 0; i < SIGNAL_TRIPS; i++) {
      long start = System.nanoTime();
      sleep(SLEEP_NANOS);
      nanos[i] = System.nanoTime() - start - SLEEP_NANOS;
    }
    return Math.max(0, median(nanos));
  }

  /// Keeps a processor awake, like a lane that works before it wakes another.
  private static void spin(long nanos) {
    for (long end = System.nanoTime() + nanos; System.nanoTime() < end; ) {
      Thread.onSpinWait();
    }
  }

  private static void sleep(long nanos) {
    try {
      TimeUnit.NANOSECONDS.sleep(nanos);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("interrupted while this host was measured", e);
    }
  }
}
