package braid;

import static braid.natives.kernels.PlainAttention.all;
import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.ChainStudy;
import braid.model.AttentionSpec;
import braid.model.Configuration;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Span;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.natives.kernels.PlainAttention.Errors;
import braid.natives.kernels.PlainAttention.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Chains of projections and attention, compared with plain loops in double precision over the
/// whole sequence.
class ContextParallelLayerTest {
  private static final int HIDDEN = 10;
  private static final int HEADS = 4;
  private static final int KV_HEADS = 2;
  private static final int HEAD_SIZE = 3;
  private static final int WIDTH = HEADS * HEAD_SIZE;
  private static final int KV_WIDTH = KV_HEADS * HEAD_SIZE;
  private static final double MOST_ERROR = 1e-5;

  /// Tokens of the sequence, and the weights of all heads.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  private record Layer(int sequence, float[] x, float[] q, float[] k, float[] v, float[] o) {
    static Layer random(int sequence, long seed) {
      var random = new Random(seed);
      return new Layer(
          sequence,
          numbers(random, sequence * HIDDEN),
          numbers(random, HIDDEN * WIDTH),
          numbers(random, HIDDEN * KV_WIDTH),
          numbers(random, HIDDEN * KV_WIDTH),
          numbers(random, WIDTH * HIDDEN));
    }

    private static float[] numbers(Random random, int count) {
      var numbers = new float[count];
      for (int i = 0; i < count; i++) {
        numbers[i] = (float) random.nextGaussian() / 2;
      }
      return numbers;
    }

    /// Projections, causal attention, projection.
    double[] output() {
      return output(doubles(x));
    }

    private double[] output(double... tokens) {
      var query = times(tokens, q, sequence, HIDDEN, WIDTH);
      var key = times(tokens, k, sequence, HIDDEN, KV_WIDTH);
      var value = times(tokens, v, sequence, HIDDEN, KV_WIDTH);
      var shape =
          new Shape(
              sequence, sequence, HEADS, HEADS / KV_HEADS, HEAD_SIZE, 1 / Math.sqrt(HEAD_SIZE));
      var attended =
          new braid.natives.kernels.PlainAttention(
                  shape,
                  (row, other) -> other <= row,
                  braid.natives.kernels.PlainAttention.numbers(WIDTH, query),
                  braid.natives.kernels.PlainAttention.numbers(KV_WIDTH, key),
                  braid.natives.kernels.PlainAttention.numbers(KV_WIDTH, value))
              .forward(Errors.FP32, all(sequence))
              .output()
              .values();
      return times(attended, o, sequence, WIDTH, HIDDEN);
    }

    /// The gradient of the tokens, by central differences.
    double[] inputGradient(float... outputGradient) {
      double step = 1e-4;
      var gradient = new double[x.length];
      for (int i = 0; i < gradient.length; i++) {
        var changed = doubles(x);
        changed[i] += step;
        var higher = output(changed);
        changed[i] -= 2 * step;
        var lower = output(changed);
        for (int j = 0; j < higher.length; j++) {
          gradient[i] += outputGradient[j] * (higher[j] - lower[j]) / (2 * step);
        }
      }
      return gradient;
    }

    private static double[] doubles(float... numbers) {
      var doubles = new double[numbers.length];
      for (int i = 0; i < numbers.length; i++) {
        doubles[i] = numbers[i];
      }
      return doubles;
    }

    private static double[] times(double[] a, float[] b, int m, int k, int n) {
      var product = new double[m * n];
      for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
          for (int l = 0; l < k; l++) {
            product[i * n + j] += a[i * k + l] * b[l * n + j];
          }
        }
      }
      return product;
    }
  }

  /// Returns some columns of a matrix of rows.
  private static float[] columns(float[] all, int columns, int from, int count) {
    var some = new float[all.length / columns * count];
    for (int i = 0; i < some.length; i++) {
      some[i] = all[i / count * columns + from + i % count];
    }
    return some;
  }

  private static float[] rows(float[] all, int columns, List<Long> rows) {
    var some = new float[rows.size() * columns];
    for (int i = 0; i < some.length; i++) {
      some[i] = all[(int) (rows.get(i / columns) * columns + i % columns)];
    }
    return some;
  }

  private static List<Long> positions(AttentionSpec spec, int ranks, int rank) {
    var tokens = Tokens.of(spec, ranks, rank);
    var positions = new ArrayList<Long>();
    for (long row = 0; row < tokens.count(); row++) {
      positions.add(tokens.at(row));
    }
    return positions;
  }

  private static void compare(
      float[] got, double[] expected, List<Long> positions, String subject) {
    assertThat(got).as(subject).hasSize(positions.size() * HIDDEN);
    double largest = 0;
    double error = 0;
    for (int i = 0; i < got.length; i++) {
      double wanted = expected[(int) (positions.get(i / HIDDEN) * HIDDEN + i % HIDDEN)];
      largest = Math.max(largest, Math.abs(wanted));
      error = Math.max(error, Math.abs(got[i] - wanted));
    }
    assertThat(error / largest).as(subject).isLessThanOrEqualTo(MOST_ERROR);
  }

  /// The links of a rank's layer and their tensors, which are closed together.
  private static final class OnRank implements AutoCloseable {
    private final List<AutoCloseable> open = new ArrayList<>();
    private final ProcessGroup world;

    OnRank(ProcessGroup world) {
      this.world = world;
    }

    private <T extends AutoCloseable> T closing(T each) {
      open.add(each);
      return each;
    }

    LocalTensor local(long rows, long columns) {
      return closing(LocalTensor.on(world).shape(rows, columns).allocate());
    }

    @Override
    public void close() {
      open.reversed()
          .forEach(
              each -> {
                try {
                  each.close();
                } catch (Exception e) {
                  throw new AssertionError(e);
                }
              });
    }
  }

  /// The layer of a rank that holds a part of the tokens, and the weights of all heads.
  private static Chain contextParallel(
      OnRank onRank, AttentionSpec spec, ContextParallel tuning, Layer layer) {
    var world = onRank.world;
    var alone = world.subset("alone-" + world.rank(), world.rank());
    var mine = positions(spec, world.size(), world.rank());
    int rows = mine.size();
    long most =
        IntStream.range(0, world.size())
            .mapToLong(rank -> Tokens.of(spec, world.size(), rank).count())
            .max()
            .orElseThrow();
    var x = onRank.local(rows, HIDDEN);
    x.view().copyFrom(rows(layer.x(), HIDDEN, mine));
    var query = onRank.local(rows, WIDTH);
    var key = onRank.closing(SymmetricTensor.on(world).shape(most, KV_WIDTH).allocate());
    var value = onRank.closing(SymmetricTensor.on(world).shape(most, KV_WIDTH).allocate());
    var attended = onRank.local(rows, WIDTH);
    var toQuery = projection(onRank, alone, x, query, layer.q());
    var toKey = projection(onRank, alone, x, key.local().rows(0, rows), layer.k());
    var toValue = projection(onRank, alone, x, value.local().rows(0, rows), layer.v());
    var attention =
        onRank.closing(
            Pipeline.on(world)
                .attention(spec)
                .overlap(tuning)
                .query(query)
                .key(key)
                .value(value)
                .output(attended)
                .build());
    var result = onRank.local(rows, HIDDEN);
    var toOutput = projection(onRank, alone, attended, result, layer.o());
    return Chain.on(world).then(toQuery, toKey, toValue).then(attention).then(toOutput);
  }

  private static Pipeline projection(
      OnRank onRank, ProcessGroup group, Tensor from, Tensor to, float[] weight) {
    int m = Math.toIntExact(from.shape().getFirst());
    int k = Math.toIntExact(from.shape().getLast());
    int n = Math.toIntExact(to.shape().getLast());
    var pipeline =
        onRank.closing(
            Pipeline.on(group)
                .gemm(GemmSpec.allGatherGemm(m, n, k))
                .overlap(Overlap.pipelined(1))
                .input(from)
                .output(to)
                .build());
    pipeline.weight().copyFrom(weight);
    return pipeline;
  }

  /// Tokens are divided among the ranks, evenly or not; each rank has all weights.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void projectionsAndAttentionOfDividedTokensAreOneChain(int ranks) {
    for (var layout : AttentionTest.OF_ONE_SEQUENCE) {
      var spec = AttentionSpec.of(29, HEADS, HEAD_SIZE).kvHeads(KV_HEADS).causal().layout(layout);
      var layer = Layer.random(29, 5);
      var expected = layer.output();
      LocalRanks.run(
          ranks,
          world -> {
            for (var tuning :
                List.of(
                    ContextParallel.ring().splits(2),
                    ContextParallel.allGatherKv().streams(2).splits(3),
                    ContextParallel.ring().neighborToNeighbor().replay(),
                    ContextParallel.unfused())) {
              try (var onRank = new OnRank(world)) {
                var chain = contextParallel(onRank, spec, tuning, layer);
                assertThat(chain.pipelines()).hasSize(5);
                world.barrier();
                chain.run();
                var mine = positions(spec, ranks, world.rank());
                compare(output(chain).toFloats(), expected, mine, chain.toString());
                for (var form : Timing.values()) {
                  output(chain).fill(0);
                  assertThat(chain.time(4, form)).hasSize(4);
                  compare(output(chain).toFloats(), expected, mine, chain.toString());
                }
                chain.verify();
              }
            }
          });
    }
  }

  /// The gradients of a layer's tokens by query, key and value, whose sum is compared with finite
  /// differences.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void theBackwardPassOfALayerIsOneChainToo(int ranks) {
    int tokens = 17;
    var spec =
        AttentionSpec.of(tokens, HEADS, HEAD_SIZE)
            .kvHeads(KV_HEADS)
            .causal()
            .layout(TokenLayout.ZIGZAG);
    var layer = Layer.random(tokens, 8);
    var gradient = Layer.numbers(new Random(9), tokens * HIDDEN);
    var expected = layer.inputGradient(gradient);
    LocalRanks.run(
        ranks,
        world -> {
          var methods =
              new ArrayList<>(
                  List.of(
                      ContextParallel.ring().splits(2).neighborToNeighbor(),
                      ContextParallel.allGatherKv().streams(2).replay(),
                      ContextParallel.unfused()));
          if (KV_HEADS % ranks == 0) {
            methods.add(ContextParallel.ulysses());
          }
          for (var tuning : methods) {
            try (var onRank = new OnRank(world)) {
              var forward = contextParallel(onRank, spec, tuning, layer);
              world.barrier();
              forward.run();
              var mine = positions(spec, ranks, world.rank());
              var attention = forward.pipelines().get(3);
              var chain = backward(onRank, attention, tuning, layer, rows(gradient, HIDDEN, mine));
              for (var form : Timing.values()) {
                world.barrier();
                assertThat(chain.time(3, form)).hasSize(3);
                compare(sumOfLast(chain, 3), expected, mine, chain.toString());
                chain.pipelines().getLast().output().fill(0);
              }
              chain.verify();
              assertThat(chain.profile(1).configuration())
                  .containsEntry("backward 2", "%s, %s".formatted(spec.backward(), tuning));
            }
          }
        });
  }

  /// The backward pass of a rank's layer, from the gradient of its rows of the result.
  private static Chain backward(
      OnRank onRank, Pipeline attention, ContextParallel tuning, Layer layer, float[] gradient) {
    var world = onRank.world;
    var alone = world.subset("alone-" + world.rank(), world.rank());
    int rows = gradient.length / HIDDEN;
    var ofResult = onRank.local(rows, HIDDEN);
    ofResult.view().copyFrom(gradient);
    var ofAttended = onRank.local(rows, WIDTH);
    var ofQuery = onRank.local(rows, WIDTH);
    var ofKey = onRank.local(rows, KV_WIDTH);
    var ofValue = onRank.local(rows, KV_WIDTH);
    var backward =
        onRank.closing(
            Pipeline.on(world)
                .overlap(tuning)
                .backward(attention)
                .outputGradient(ofAttended)
                .queryGradient(ofQuery)
                .keyGradient(ofKey)
                .valueGradient(ofValue)
                .build());
    var toAttended =
        projection(onRank, alone, ofResult, ofAttended, transposed(layer.o(), WIDTH, HIDDEN));
    return Chain.on(world)
        .then(toAttended)
        .then(backward)
        .then(
            toTokens(onRank, alone, ofQuery, layer.q()),
            toTokens(onRank, alone, ofKey, layer.k()),
            toTokens(onRank, alone, ofValue, layer.v()));
  }

  private static Pipeline toTokens(
      OnRank onRank, ProcessGroup alone, LocalTensor gradient, float[] weight) {
    int rows = Math.toIntExact(gradient.shape().getFirst());
    int columns = Math.toIntExact(gradient.shape().getLast());
    return projection(
        onRank, alone, gradient, onRank.local(rows, HIDDEN), transposed(weight, HIDDEN, columns));
  }

  private static float[] transposed(float[] matrix, int rows, int columns) {
    var transposed = new float[matrix.length];
    for (int i = 0; i < matrix.length; i++) {
      transposed[i % columns * rows + i / columns] = matrix[i];
    }
    return transposed;
  }

  private static float[] sumOfLast(Chain chain, int count) {
    var all = chain.pipelines();
    var sum = all.getLast().output().toFloats();
    for (var pipeline : all.subList(all.size() - count, all.size() - 1)) {
      var part = pipeline.output().toFloats();
      for (int i = 0; i < part.length; i++) {
        sum[i] += part[i];
      }
    }
    return sum;
  }

  /// The output of the last projection.
  private static TensorView output(Chain chain) {
    return chain.pipelines().getLast().output();
  }

  /// Heads are divided among pairs of ranks, which gather the tokens before the projections and
  /// scatter their sums after it; tokens are divided between the pairs.
  @Test
  void headsMayBeDividedToo() {
    var spec =
        AttentionSpec.of(32, HEADS / 2, HEAD_SIZE)
            .kvHeads(KV_HEADS / 2)
            .causal()
            .layout(TokenLayout.ZIGZAG);
    var layer = Layer.random(32, 6);
    var expected = layer.output();
    LocalRanks.run(
        4,
        world -> {
          int pair = world.rank() / 2;
          int half = world.rank() % 2;
          var tensors = world.subset("tensor-" + pair, 2 * pair, 2 * pair + 1);
          var contexts = world.subset("context-" + half, half, half + 2);
          var alone = world.subset("alone-" + world.rank(), world.rank());
          var ofPair = positions(spec, 2, pair);
          var mine = ofPair.subList(8 * half, 8 * half + 8);
          int width = WIDTH / 2;
          int kvWidth = KV_WIDTH / 2;
          try (var onRank = new OnRank(world)) {
            var gathered = onRank.local(16, HIDDEN);
            var query = onRank.local(16, width);
            var key = onRank.closing(SymmetricTensor.on(contexts).shape(16, kvWidth).allocate());
            var value = onRank.closing(SymmetricTensor.on(contexts).shape(16, kvWidth).allocate());
            var attended = onRank.local(16, width);
            var toQuery =
                onRank.closing(
                    Pipeline.on(tensors)
                        .gemm(GemmSpec.allGatherGemm(16, WIDTH, HIDDEN).gatheredInput())
                        .overlap(Overlap.ring(2))
                        .gatheredInput(gathered)
                        .output(query)
                        .build());
            toQuery.input().copyFrom(rows(layer.x(), HIDDEN, mine));
            toQuery.weight().copyFrom(columns(layer.q(), WIDTH, half * width, width));
            var toKey =
                projection(
                    onRank,
                    alone,
                    gathered,
                    key.local(),
                    columns(layer.k(), KV_WIDTH, half * kvWidth, kvWidth));
            var toValue =
                projection(
                    onRank,
                    alone,
                    gathered,
                    value.local(),
                    columns(layer.v(), KV_WIDTH, half * kvWidth, kvWidth));
            var attention =
                onRank.closing(
                    Pipeline.on(contexts)
                        .attention(spec)
                        .query(query)
                        .key(key)
                        .value(value)
                        .output(attended)
                        .build());
            var toOutput =
                onRank.closing(
                    Pipeline.on(tensors)
                        .gemm(GemmSpec.gemmReduceScatter(16, HIDDEN, WIDTH))
                        .overlap(Overlap.pipelined(2))
                        .input(attended)
                        .build());
            var someRows = new ArrayList<Long>();
            for (long row = 0; row < width; row++) {
              someRows.add((long) half * width + row);
            }
            toOutput.weight().copyFrom(rows(layer.o(), HIDDEN, someRows));
            var chain =
                Chain.on(world).then(toQuery).then(toKey, toValue).then(attention).then(toOutput);
            world.barrier();
            chain.run();
            compare(toOutput.output().toFloats(), expected, mine, chain.toString());
            chain.verify();
          }
        });
  }

  @Test
  void aLayerIsProfiledAndTunedAsOne() {
    int ranks = 2;
    var spec = AttentionSpec.of(24, HEADS, HEAD_SIZE).kvHeads(KV_HEADS).causal();
    var layer = Layer.random(24, 7);
    LocalRanks.run(
        ranks,
        world -> {
          try (var onRank = new OnRank(world)) {
            var ring = contextParallel(onRank, spec, ContextParallel.ring(), layer);
            var gather = contextParallel(onRank, spec, ContextParallel.allGatherKv(), layer);
            var profile = ring.profile(2);
            assertThat(profile.configuration())
                .containsEntry("pattern", "chain")
                .containsEntry("attention 4", spec + ", ring, 1 split")
                .containsKeys("pipeline 1", "pipeline 2", "pipeline 3", "pipeline 5");
            assertThat(profile.spans())
                .extracting(Span::stream)
                .contains("1 gemm-0", "3 gemm-0", "4 attend-0", "5 gemm-0");
            var study =
                Tuner.on(world)
                    .repeats(6)
                    .steps("layer")
                    .step("ring", ring)
                    .step("all-gather", gather)
                    .run();
            assertThat(study.trials())
                .extracting(trial -> trial.configuration())
                .containsExactly(new Configuration.Named("all-gather"));
          }
        });
  }

  @Test
  void everyLinkOfAChainIsTuned() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(16, 2, 4);
          try (var attention = Pipeline.on(world).attention(spec).build();
              var down =
                  Pipeline.on(world)
                      .gemm(GemmSpec.gemmReduceScatter(16, 6, 8))
                      .overlap(Overlap.unfused())
                      .build()) {
            var chain = Chain.of(attention, down);
            var found = Tuner.on(world).splits(1, 2).repeats(6).tune(chain);
            assertThat(found.tuned()).extracting(ChainStudy.Tuned::pipeline).containsExactly(1, 2);
            assertThat(found.table().rowCount()).isEqualTo(2);
            try (var tuned = chain.with(found.overlaps())) {
              tuned.verify();
            }
          }
        });
  }
}
