package braid;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;

/// One case of the contract that every way of an all-gather→GEMM keeps on every kind of rank: its
/// output is, to the last bit, what three plain loops compute from the same integers. It has a form
/// as text, so that ranks that are processes can be given it.
record PipelineCase(GemmSpec spec, Overlap how) {
  /// Sizes that divide by everything, and sizes that divide by nothing.
  private static final int[][] SIZES = {{24, 16, 8}, {23, 13, 7}, {29, 5, 1}, {12, 37, 65}};

  private static final int SMALLEST_SHARD_ROWS = 3;

  /// Every method, split count, type and size for that many ranks.
  static List<PipelineCase> all(int ranks) {
    var cases = new ArrayList<PipelineCase>();
    for (var size : SIZES) {
      for (var dtype : List.of(DType.FP32, DType.BF16)) {
        var spec = GemmSpec.allGatherGemm(size[0], size[1], size[2]).dtype(dtype);
        for (int splits = 1; splits <= Math.min(6, spec.m() / ranks); splits++) {
          cases.add(new PipelineCase(spec, Overlap.splits(splits)));
        }
        cases.add(new PipelineCase(spec, Overlap.splits(SMALLEST_SHARD_ROWS).streams(2)));
        cases.add(new PipelineCase(spec, Overlap.direct()));
        cases.add(new PipelineCase(spec, Overlap.direct(SMALLEST_SHARD_ROWS).streams(2)));
        cases.add(new PipelineCase(spec, Overlap.unfused()));
      }
    }
    cases.add(
        new PipelineCase(GemmSpec.allGatherGemm(23, 13, 7).dtype(DType.FP16), Overlap.splits(2)));
    return cases;
  }

  String text() {
    return "%d,%d,%d,%s,%s,%d,%d"
        .formatted(
            spec.m(),
            spec.n(),
            spec.k(),
            spec.dtype(),
            how.method().name(),
            how.splits(),
            how.streams());
  }

  static PipelineCase parse(String text) {
    var parts = List.of(text.split(","));
    var spec =
        GemmSpec.allGatherGemm(
                Integer.parseInt(parts.get(0)),
                Integer.parseInt(parts.get(1)),
                Integer.parseInt(parts.get(2)))
            .dtype(DType.parse(parts.get(3)));
    return new PipelineCase(
        spec,
        overlap(Method.valueOf(parts.get(4)), Integer.parseInt(parts.get(5)))
            .streams(Integer.parseInt(parts.get(6))));
  }

  private static Overlap overlap(Method method, int splits) {
    return switch (method) {
      case PIPELINED -> Overlap.splits(splits);
      case DIRECT -> Overlap.direct(splits);
      case RING -> Overlap.ring(splits);
      case BULK -> Overlap.bulk();
      case UNFUSED -> Overlap.unfused();
    };
  }

  /// Holds the case to its contract, on this rank of the group.
  void check(ProcessGroup group) {
    try (var pipe = Pipeline.on(group).gemm(spec).overlap(how).build()) {
      pipe.verify();
      // Other inputs in every round: what an earlier one left must not be taken for this one's.
      for (int round = 0; round < 3; round++) {
        pipe.input().fillIntegers(seed(round, group.rank()));
        pipe.weight().fillIntegers(seed(round, group.rank()) + 1);
        pipe.run();
        assertThat(pipe.output().toFloats())
            .as("%s, %s on rank %s, round %d", spec, how, group.place(), round)
            .containsExactly(expected(pipe, round));
      }
    } catch (RuntimeException | Error e) {
      throw new AssertionError("%s, %s on rank %s: %s".formatted(spec, how, group.place(), e), e);
    }
  }

  private static long seed(int round, int rank) {
    return 1000L * round + 10L * rank;
  }

  private float[] expected(Pipeline pipe, int round) {
    int ranks = pipe.group().size();
    int columns = Math.toIntExact(pipe.weight().shape().get(1));
    var weight = pipe.weight().toFloats();
    var expected = new float[spec.m() * columns];
    int row = 0;
    for (int rank = 0; rank < ranks; rank++) {
      var shard = shard(round, rank, ranks);
      for (int i = 0; i < shard.length / spec.k(); i++, row++) {
        for (int j = 0; j < columns; j++) {
          float sum = 0;
          for (int l = 0; l < spec.k(); l++) {
            sum += shard[i * spec.k() + l] * weight[l * columns + j];
          }
          expected[row * columns + j] = spec.dtype().round(sum);
        }
      }
    }
    return expected;
  }

  /// What that rank filled its input with.
  private float[] shard(int round, int rank, int ranks) {
    int rows = spec.m() / ranks + (rank < spec.m() % ranks ? 1 : 0);
    try (var arena = java.lang.foreign.Arena.ofConfined()) {
      return new Tensor(
              List.of((long) rows, (long) spec.k()),
              DType.FP32,
              arena.allocate((long) rows * spec.k() * Float.BYTES))
          .fillIntegers(seed(round, rank))
          .toFloats();
    }
  }
}
