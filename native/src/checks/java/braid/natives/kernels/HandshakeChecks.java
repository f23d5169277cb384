package braid.natives.kernels;

import braid.natives.cuda.GpuCopy;
import braid.natives.cuda.GpuGraph;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.LongFunction;
import java.util.stream.IntStream;

/// Checks kernels that exchange signals. Streams of one GPU are the ranks: each writes its part,
/// tells the others, and reads or writes their memory, several iterations in flight.
final class HandshakeChecks {
  private static final int CASES = 100;
  private static final int MOST_RANKS = 4;
  private static final int IN_FLIGHT = 3;
  private static final int REPLAYS = 20;
  private static final int MOST_NUMBERS = 40_000;
  private static final int WORD_BYTES = 64;
  private static final long SEED = 31;
  private static final List<ElementType> TYPES =
      List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16, ElementType.E5M2);

  // Kinds of words; each rank has one of each kind for each other rank.
  private static final int FIRST = 0;
  private static final int LAST = 1;
  private static final int KINDS = 2;

  private HandshakeChecks() {}

  static void run(CheckBench bench) {
    bench.check("reduce", "random sums of ranks that signal", () -> sums(bench, CASES));
    bench.check("copy_all", "random copies of ranks that signal", () -> pushes(bench, CASES));
    bench.check("reduce", "replays alternate between two values", () -> replays(bench));
    bench.check("reduce", "a wait ends when the host writes the word", () -> released(bench));
  }

  /// The streams and memory of some ranks.
  private static final class Ranks implements AutoCloseable {
    private final CheckBench bench;
    private final int count;
    private final List<GpuStream> streams = new ArrayList<>();
    private final List<CheckBench.Buffer> buffers = new ArrayList<>();
    private final List<CheckBench.Buffer> words = new ArrayList<>();
    private final List<CheckBench.Buffer> arrived = new ArrayList<>();
    private final List<Handshake> handshakes = new ArrayList<>();

    Ranks(CheckBench bench, int count) {
      this.bench = bench;
      this.count = count;
      for (int rank = 0; rank < count; rank++) {
        streams.add(bench.gpu().stream(bench.gpu().leastPriority()));
        int bytes = KINDS * MOST_RANKS * WORD_BYTES;
        words.add(buffer(bytes).put(new byte[bytes]));
        arrived.add(buffer(Integer.BYTES).put(new byte[Integer.BYTES]));
      }
      for (int rank = 0; rank < count; rank++) {
        handshakes.add(
            new Handshake(
                arrived.get(rank).address(),
                raised(rank, FIRST),
                awaited(rank, FIRST),
                raised(rank, LAST),
                awaited(rank, LAST)));
      }
    }

    CheckBench.Buffer buffer(long bytes) {
      var buffer = bench.buffer(bytes, 0);
      buffers.add(buffer);
      return buffer;
    }

    private List<Integer> peers(int rank) {
      return IntStream.range(0, count).filter(peer -> peer != rank).boxed().toList();
    }

    private List<Long> raised(int rank, int kind) {
      return peers(rank).stream().map(peer -> word(peer, kind, rank)).toList();
    }

    private List<Long> awaited(int rank, int kind) {
      return peers(rank).stream().map(peer -> word(rank, kind, peer)).toList();
    }

    private long word(int owner, int kind, int raiser) {
      return words.get(owner).address() + (long) (kind * MOST_RANKS + raiser) * WORD_BYTES;
    }

    /// Returns the signals of a rank for launches with that value.
    Handshake signals(int rank, long value, boolean exact) {
      var signals = handshakes.get(rank);
      signals.set(value, exact);
      return signals;
    }

    GpuStream stream(int rank) {
      return streams.get(rank);
    }

    /// Waits for all ranks. Returns an error unless all kernels have ended properly.
    Optional<String> ended() {
      streams.forEach(GpuStream::synchronize);
      for (var counter : arrived) {
        if (MemorySegment.ofArray(counter.get()).mismatch(MemorySegment.ofArray(new byte[4]))
            >= 0) {
          return Optional.of("the counter of blocks is not 0 after a kernel");
        }
      }
      return Optional.empty();
    }

    @Override
    public void close() {
      streams.forEach(GpuStream::close);
      buffers.forEach(CheckBench.Buffer::close);
    }
  }

  /// An iteration of all ranks, several of which are in flight.
  private interface Iteration {
    /// Enqueues a rank's work, with a result for each rank.
    void enqueue(int rank, long value, List<CheckBench.Buffer> results);
  }

  /// Runs iterations in flight, and returns an error unless all ranks' results begin with the
  /// content.
  private static Optional<String> inFlight(
      Ranks all,
      List<CheckBench.Buffer> outputs,
      long value,
      Iteration work,
      LongFunction<byte[]> expected) {
    for (int iteration = 0; iteration < IN_FLIGHT; iteration++) {
      for (int rank = 0; rank < all.count; rank++) {
        work.enqueue(rank, value + iteration, results(all, outputs, iteration));
      }
    }
    var wrong = all.ended();
    for (int iteration = 0; wrong.isEmpty() && iteration < IN_FLIGHT; iteration++) {
      var content = expected.apply(value + iteration);
      for (int rank = 0; wrong.isEmpty() && rank < all.count; rank++) {
        wrong = holds(results(all, outputs, iteration).get(rank), content);
      }
    }
    return wrong;
  }

  private static List<CheckBench.Buffer> results(
      Ranks all, List<CheckBench.Buffer> outputs, int iteration) {
    return outputs.subList(iteration * all.count, (iteration + 1) * all.count);
  }

  /// Adds parts of random sizes and types on 2 to 4 ranks. The next iteration overwrites a part as
  /// soon as the signals allow.
  static Optional<String> sums(CheckBench bench, int cases) {
    var random = new Random(SEED);
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
      int count = ranks;
      try (var all = new Ranks(bench, ranks)) {
        long bytes = (long) MOST_NUMBERS * Float.BYTES;
        var parts = buffers(all, ranks, bytes);
        var outputs = buffers(all, ranks * IN_FLIGHT, bytes);
        for (int i = 0; i < cases / (MOST_RANKS - 1) + 1; i++) {
          var type = TYPES.get(random.nextInt(TYPES.size()));
          int numbers = 1 + random.nextInt(random.nextBoolean() ? 100 : MOST_NUMBERS);
          var wrong =
              inFlight(
                  all,
                  outputs,
                  1 + (long) i * IN_FLIGHT,
                  (rank, value, results) ->
                      sum(
                          all,
                          rank,
                          type,
                          numbers,
                          value,
                          false,
                          parts,
                          results.get(rank).address()),
                  value -> expected(count, type, numbers, value));
          if (wrong.isPresent()) {
            return wrong.map(
                "%d numbers of %s on %d ranks: ".formatted(numbers, type, ranks)::concat);
          }
        }
      }
    }
    return Optional.empty();
  }

  private static List<CheckBench.Buffer> buffers(Ranks all, int count, long bytes) {
    return IntStream.range(0, count).mapToObj(_ -> all.buffer(bytes)).toList();
  }

  /// Enqueues an iteration of a rank: it writes its part, and adds all parts.
  private static void sum(
      Ranks all,
      int rank,
      ElementType type,
      int numbers,
      long value,
      boolean exact,
      List<CheckBench.Buffer> parts,
      long out) {
    var stream = all.stream(rank);
    var kernels = all.bench.kernels();
    kernels.draw(
        stream, parts.get(rank).address(), numbers, type, Drawn.INTEGERS, seed(rank, value));
    var arguments =
        ReduceArguments.of(
            parts.stream().map(part -> new ReduceArguments.Part(part.address(), type)).toList(),
            new ReduceArguments.Part(out, type),
            1,
            numbers,
            ReduceArguments.Finish.NONE);
    kernels.reduce(stream, arguments, all.signals(rank, value, exact));
  }

  private static long seed(int rank, long value) {
    return value * MOST_RANKS + rank;
  }

  private static byte[] expected(int ranks, ElementType type, int numbers, long value) {
    return CheckBench.bytes(
        type,
        numbers,
        i -> {
          float sum = 0;
          for (int rank = 0; rank < ranks; rank++) {
            sum += type.round(Integers.at(seed(rank, value), i));
          }
          return sum;
        });
  }

  /// Returns an error unless a buffer begins with the content.
  private static Optional<String> holds(CheckBench.Buffer buffer, byte[] expected) {
    long index =
        MemorySegment.mismatch(
            MemorySegment.ofArray(expected),
            0,
            expected.length,
            MemorySegment.ofArray(buffer.get()),
            0,
            expected.length);
    return index < 0
        ? buffer.guards()
        : Optional.of("byte %d of %d is wrong".formatted(index, expected.length));
  }

  /// Copies random parts to all ranks, which are overwritten as soon as the signals allow.
  static Optional<String> pushes(CheckBench bench, int cases) {
    var random = new Random(SEED);
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
      int count = ranks;
      try (var all = new Ranks(bench, ranks)) {
        var parts = buffers(all, ranks, MOST_NUMBERS);
        var gathered = buffers(all, ranks * IN_FLIGHT, (long) MOST_RANKS * MOST_NUMBERS);
        for (int i = 0; i < cases / (MOST_RANKS - 1) + 1; i++) {
          int bytes = 1 + random.nextInt(random.nextBoolean() ? 100 : MOST_NUMBERS);
          var wrong =
              inFlight(
                  all,
                  gathered,
                  1 + (long) i * IN_FLIGHT,
                  (rank, value, results) -> push(all, rank, bytes, value, parts, results),
                  value -> gathered(count, bytes, value));
          if (wrong.isPresent()) {
            return wrong.map("%d bytes on %d ranks: ".formatted(bytes, ranks)::concat);
          }
        }
      }
    }
    return Optional.empty();
  }

  private static void push(
      Ranks all,
      int rank,
      int bytes,
      long value,
      List<CheckBench.Buffer> parts,
      List<CheckBench.Buffer> gathered) {
    var stream = all.stream(rank);
    var kernels = all.bench.kernels();
    long part = parts.get(rank).address();
    kernels.draw(stream, part, bytes, ElementType.E5M2, Drawn.INTEGERS, seed(rank, value));
    var copies =
        gathered.stream()
            .map(to -> new GpuCopy(to.address() + (long) rank * bytes, part, bytes))
            .toList();
    kernels.copyAll(stream, new CopyArguments(copies), all.signals(rank, value, false));
  }

  private static byte[] gathered(int ranks, int bytes, long value) {
    return CheckBench.bytes(
        ElementType.E5M2, ranks * bytes, i -> Integers.at(seed(i / bytes, value), i % bytes));
  }

  /// Replays two graphs per rank in turn, without waiting for the GPU in between.
  private static Optional<String> replays(CheckBench bench) {
    var type = ElementType.BF16;
    int numbers = 3 * 1024 + 5;
    int values = 2;
    try (var all = new Ranks(bench, values)) {
      var parts = buffers(all, values, (long) numbers * type.bytes());
      var outputs = buffers(all, values * values, (long) numbers * type.bytes());
      var graphs = new ArrayList<GpuGraph>();
      try {
        for (int rank = 0; rank < values; rank++) {
          for (int value = 0; value < values; value++) {
            all.stream(rank).beginCapture();
            long out = outputs.get(rank * values + value).address();
            sum(all, rank, type, numbers, 1 + value, true, parts, out);
            graphs.add(all.stream(rank).endCapture());
          }
        }
        for (int replay = 0; replay < REPLAYS; replay++) {
          for (int rank = 0; rank < values; rank++) {
            graphs.get(rank * values + replay % values).launch(all.stream(rank));
          }
        }
        var wrong = all.ended();
        for (int i = 0; wrong.isEmpty() && i < outputs.size(); i++) {
          wrong = holds(outputs.get(i), expected(values, type, numbers, 1 + i % values));
        }
        return wrong;
      } finally {
        graphs.forEach(GpuGraph::close);
      }
    }
  }

  /// Ends a wait as a rank does whose peer has died. The peer's part is written after the kernel
  /// has begun, so that it must have waited.
  private static Optional<String> released(CheckBench bench) {
    var type = ElementType.FP32;
    int numbers = 1000;
    try (var all = new Ranks(bench, 2)) {
      var parts = buffers(all, 2, (long) numbers * type.bytes());
      var out = all.buffer((long) numbers * type.bytes());
      var value = new byte[Long.BYTES];
      value[0] = 7;
      sum(all, 0, type, numbers, 7, false, parts, out.address());
      while (!Arrays.equals(bench.read(all.word(1, FIRST, 0), Long.BYTES), value)) {
        Thread.onSpinWait();
      }
      bench
          .kernels()
          .draw(all.stream(1), parts.get(1).address(), numbers, type, Drawn.INTEGERS, seed(1, 7));
      all.stream(1).synchronize();
      for (int kind = 0; kind < KINDS; kind++) {
        bench.write(all.word(0, kind, 1), value);
      }
      return all.ended().or(() -> holds(out, expected(2, type, numbers, 7)));
    }
  }
}
