package braid.natives.kernels;

import braid.natives.blaslt.Lt;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuCopy;
import braid.natives.cuda.GpuStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.LongConsumer;
import java.util.stream.IntStream;

/// Measures kernels that exchange signals, on one GPU without peers: parts are in its own memory,
/// and a kernel waits for the words that it has raised itself. So times include everything but
/// links and peers that come late. First it checks [#CASES] random sums and copies.
///
/// The argument is the cache folder of compiled kernels.
public final class SmallMessages {
  private static final int CASES = 2_000;
  private static final int KERNELS = 100;
  private static final int REPLAYS = 20;
  private static final int WORD_BYTES = 64;
  private static final int MOST_PARTS = 8;
  private static final long MOST_BYTES = 16L << 20;
  private static final double MICROS_PER_MILLI = 1e3;
  private static final double NANOS_PER_MICRO = 1e3;
  private static final ElementType TYPE = ElementType.BF16;

  private static final int M = 128;
  private static final int N = 7168;
  private static final int K = 1536;

  /// Plans of the multiplication of which the fastest is used.
  private static final int PLANS = 8;

  private final Gpu gpu;
  private final Kernels kernels;
  private final GpuStream stream;
  private final long parts;
  private final long out;
  private final long words;

  private SmallMessages(Gpu gpu, Kernels kernels) {
    this.gpu = gpu;
    this.kernels = kernels;
    this.stream = gpu.stream(gpu.greatestPriority());
    this.parts = gpu.allocate(MOST_PARTS * MOST_BYTES);
    this.out = gpu.allocate(MOST_PARTS * MOST_BYTES);
    this.words = gpu.allocate((long) WORD_BYTES * WORD_BYTES);
    gpu.fill(words, (byte) 0, (long) WORD_BYTES * WORD_BYTES);
    for (int part = 0; part < MOST_PARTS; part++) {
      kernels.draw(stream, part(part), MOST_BYTES / TYPE.bytes(), TYPE, Drawn.INTEGERS, part);
    }
    stream.synchronize();
  }

  public static void main(String[] args) {
    var cache =
        args.length > 0
            ? Path.of(args[0])
            : Path.of(System.getProperty("user.home"), ".cache", "braid", "kernels");
    var missing = Gpu.missing();
    if (missing.isPresent()) {
      System.err.println("nothing can be measured: " + missing.get());
      System.exit(1);
    }
    try (var gpu = Gpu.open(0, "small messages");
        var kernels = Kernels.load(gpu, cache);
        var attention = AttentionKernels.load(gpu, cache)) {
      print("%s%n", gpu.where());
      try (var bench = new CheckBench(gpu, kernels, attention, _ -> {})) {
        report("sums", HandshakeChecks.sums(bench, CASES));
        report("copies", HandshakeChecks.pushes(bench, CASES));
      }
      var program = new SmallMessages(gpu, kernels);
      program.sums();
      program.chain();
      program.pushes();
      program.enqueuing();
    }
  }

  private static void report(String subject, Optional<String> wrong) {
    print("%d random %s: %s%n", CASES, subject, wrong.map("WRONG: "::concat).orElse("0 wrong"));
  }

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private static void print(String line, Object... values) {
    System.out.printf(Locale.ROOT, line, values);
  }

  private long part(int number) {
    return parts + number * MOST_BYTES;
  }

  /// Returns the signals of a kernel that has some peers, and waits for those that it raises.
  private Handshake signals(int peers) {
    var first = IntStream.range(0, peers).mapToObj(peer -> word(1 + peer)).toList();
    var last = IntStream.range(0, peers).mapToObj(peer -> word(1 + MOST_PARTS + peer)).toList();
    return new Handshake(words, first, first, last, last);
  }

  private long word(int number) {
    return words + (long) number * WORD_BYTES;
  }

  /// Work that a value of the signals distinguishes.
  private double micros(LongConsumer work) {
    stream.beginCapture();
    for (int i = 1; i <= KERNELS; i++) {
      work.accept(i);
    }
    try (var graph = stream.endCapture();
        var begin = gpu.event(true);
        var end = gpu.event(true)) {
      graph.upload(stream);
      var times = new ArrayList<Double>();
      for (int replay = 0; replay < REPLAYS; replay++) {
        stream.record(begin);
        graph.launch(stream);
        stream.record(end);
        stream.synchronize();
        times.add(end.millisecondsSince(begin) * MICROS_PER_MILLI / KERNELS);
      }
      return median(times);
    }
  }

  private static double median(List<Double> times) {
    return times.stream().sorted().skip(times.size() / 2).findFirst().orElseThrow();
  }

  private ReduceArguments sum(int ranks, long bytes) {
    return ReduceArguments.of(
        IntStream.range(0, ranks)
            .mapToObj(rank -> new ReduceArguments.Part(part(rank), TYPE))
            .toList(),
        new ReduceArguments.Part(out, TYPE),
        1,
        bytes / TYPE.bytes(),
        ReduceArguments.Finish.NONE);
  }

  private double signalled(ReduceArguments arguments, Handshake signals) {
    return micros(
        value -> {
          signals.set(value, true);
          kernels.reduce(stream, arguments, signals);
        });
  }

  /// Sums beside a sum without signals on all multiprocessors, and a copy that reads and writes as
  /// many bytes.
  private void sums() {
    print(
        "%n%-8s %10s %12s %12s %12s %14s%n",
        "parts", "KiB each", "signals, us", "plain, us", "copy, us", "signals, GB/s");
    for (int ranks : List.of(2, 4, 8)) {
      for (long bytes = 64L << 10; bytes <= MOST_BYTES; bytes *= 4) {
        var arguments = sum(ranks, bytes);
        long moved = (ranks + 1) * bytes;
        double signalled = signalled(arguments, signals(ranks - 1));
        double plain = micros(_ -> kernels.reduce(stream, kernels.fullGrid(), arguments));
        double copy = micros(_ -> stream.copy(out, parts, moved / 2));
        print(
            "%-8d %10d %12.2f %12.2f %12.2f %14.0f%n",
            ranks, bytes >> 10, signalled, plain, copy, moved / signalled / NANOS_PER_MICRO);
      }
    }
  }

  /// A multiplication and the sum of as many parts as ranks behind it.
  private void chain() {
    long bytes = (long) M * N * TYPE.bytes();
    var problem =
        new Lt.Problem(
            new Lt.Layout(Lt.Type.BF16, M, K, K, false),
            new Lt.Layout(Lt.Type.BF16, K, N, N, false),
            new Lt.Layout(Lt.Type.BF16, M, N, N, false),
            false,
            0,
            1,
            0,
            0,
            0);
    long workspace = gpu.allocate(Lt.WORKSPACE_BYTES);
    long weight = out + MOST_BYTES;
    kernels.draw(stream, weight, (long) K * N, TYPE, Drawn.INTEGERS, 1);
    stream.synchronize();
    try (var lt = Lt.open(gpu)) {
      var plans = lt.candidates(problem, PLANS, Lt.WORKSPACE_BYTES);
      var times = new double[plans.size()];
      for (int i = 0; i < times.length; i++) {
        times[i] = multiplication(plans.get(i), weight, workspace);
      }
      int best =
          IntStream.range(0, times.length)
              .reduce((one, other) -> times[one] <= times[other] ? one : other)
              .orElseThrow();
      var plan = plans.get(best);
      print("%nGEMM %dx%dx%d: %.2f us%n", M, N, K, times[best]);
      print("%-8s %14s %14s %22s%n", "ranks", "GEMM, sum, us", "beyond, us", "bytes at 3 TB/s, us");
      for (int ranks : List.of(2, 4, 8)) {
        var arguments = sum(ranks, bytes);
        var signals = signals(ranks - 1);
        double chain =
            micros(
                value -> {
                  run(plan, weight, workspace);
                  signals.set(value, true);
                  kernels.reduce(stream, arguments, signals);
                });
        print(
            "%-8d %14.2f %14.2f %22.2f%n",
            ranks, chain, chain - times[best], (ranks + 1) * bytes / 3e6);
      }
      plans.forEach(Lt.Plan::close);
    }
    gpu.free(workspace);
  }

  private double multiplication(Lt.Plan plan, long weight, long workspace) {
    return micros(_ -> run(plan, weight, workspace));
  }

  /// Multiplies into the first part.
  private void run(Lt.Plan plan, long weight, long workspace) {
    long to = part(0);
    plan.run(stream, 1, part(MOST_PARTS - 1), weight, 0, to, to, 0, workspace);
  }

  private CopyArguments pushed(int ranks, long bytes) {
    return new CopyArguments(
        IntStream.range(0, ranks)
            .mapToObj(peer -> new GpuCopy(out + peer * MOST_BYTES, parts, bytes))
            .toList());
  }

  private void pushes() {
    print("%n%-8s %10s %12s%n", "ranks", "KiB each", "push, us");
    for (int ranks : List.of(2, 4, 8)) {
      for (long bytes : List.of(16L << 10, 64L << 10, 256L << 10)) {
        var arguments = pushed(ranks, bytes);
        var signals = signals(ranks - 1);
        double push =
            micros(
                value -> {
                  signals.set(value, true);
                  kernels.copyAll(stream, arguments, signals);
                });
        print("%-8d %10d %12.2f%n", ranks, bytes >> 10, push);
      }
    }
  }

  /// The host's time to enqueue a prepared push of 16 KiB.
  private void enqueuing() {
    var arguments = pushed(2, 16L << 10);
    var signals = signals(1);
    var nanos = new long[REPLAYS * KERNELS];
    for (int round = 0; round < nanos.length; round++) {
      long begin = System.nanoTime();
      for (int i = 1; i <= KERNELS; i++) {
        signals.set((long) round * KERNELS + i, false);
        kernels.copyAll(stream, arguments, signals);
      }
      nanos[round] = System.nanoTime() - begin;
      stream.synchronize();
    }
    // The first rounds run before the code is compiled.
    Arrays.sort(nanos, nanos.length / 2, nanos.length);
    print(
        "%nhost, to enqueue a push of 16 KiB to 2 ranks: %.2f us%n",
        nanos[nanos.length * 3 / 4] / NANOS_PER_MICRO / KERNELS);
  }
}
