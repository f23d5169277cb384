package braid.natives.cublasmp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import braid.natives.ForeignLibrary;
import braid.natives.cublasmp.CublasMp.Algorithm;
import braid.natives.cublasmp.CublasMp.Operation;
import braid.natives.cublasmp.CublasMp.Shape;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Products by a library that does what the descriptors say, compared with plain loops. Ranks are
/// threads, and the memory is the host's.
class StandInTest {
  private static final int COMMUNICATOR_BYTES = 16;
  private static final long STREAM = 1;

  @TempDir private static Path folder = Path.of("");
  private static Path onHost = Path.of("");
  private static Path standIn = Path.of("");

  @BeforeAll
  static void compile() throws IOException, InterruptedException {
    onHost = compile("on_host.c");
    standIn = compile("stand_in.c", "-DBLAS=\"" + onHost + "\"", "-DNCCL=\"" + onHost + "\"");
  }

  private static Path compile(String name, String... options)
      throws IOException, InterruptedException {
    var source = folder.resolve(name);
    try (var code = Objects.requireNonNull(StandInTest.class.getResourceAsStream(name))) {
      Files.write(source, code.readAllBytes());
    }
    var file = folder.resolve(name.replace(".c", ".so"));
    var all = Stream.concat(Stream.of("-Wall", "-Wextra", "-Werror"), Stream.of(options));
    Gcc.library(source, file, all.toArray(String[]::new));
    return file;
  }

  /// A product's numbers on all ranks.
  private record Numbers(Shape shape, int ranks, List<float[]> inputs, List<float[]> weights) {
    static Numbers random(Shape shape, int ranks, long seed) {
      var random = new Random(seed);
      int inputs = Math.toIntExact(part(shape, ranks) * shape.depth());
      int weights = Math.toIntExact(shape.depth() * shape.columns());
      return new Numbers(
          shape, ranks, random(random, ranks, inputs), random(random, ranks, weights));
    }

    /// Returns the rows of the input that a rank has.
    private static long part(Shape shape, int ranks) {
      return shape.operation() == Operation.ALL_GATHER ? shape.rows() / ranks : shape.rows();
    }

    private static List<float[]> random(Random random, int ranks, int count) {
      var all = new ArrayList<float[]>();
      for (int rank = 0; rank < ranks; rank++) {
        var one = new float[count];
        for (int i = 0; i < count; i++) {
          one[i] = random.nextInt(9) - 4;
        }
        all.add(one);
      }
      return all;
    }

    private double product(int inputRank, int weightRank, int row, int column) {
      int depth = Math.toIntExact(shape.depth());
      int columns = Math.toIntExact(shape.columns());
      double sum = 0;
      for (int i = 0; i < depth; i++) {
        int place = shape.weightTransposed() ? column * depth + i : i * columns + column;
        sum += (double) inputs.get(inputRank)[row * depth + i] * weights.get(weightRank)[place];
      }
      return sum;
    }

    /// Returns the output of a rank.
    float[] expected(int rank) {
      int rows = Math.toIntExact(shape.rows());
      int columns = Math.toIntExact(shape.columns());
      int share = rows / ranks;
      boolean scatters = shape.operation() == Operation.REDUCE_SCATTER;
      var output = new float[(scatters ? share : rows) * columns];
      for (int i = 0; i < output.length; i++) {
        int row = i / columns;
        int column = i % columns;
        double value = 0;
        if (shape.operation() == Operation.ALL_GATHER) {
          value = product(row / share, rank, row % share, column);
        } else {
          for (int peer = 0; peer < ranks; peer++) {
            value += product(peer, peer, scatters ? rank * share + row : row, column);
          }
        }
        output[i] = (float) value;
      }
      return output;
    }
  }

  private static long communicators(int ranks) throws Throwable {
    var function =
        ForeignLibrary.at(onHost)
            .function("communicators", FunctionDescriptor.of(ADDRESS, JAVA_INT));
    return ((MemorySegment) function.invokeExact(ranks)).address();
  }

  /// Runs a product three times on one rank, and returns its output.
  private static float[] run(Numbers numbers, int rank, long communicator) {
    var shape = numbers.shape();
    try (var arena = Arena.ofConfined();
        var library =
            CublasMp.open(
                CublasMpCalls.of(ForeignLibrary.at(standIn)),
                communicator,
                STREAM,
                numbers.ranks(),
                "rank " + rank,
                () -> {});
        var product = library.product(shape)) {
      product.use(arena.allocate(product.workspaceBytes(), Long.BYTES).address());
      var input = arena.allocateFrom(JAVA_FLOAT, numbers.inputs().get(rank));
      var weight = arena.allocateFrom(JAVA_FLOAT, numbers.weights().get(rank));
      var output = arena.allocate(JAVA_FLOAT, numbers.expected(rank).length);
      for (int i = 0; i < 3; i++) {
        output.fill((byte) -1);
        product.enqueue(weight.address(), input.address(), output.address(), STREAM);
      }
      return output.toArray(JAVA_FLOAT);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "ALL_GATHER, false",
    "ALL_GATHER, true",
    "REDUCE_SCATTER, false",
    "REDUCE_SCATTER, true",
    "ALL_REDUCE, true"
  })
  void productsEqualPlainLoops(Operation operation, boolean transposed) throws Throwable {
    var random = new Random(operation.name().hashCode());
    for (int ranks : List.of(1, 2, 3, 4)) {
      for (int i = 0; i < 50; i++) {
        var shape =
            new Shape(
                operation,
                (1L + random.nextInt(6)) * ranks,
                1 + random.nextInt(9),
                1 + random.nextInt(9),
                CublasMp.Type.FP32,
                transposed,
                Algorithm.DEFAULT,
                0);
        compare(Numbers.random(shape, ranks, random.nextLong()));
      }
    }
  }

  private static void compare(Numbers numbers) throws Throwable {
    long communicators = communicators(numbers.ranks());
    var threads =
        Executors.newFixedThreadPool(numbers.ranks(), Thread.ofPlatform().daemon().factory());
    try {
      var outputs = new ArrayList<Callable<float[]>>();
      for (int rank = 0; rank < numbers.ranks(); rank++) {
        int current = rank;
        long own = communicators + (long) rank * COMMUNICATOR_BYTES;
        outputs.add(() -> run(numbers, current, own));
      }
      // A rank that fails leaves the others behind.
      var results = threads.invokeAll(outputs, 60, TimeUnit.SECONDS);
      for (int rank = 0; rank < numbers.ranks(); rank++) {
        assertThat(results.get(rank).get())
            .as("%s, rank %d of %d", numbers.shape(), rank, numbers.ranks())
            .containsExactly(numbers.expected(rank));
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
