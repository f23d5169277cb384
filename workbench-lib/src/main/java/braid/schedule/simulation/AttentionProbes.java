package braid.schedule.simulation;

import braid.internal.work.AttentionTile;
import braid.natives.Blas;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/// Measurements of the parts of an attention on the host: both multiplications of a tile, by head
/// size, its weights, and its rows of partial results.
final class AttentionProbes {
  private static final List<Integer> HEAD_SIZES = List.of(32, 64, 128, 256);

  /// Heads that share a row of the measured tiles, and keys that its tiles take turns on.
  private static final int HEADS = 4;

  private static final int KEYS = 8 * AttentionTile.KEYS;

  /// Head size of the products that are added to an output.
  private static final int WEIGHED_HEAD_SIZE = 64;

  /// Runs after which the loops of a tile are compiled.
  private static final int COMPILING_RUNS = 500;

  private final Arena arena;
  private final List<Probe> tiles;
  private final Probe weights;
  private final Probe results;

  AttentionProbes(Arena arena) {
    this.arena = arena;
    tiles = HEAD_SIZES.stream().map(this::tile).toList();
    weights = weights();
    results = results();
  }

  List<Probe> all() {
    return Stream.concat(tiles.stream(), Stream.of(weights, results)).toList();
  }

  GemmRates rates() {
    return new GemmRates(
        List.of(AttentionTile.ROWS), List.of(AttentionTile.KEYS), HEAD_SIZES, Probe.gflops(tiles));
  }

  double weightsPerSecond() {
    return Math.rint(1e9 * weights.rate());
  }

  double resultsPerSecond() {
    return Math.rint(1e9 * results.rate());
  }

  /// Measures the two multiplications of a tile of attention, with keys that change from tile to
  /// tile.
  private Probe tile(int headSize) {
    int rows = AttentionTile.ROWS;
    int keys = AttentionTile.KEYS;
    int stride = HEADS * headSize;
    var query = Probe.numbers(arena, (long) rows * stride);
    var key = Probe.numbers(arena, (long) KEYS * stride);
    var value = Probe.numbers(arena, (long) KEYS * stride);
    var scores = Probe.numbers(arena, (long) rows * keys);
    var products = Probe.numbers(arena, (long) rows * headSize);
    var tile = new AtomicInteger();
    return new Probe(
        4.0 * rows * keys * headSize,
        () -> {
          long from = Probe.bytes(tile.getAndIncrement() * keys % KEYS, stride);
          Blas.sgemm(
              new Blas.Factor(query, stride, false),
              new Blas.Factor(key.asSlice(from), stride, true),
              new Blas.Sum(rows, keys, headSize, 1, 0, scores));
          Blas.sgemm(
              new Blas.Factor(scores, keys, false),
              new Blas.Factor(value.asSlice(from), stride, false),
              new Blas.Sum(rows, headSize, keys, 1, 0, products));
        });
  }

  /// Measures the rest of a tile of attention: its weights, and adding its products.
  private Probe weights() {
    int rows = AttentionTile.ROWS;
    int keys = AttentionTile.KEYS;
    var given = Probe.numbers(arena, (long) rows * keys);
    var memory = Probe.numbers(arena, (long) rows * keys);
    var scores = new float[rows * keys];
    var products = new float[rows * WEIGHED_HEAD_SIZE];
    var outputs = new float[rows * WEIGHED_HEAD_SIZE];
    Runnable tile =
        () -> {
          MemorySegment.copy(given, ValueLayout.JAVA_FLOAT, 0, scores, 0, scores.length);
          for (int row = 0; row < rows; row++) {
            int from = row * keys;
            float largest = AttentionTile.largest(scores, from, from + keys, 0);
            outputs[0] += AttentionTile.weigh(scores, from, from + keys, largest);
          }
          MemorySegment.copy(scores, 0, memory, ValueLayout.JAVA_FLOAT, 0, scores.length);
          MemorySegment.copy(memory, ValueLayout.JAVA_FLOAT, 0, products, 0, products.length);
          for (int i = 0; i < products.length; i++) {
            outputs[i] += products[i];
          }
        };
    return compiled((double) rows * keys, tile);
  }

  /// Measures reading, scaling and writing the partial results of a tile's rows.
  private Probe results() {
    int rows = AttentionTile.ROWS;
    int headSize = WEIGHED_HEAD_SIZE;
    var output = Probe.numbers(arena, (long) rows * HEADS * headSize);
    var lse = Probe.numbers(arena, (long) rows * HEADS);
    var outputs = new float[rows * headSize];
    return compiled(
        rows,
        () -> {
          for (int row = 0; row < rows; row++) {
            int at = row * headSize;
            long bytes = Probe.bytes(row * HEADS, headSize);
            long place = (long) row * HEADS;
            float before = lse.getAtIndex(ValueLayout.JAVA_FLOAT, place);
            MemorySegment.copy(output, ValueLayout.JAVA_FLOAT, bytes, outputs, at, headSize);
            for (int i = at; i < at + headSize; i++) {
              outputs[i] *= 0.5f;
            }
            MemorySegment.copy(outputs, at, output, ValueLayout.JAVA_FLOAT, bytes, headSize);
            float after = (float) (before / 2 + Math.log(1 + row));
            lse.setAtIndex(ValueLayout.JAVA_FLOAT, place, after);
          }
        });
  }

  /// Runs the body until its loops are compiled.
  private static Probe compiled(double amount, Runnable body) {
    for (int run = 0; run < COMPILING_RUNS; run++) {
      body.run();
    }
    return new Probe(amount, body);
  }
}
