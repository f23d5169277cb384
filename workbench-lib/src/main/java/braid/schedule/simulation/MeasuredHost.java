package braid.schedule.simulation;

import braid.BraidException;
import braid.DType;
import braid.Link;
import braid.natives.Blas;
import braid.natives.BlasBuild;
import braid.natives.Futex;
import braid.natives.LibC;
import braid.natives.WholeFile;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/// Measures what a rank of the host backend gets of this machine: the multiplications by OpenBLAS
/// with the threads and on the processors of one rank, copies, sums, and how long threads take to
/// wake each other. It is done once and kept on disk, for each processor model, number of cores,
/// JDK, compiler of the JVM and number of ranks.
final class MeasuredHost {
  private static final String FOLDER = "machines";

  /// Part of a file's name: another number where what is measured has changed.
  private static final int VERSION = 1;

  private static final List<Integer> ROWS = List.of(1, 16, 64, 256, 1024);
  private static final List<Integer> SIZES = List.of(64, 256, 1024, 2048);
  private static final int REPETITIONS = 5;
  private static final int ROUND_TRIPS = 400;
  private static final int SLEEPS = 40;
  private static final long SLEEP_NANOS = 300_000;
  private static final int ENTRIES = 4000;
  private static final long BYTES = 1 << 20;
  private static final int ELEMENTS = 1 << 18;
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  /// Linux gives a thread that stepped back by 5 a weight of 335, where another has 1024.
  private static final double YIELDING_SHARE = 335.0 / 1024;

  private static final Object ONE_AT_A_TIME = new Object();

  private final int ranks;
  private final List<Integer> processors;
  private final int units;
  private final Arena arena;

  private MeasuredHost(int ranks, Arena arena) {
    this.ranks = ranks;
    this.arena = arena;
    this.processors = LibC.allowedProcessors();
    this.units = Math.max(1, Runtime.getRuntime().availableProcessors() / ranks);
  }

  /// As it was measured before, or measured now. Of several processes one measures.
  static Machine of(int ranks, Path cache) {
    var folder = cache.resolve(FOLDER);
    var file = folder.resolve(fileName(ranks));
    synchronized (ONE_AT_A_TIME) {
      try {
        Files.createDirectories(folder);
        try (var lock = new RandomAccessFile(folder.resolve("lock").toFile(), "rw");
            var _ = lock.getChannel().lock()) {
          var kept = read(file);
          if (kept != null) {
            return kept;
          }
          var measured = measure(ranks);
          WholeFile.write(file, measured.toString());
          return measured;
        }
      } catch (IOException e) {
        throw new BraidException(
            "what this host does cannot be kept in %s (%s); make it writable or set BRAID_CACHE"
                .formatted(folder, e),
            e);
      }
    }
  }

  private static @org.jspecify.annotations.Nullable Machine read(Path file) throws IOException {
    try {
      return Machine.parse(Files.readString(file));
    } catch (NoSuchFileException e) {
      return null;
    } catch (BraidException e) {
      // Damaged, or of another version: as if it were not there.
      return null;
    }
  }

  private static String fileName(int ranks) {
    return "%s-%d-cores-%d-ranks-jdk-%s-%s-%d.txt"
        .formatted(
            processor(),
            Runtime.getRuntime().availableProcessors(),
            ranks,
            Runtime.version(),
            System.getProperty("java.vm.info"),
            VERSION)
        .replaceAll("[^A-Za-z0-9._-]+", "_");
  }

  /// The model that Linux names, or the architecture.
  private static String processor() {
    try (var lines = Files.lines(Path.of("/proc/cpuinfo"))) {
      return lines
          .filter(line -> line.startsWith("model name"))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst()
          .orElseGet(() -> System.getProperty("os.arch"));
    } catch (IOException e) {
      return System.getProperty("os.arch");
    }
  }

  private static Machine measure(int ranks) {
    int threadsBefore = BlasBuild.load().threads();
    try (var arena = Arena.ofShared()) {
      var host = new MeasuredHost(ranks, arena);
      Blas.limitThreads(host.units);
      return host.onRanksProcessors(0, host::machine);
    } finally {
      Blas.limitThreads(threadsBefore);
    }
  }

  /// Runs that on a thread that keeps to the processors of one rank.
  private <T> T onRanksProcessors(int rank, Supplier<T> body) {
    var result = new AtomicReference<T>();
    var failure = new AtomicReference<RuntimeException>();
    join(
        start(
            rank,
            () -> {
              try {
                result.set(body.get());
              } catch (RuntimeException e) {
                failure.set(e);
              }
            }));
    var failed = failure.get();
    if (failed != null) {
      throw failed;
    }
    return result.get();
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
    int cores = Runtime.getRuntime().availableProcessors();
    var gemm = new TreeMap<DType, GemmRates>();
    gemm.put(DType.FP32, gemmRates());
    gemm.put(DType.TF32, gemm.get(DType.FP32));
    var widened = new TreeMap<DType, Double>();
    for (var type : DType.values()) {
      if (!type.isStoredAsFp32()) {
        widened.put(type, conversion(type));
      }
    }
    double copyBytes = copyBytes();
    long launch = launchNanos();
    long wake = wakeNanos();
    return new Machine(
        "this host: %s, %d cores, %d ranks".formatted(processor(), cores, ranks),
        true,
        ranks,
        new Machine.Links(Link.UNLIMITED, Link.UNLIMITED, true, 1, copyBytes, copyBytes),
        new Machine.Compute(
            units,
            Math.max(1, Math.ceilDiv(ranks, cores)),
            YIELDING_SHARE,
            false,
            1,
            copyBytes,
            reduceBytes(),
            gemm,
            widened),
        new Machine.Costs(
            launch,
            launch,
            launch,
            launch,
            1,
            0,
            raiseNanos(),
            signalNanos(),
            signalNanos(),
            wake,
            oversleepNanos(),
            wake));
  }

  private GemmRates gemmRates() {
    var gflops = new ArrayList<Double>();
    int most = SIZES.getLast();
    var a = numbers((long) ROWS.getLast() * most);
    var b = numbers((long) most * most);
    var c = numbers((long) ROWS.getLast() * most);
    for (int n : SIZES) {
      for (int k : SIZES) {
        for (int m : ROWS) {
          double nanos =
              typical(
                  () ->
                      Blas.sgemm(
                          new Blas.Factor(a, k, false),
                          new Blas.Factor(b, n, false),
                          new Blas.Sum(m, n, k, 1, 0, c.asSlice(0, (long) m * n * Float.BYTES))));
          gflops.add(2.0 * m * n * k / nanos);
        }
      }
    }
    return new GemmRates(ROWS, SIZES, SIZES, gflops);
  }

  private MemorySegment numbers(long count) {
    var segment = arena.allocate(count * Float.BYTES, 64);
    for (long i = 0; i < count; i++) {
      segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1 + i % 7);
    }
    return segment;
  }

  /// The median of some repetitions, each of as many runs as a clock can tell apart.
  private static double typical(Runnable body) {
    body.run();
    long start = System.nanoTime();
    body.run();
    int runs = Math.clamp(50_000 / Math.max(1, System.nanoTime() - start), 1, 1000);
    var nanos = new double[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
      start = System.nanoTime();
      for (int run = 0; run < runs; run++) {
        body.run();
      }
      nanos[i] = (double) (System.nanoTime() - start) / runs;
    }
    Arrays.sort(nanos);
    return Math.max(1, nanos[REPETITIONS / 2]);
  }

  private double conversion(DType type) {
    var narrow = arena.allocate((long) ELEMENTS * type.bytes(), 64);
    var wide = arena.allocate((long) ELEMENTS * Float.BYTES, 64);
    double both =
        typical(
            () -> {
              for (long i = 0; i < ELEMENTS; i++) {
                wide.setAtIndex(ValueLayout.JAVA_FLOAT, i, type.load(narrow, i));
              }
              for (long i = 0; i < ELEMENTS; i++) {
                type.store(narrow, i, wide.getAtIndex(ValueLayout.JAVA_FLOAT, i));
              }
            });
    return 2 * ELEMENTS / both * 1e9;
  }

  private double copyBytes() {
    var from = arena.allocate(BYTES, 64);
    var to = arena.allocate(BYTES, 64);
    return BYTES / typical(() -> MemorySegment.copy(from, 0, to, 0, BYTES)) * 1e9;
  }

  /// Of two parts: the first is copied, the second added; bytes are those of both and of the sum.
  private double reduceBytes() {
    var one = arena.allocate(BYTES, 64);
    var other = arena.allocate(BYTES, 64);
    var sum = arena.allocate(BYTES, 64);
    double nanos =
        typical(
            () -> {
              MemorySegment.copy(one, 0, sum, 0, BYTES);
              Blas.add(other, sum);
            });
    return 3 * BYTES / nanos * 1e9;
  }

  /// For how long the host thread adds an entry to a queue whose thread is awake.
  private long launchNanos() {
    var queue = new LinkedBlockingQueue<Runnable>();
    var ended = new CompletableFuture<Boolean>();
    var worker = start(0, () -> drain(queue, ended));
    long nanos = Math.round(typical(() -> queue.add(() -> {})));
    for (int i = 0; i < ENTRIES; i++) {
      queue.add(() -> {});
    }
    queue.add(() -> ended.complete(true));
    join(worker);
    return nanos;
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

  /// From completing a future to the going on of a thread of the same rank that waits for it.
  private long wakeNanos() {
    var there = new LinkedBlockingQueue<Long>();
    var back = new LinkedBlockingQueue<Long>();
    var answering =
        start(
            0,
            () -> {
              for (int i = 0; i < ROUND_TRIPS; i++) {
                back.add(taken(there));
              }
            });
    var nanos = new long[ROUND_TRIPS];
    for (int i = 0; i < ROUND_TRIPS; i++) {
      long start = System.nanoTime();
      there.add(start);
      var _ = taken(back);
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

  /// For how long raising a word that nobody sleeps on keeps its lane.
  private long raiseNanos() {
    var word = arena.allocate(Long.BYTES, Long.BYTES);
    return Math.round(
        typical(
            () -> {
              var _ = (int) WORD.getAndAddRelease(word, 0L, 1);
              Futex.wakeAll(word);
            }));
  }

  /// From raising a word to the going on of a thread of the next rank that sleeps on it.
  private long signalNanos() {
    var there = arena.allocate(Long.BYTES, Long.BYTES);
    var back = arena.allocate(Long.BYTES, Long.BYTES);
    var answering =
        start(
            1,
            () -> {
              for (int i = 0; i < ROUND_TRIPS; i++) {
                sleepUntil(there, i + 1);
                raise(back, i + 1);
              }
            });
    var nanos = new long[ROUND_TRIPS];
    for (int i = 0; i < ROUND_TRIPS; i++) {
      long start = System.nanoTime();
      raise(there, i + 1);
      sleepUntil(back, i + 1);
      nanos[i] = (System.nanoTime() - start) / 2;
    }
    join(answering);
    return median(nanos);
  }

  private static void raise(MemorySegment word, int value) {
    WORD.setRelease(word, 0L, value);
    Futex.wakeAll(word.asSlice(0, Integer.BYTES));
  }

  private static void sleepUntil(MemorySegment word, int value) {
    for (int now = (int) WORD.getAcquire(word, 0L);
        now != value;
        now = (int) WORD.getAcquire(word, 0L)) {
      Futex.await(word.asSlice(0, Integer.BYTES), now, TimeUnit.SECONDS.toNanos(1));
    }
  }

  private static long oversleepNanos() {
    var nanos = new long[SLEEPS];
    for (int i = 0; i < SLEEPS; i++) {
      long start = System.nanoTime();
      try {
        TimeUnit.NANOSECONDS.sleep(SLEEP_NANOS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new BraidException("interrupted while this host was measured", e);
      }
      nanos[i] = System.nanoTime() - start - SLEEP_NANOS;
    }
    return Math.max(0, median(nanos));
  }
}
