package braid;

import static braid.PlainLoops.add;
import static braid.PlainLoops.times;
import static braid.PlainLoops.transposed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.PipelineCases;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Stage;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.plan.Staging;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Pipelines on tensors that their caller owns.
class OwnTensorsTest {
  private static final int ROUNDS = 2;

  enum Memory {
    LOCAL,
    SYMMETRIC
  }

  private static GemmSpec spec(Pattern pattern, int ranks) {
    int m = 4 * ranks;
    int n = 3 * ranks;
    int k = 2 * ranks;
    return switch (pattern) {
      case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(m, n, k).bias().gelu().gatheredInput();
      case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(m, n, k).accumulate().bias();
      case GEMM_ALL_REDUCE -> GemmSpec.gemmAllReduce(m, n, k).accumulate();
      case GEMM_BESIDE_ALL_GATHER ->
          GemmSpec.besideAllGather(m, n, k, 5L * ranks).transposedWeight().accumulate();
      case GEMM_BESIDE_REDUCE_SCATTER ->
          GemmSpec.besideReduceScatter(m, n, k, 5L * ranks).transposedInput();
    };
  }

  private static Stream<Arguments> ways() {
    return Capabilities.host().stream()
        .filter(Capabilities.Row::supported)
        .map(row -> List.of(row.pattern(), row.method()))
        .distinct()
        .flatMap(
            way ->
                Stream.of(1, 2, 3)
                    .flatMap(
                        ranks ->
                            Stream.of(Memory.values())
                                .map(
                                    memory ->
                                        Arguments.of(way.get(0), way.get(1), ranks, memory))));
  }

  private static Stream<Arguments> waysToGather() {
    return ways().filter(way -> way.get()[0] == Pattern.ALL_GATHER_GEMM);
  }

  private static List<Part> parts(GemmSpec spec) {
    var schedule = Schedule.of(spec, Overlap.unfused(), 1);
    return Stream.of(Part.values()).filter(part -> schedule.port(part.port()).isPresent()).toList();
  }

  private static Tensor allocate(ProcessGroup world, GemmSpec spec, Part part, Memory memory) {
    var sizes =
        part.sizes(spec, world.size(), world.rank()).stream().mapToLong(Long::longValue).toArray();
    return switch (memory) {
      case LOCAL -> LocalTensor.on(world).shape(sizes).allocate();
      case SYMMETRIC -> SymmetricTensor.on(world).shape(sizes).name("own " + part).allocate();
    };
  }

  private static TensorView view(Tensor tensor) {
    return switch (tensor) {
      case LocalTensor mine -> mine.view();
      case SymmetricTensor all -> all.local();
      case TensorView view -> view;
    };
  }

  private static void bind(Pipeline.Builder builder, Part part, Tensor tensor) {
    var _ =
        switch (part) {
          case INPUT -> builder.input(tensor);
          case WEIGHT -> builder.weight(tensor);
          case BIAS -> builder.bias(tensor);
          case OUTPUT -> builder.output(tensor);
          case PRE_ACTIVATION -> builder.preActivation(tensor);
          case GATHERED_INPUT -> builder.gatheredInput(tensor);
          case BESIDE_INPUT -> builder.besideInput(tensor);
          case BESIDE_OUTPUT -> builder.besideOutput(tensor);
          case QUERY,
              KEY,
              VALUE,
              KV,
              QKV,
              LSE,
              OUTPUT_GRADIENT,
              QUERY_GRADIENT,
              KEY_GRADIENT,
              VALUE_GRADIENT,
              KV_GRADIENT,
              QKV_GRADIENT ->
              throw new AssertionError(part);
        };
  }

  @ParameterizedTest
  @MethodSource("ways")
  void everyPartMayBeTheCallers(Pattern pattern, Method method, int ranks, Memory memory) {
    var spec = spec(pattern, ranks);
    var given = new ConcurrentHashMap<List<Object>, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          var tensors = new EnumMap<Part, Tensor>(Part.class);
          parts(spec).forEach(part -> tensors.put(part, allocate(world, spec, part, memory)));
          var builder = Pipeline.on(world).gemm(spec).overlap(Overlap.of(method, 2));
          tensors.forEach((part, tensor) -> bind(builder, part, tensor));
          try (var pipe = builder.build()) {
            for (int round = 0; round < ROUNDS; round++) {
              int seed = 100 * round;
              tensors.forEach(
                  (part, tensor) -> {
                    boolean shared = part == Part.BIAS;
                    view(tensor)
                        .fillIntegers(
                            seed + part.name().length() + (shared ? 0 : 20 * world.rank()));
                    given.put(List.of(part, world.rank()), view(tensor).toFloats());
                  });
              world.barrier();
              var before = view(Objects.requireNonNull(tensors.get(Part.OUTPUT))).toFloats();
              pipe.run();
              expected(spec, world.rank(), ranks, given, before)
                  .forEach(
                      (part, values) ->
                          assertThat(view(Objects.requireNonNull(tensors.get(part))).toFloats())
                              .as("%s of rank %d", part, world.rank())
                              .containsExactly(values));
              world.barrier();
            }
            pipe.verify();
            assertThat(pipe.schedule().findings()).isEmpty();
          }
          tensors.values().forEach(OwnTensorsTest::close);
        });
  }

  /// A rank's rows are columns of its tensor.
  @ParameterizedTest
  @MethodSource("waysToGather")
  void anInputStoredByColumnsMayBeTheCallers(
      Pattern pattern, Method method, int ranks, Memory memory) {
    assertThat(pattern).isEqualTo(Pattern.ALL_GATHER_GEMM);
    int rows = 4;
    int k = 5;
    var spec = GemmSpec.allGatherGemm(rows * ranks, 3 * ranks, k).transposedInput().gatheredInput();
    LocalRanks.run(
        ranks,
        world -> {
          var input = allocate(world, spec, Part.INPUT, memory);
          var whole = allocate(world, spec, Part.GATHERED_INPUT, memory);
          var builder = Pipeline.on(world).gemm(spec).overlap(Overlap.of(method, 2));
          bind(builder, Part.INPUT, input);
          bind(builder, Part.GATHERED_INPUT, whole);
          try (var pipe = builder.build()) {
            for (int depth = 0; depth < k; depth++) {
              for (int row = 0; row < rows; row++) {
                view(input).set(100 * (rows * world.rank() + row) + depth, depth, row);
              }
            }
            pipe.run();
            for (int depth = 0; depth < k; depth++) {
              for (int row = 0; row < rows * ranks; row++) {
                assertThat(view(whole).get(depth, row)).isEqualTo(100 * row + depth);
              }
            }
            pipe.verify();
          }
          world.barrier();
          close(input);
          close(whole);
        });
  }

  private static void close(Tensor tensor) {
    switch (tensor) {
      case LocalTensor mine -> mine.close();
      case SymmetricTensor all -> all.close();
      case TensorView _ -> {}
    }
  }

  /// Plain loops over all ranks' tensors.
  private static Map<Part, float[]> expected(
      GemmSpec spec, int rank, int ranks, Map<List<Object>, float[]> given, float[] before) {
    int m = spec.m();
    int n = spec.n();
    int k = spec.k();
    var expected = new EnumMap<Part, float[]>(Part.class);
    switch (spec.pattern()) {
      case ALL_GATHER_GEMM -> {
        var whole = stacked(given, Part.INPUT, ranks);
        expected.put(Part.GATHERED_INPUT, whole);
        var sum = times(whole, of(given, List.of(Part.WEIGHT, rank)), m, k, n / ranks);
        var bias = of(given, List.of(Part.BIAS, rank));
        for (int i = 0; i < sum.length; i++) {
          sum[i] += bias[i % bias.length];
        }
        // The output is its GELU, which integers cannot represent; verify() compares that.
        expected.put(Part.PRE_ACTIVATION, sum);
      }
      case GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE -> {
        var sum = new float[m * n];
        for (int each = 0; each < ranks; each++) {
          add(
              sum,
              times(
                  of(given, List.of(Part.INPUT, each)),
                  of(given, List.of(Part.WEIGHT, each)),
                  m,
                  k / ranks,
                  n));
        }
        if (spec.pattern() == Pattern.GEMM_REDUCE_SCATTER) {
          sum = part(sum, rank, ranks);
        }
        if (spec.has(Feature.BIAS)) {
          var bias = of(given, List.of(Part.BIAS, rank));
          for (int i = 0; i < sum.length; i++) {
            sum[i] += bias[i % n];
          }
        }
        add(sum, before);
        expected.put(Part.OUTPUT, sum);
      }
      case GEMM_BESIDE_ALL_GATHER -> {
        var weight = transposed(of(given, List.of(Part.WEIGHT, rank)), n, k);
        var product = times(of(given, List.of(Part.INPUT, rank)), weight, m, k, n);
        add(product, before);
        expected.put(Part.OUTPUT, product);
        expected.put(Part.BESIDE_OUTPUT, stacked(given, Part.BESIDE_INPUT, ranks));
      }
      case GEMM_BESIDE_REDUCE_SCATTER -> {
        var input = transposed(of(given, List.of(Part.INPUT, rank)), k, m);
        expected.put(Part.OUTPUT, times(input, of(given, List.of(Part.WEIGHT, rank)), m, k, n));
        var sum = new float[(int) spec.besideElements()];
        for (int each = 0; each < ranks; each++) {
          add(sum, of(given, List.of(Part.BESIDE_INPUT, each)));
        }
        expected.put(Part.BESIDE_OUTPUT, part(sum, rank, ranks));
      }
    }
    return expected;
  }

  private static float[] of(Map<List<Object>, float[]> given, List<Object> key) {
    return Objects.requireNonNull(given.get(key));
  }

  private static float[] part(float[] whole, int rank, int ranks) {
    int length = whole.length / ranks;
    return Arrays.copyOfRange(whole, rank * length, (rank + 1) * length);
  }

  private static float[] stacked(Map<List<Object>, float[]> given, Part part, int ranks) {
    var all = new ArrayList<Float>();
    for (int rank = 0; rank < ranks; rank++) {
      for (float each : of(given, List.of(part, rank))) {
        all.add(each);
      }
    }
    var stacked = new float[all.size()];
    for (int i = 0; i < stacked.length; i++) {
      stacked[i] = all.get(i);
    }
    return stacked;
  }

  /// Parts of different sizes: local tensors of each rank's own size, symmetric ones of the largest
  /// size.
  @Test
  void unevenPartsAreBoundToo() {
    var spec = GemmSpec.allGatherGemm(7, 5, 4).gatheredInput();
    LocalRanks.run(
        3,
        world -> {
          int rank = world.rank();
          try (var x = SymmetricTensor.on(world).shape(3, 4).name("x").allocate();
              var w =
                  LocalTensor.on(world)
                      .shape(4, Part.WEIGHT.sizes(spec, 3, rank).get(1))
                      .allocate();
              var pipe = Pipeline.on(world).gemm(spec).input(x).weight(w).build()) {
            x.local().fillIntegers(rank);
            w.view().fillIntegers(10L + rank);
            world.barrier();
            pipe.verify();
            assertThat(pipe.input().shape()).isEqualTo(Part.INPUT.sizes(spec, 3, rank));
            assertThat(pipe.input().get(0, 1)).isEqualTo(x.local().get(0, 1));
          }
        });
  }

  /// Peers fetch the input: a symmetric tensor in place, a local one after a copy, which the
  /// profile shows.
  @Test
  void aCopyIsMadeOnlyWherePeersReachTheTensorAndIsVisible() {
    var spec = GemmSpec.allGatherGemm(8, 6, 4);
    LocalRanks.run(
        2,
        world -> {
          try (var all = SymmetricTensor.on(world).shape(4, 4).allocate();
              var mine = LocalTensor.on(world).shape(4, 4).allocate();
              var direct = Pipeline.on(world).gemm(spec).input(all).build();
              var copied = Pipeline.on(world).gemm(spec).input(mine).build()) {
            assertThat(local(direct)).isEmpty();
            assertThat(local(copied)).containsExactly(64L);
            assertThat(copied.schedule().timeline()).isNotEqualTo(direct.schedule().timeline());
          }
        });
  }

  private static List<Long> local(Pipeline pipe) {
    return pipe.profile(1).spans().stream()
        .filter(span -> span.stage() == Stage.LOCAL)
        .map(span -> span.bytes())
        .toList();
  }

  @Test
  void onePipelinesOutputIsTheNextOnesInput() {
    int ranks = 2;
    var up = GemmSpec.allGatherGemm(8, 12, 6);
    var down = GemmSpec.gemmReduceScatter(8, 6, 12);
    var given = new ConcurrentHashMap<List<Object>, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          int rank = world.rank();
          try (var hidden = LocalTensor.on(world).shape(8, 6).allocate();
              var first = Pipeline.on(world).gemm(up).output(hidden).build();
              var second = Pipeline.on(world).gemm(down).input(hidden).build()) {
            given.put(List.of("x", rank), first.input().toFloats());
            given.put(List.of("up", rank), first.weight().toFloats());
            given.put(List.of("down", rank), second.weight().toFloats());
            world.barrier();
            first.run();
            second.run();
            var x = new float[8 * 6];
            for (int each = 0; each < ranks; each++) {
              System.arraycopy(of(given, List.of("x", each)), 0, x, each * 24, 24);
            }
            var sum = new float[8 * 6];
            for (int each = 0; each < ranks; each++) {
              var h = times(x, of(given, List.of("up", each)), 8, 6, 6);
              add(sum, times(h, of(given, List.of("down", each)), 8, 6, 6));
            }
            assertThat(second.output().toFloats()).containsExactly(part(sum, rank, ranks));
            assertThat(local(first)).isEmpty();
            assertThat(local(second)).isEmpty();
          }
        });
  }

  /// A symmetric tensor has one shape on all ranks: the remedy names the tensors that fit.
  @Test
  void theRemedyFitsTensorsThatAreTheSameOnAllRanks() {
    LocalRanks.run(
        3,
        world -> {
          var rows = GemmSpec.allGatherGemm(7, 6, 4);
          var columns = GemmSpec.allGatherGemm(6, 7, 4);
          try (var x = SymmetricTensor.on(world).shape(5, 5).name("x").allocate()) {
            assertThatThrownBy(() -> Pipeline.on(world).gemm(rows).input(x).build())
                .isInstanceOf(BraidException.class)
                .hasMessageEndingWith("; allocate it with shape(3, 4)");
            assertThatThrownBy(() -> Pipeline.on(world).gemm(columns).weight(x).build())
                .isInstanceOf(BraidException.class)
                .hasMessageEndingWith("; give a LocalTensor, since the sizes differ by rank");
          }
        });
  }

  /// Views: a pipeline's own output, and rows of a larger tensor.
  @Test
  void viewsAreBoundAsWell() {
    var up = GemmSpec.allGatherGemm(8, 12, 6);
    var down = GemmSpec.gemmReduceScatter(8, 6, 12);
    LocalRanks.run(
        2,
        world -> {
          var first = Pipeline.on(world).gemm(up).build();
          try (var hidden = LocalTensor.on(world).shape(8, 6).allocate();
              var results = LocalTensor.on(world).shape(10, 6).allocate();
              var second =
                  Pipeline.on(world)
                      .gemm(down)
                      .input(first.output())
                      .output(results.view().rows(3, 4))
                      .build();
              var third = Pipeline.on(world).gemm(down).input(hidden).build()) {
            first.run();
            second.run();
            hidden.view().copyFrom(first.output());
            third.run();
            assertThat(results.view().rows(3, 4).toFloats())
                .containsExactly(third.output().toFloats());
            assertThat(results.view().rows(0, 3).toFloats()).containsOnly(0);
            assertThat(results.view().rows(7, 3).toFloats()).containsOnly(0);
            refused(
                Pipeline.on(world)
                    .gemm(up.gatheredInput())
                    .output(results.view().rows(0, 8))
                    .gatheredInput(results.view().rows(2, 8)),
                "output and gathered input must be different tensors, since a run writes one while it reads the other, but both are a view 8x6 fp32; allocate another");
            first.close();
            assertThatThrownBy(second::run)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("is closed; build it again");
          }
        });
  }

  /// A weight gradient is added to a tensor of the caller, of its own type.
  @Test
  void f4AGradientAccumulatesIntoTheCallersTensor() {
    var spec =
        GemmSpec.besideReduceScatter(4, 6, 10, 20)
            .dtype(DType.BF16)
            .output(DType.FP32)
            .transposedInput()
            .accumulate();
    LocalRanks.run(
        2,
        world -> {
          try (var gradient = LocalTensor.on(world).shape(4, 6).allocate();
              var pipe = Pipeline.on(world).gemm(spec).output(gradient).build()) {
            gradient.view().fill(0.5f);
            pipe.run();
            pipe.run();
            var product =
                times(
                    transposed(pipe.input().toFloats(), 10, 4), pipe.weight().toFloats(), 4, 10, 6);
            var expected = new float[product.length];
            for (int i = 0; i < product.length; i++) {
              expected[i] = 0.5f + 2 * product[i];
            }
            assertThat(gradient.view().toFloats()).containsExactly(expected);
          }
        });
  }

  @Test
  void everyStagedScheduleIsRight() {
    for (var pattern : Pattern.values()) {
      for (var row : Capabilities.host()) {
        if (row.pattern() != pattern || !row.supported()) {
          continue;
        }
        for (int ranks : new int[] {1, 2, 4}) {
          var spec = spec(pattern, ranks);
          var schedule = Schedule.of(spec, PipelineCases.tuning(row.method(), 2, ranks), ranks);
          for (var part : parts(spec)) {
            assertThat(Staging.of(schedule, EnumSet.of(part)).findings())
                .as("%s, %s, %d ranks, %s", spec, row.method(), ranks, part)
                .isEmpty();
          }
          assertThat(Staging.of(schedule, EnumSet.copyOf(parts(spec))).findings()).isEmpty();
        }
      }
    }
  }

  /// Each copy of a staged schedule is needed, and each wait of a multiplication for it.
  @Test
  void theCheckFindsEveryMissingCopyAndWaitForIt() {
    var spec = spec(Pattern.GEMM_REDUCE_SCATTER, 3);
    var plain = Schedule.of(spec, Overlap.pipelined(2), 3);
    int looked = 0;
    for (var part : List.of(Part.INPUT, Part.WEIGHT, Part.BIAS, Part.OUTPUT)) {
      looked += needed(plain, Staging.of(plain, EnumSet.of(part)));
    }
    assertThat(looked).isGreaterThan(5);
  }

  private static int needed(Schedule plain, Schedule staged) {
    var steps = staged.steps(1);
    int looked = 0;
    for (int i = 0; i < steps.size(); i++) {
      if (plain.steps(1).stream().anyMatch(steps.get(i)::equals)) {
        continue;
      }
      // A lane that adds may wait for the copying lane for another reason.
      boolean wait =
          steps.get(i) instanceof Step.After after && after.lane().role() == Lane.Role.COMPUTE;
      boolean copy = steps.get(i) instanceof Step.Copy;
      if (copy || wait) {
        var fewer = new ArrayList<>(steps);
        fewer.remove(i);
        looked++;
        assertThat(staged.with(1, fewer).findings()).as("without %s", steps.get(i)).isNotEmpty();
      }
    }
    return looked;
  }

  @Test
  void tensorsThatDoNotFitAreRefused() {
    var spec = GemmSpec.allGatherGemm(8, 6, 4);
    LocalRanks.run(
        2,
        world -> {
          var alone = world.subset("alone-" + world.rank(), world.rank());
          try (var x = SymmetricTensor.on(world).shape(4, 4).name("x").allocate();
              var square = LocalTensor.on(world).shape(4, 4).allocate();
              var narrow = LocalTensor.on(world).shape(4, 4).dtype(DType.BF16).allocate();
              var wide = LocalTensor.on(world).shape(4, 5).allocate();
              var pinned = LocalTensor.on(world).shape(4, 4).pinned().allocate();
              var elsewhere = SymmetricTensor.on(alone).shape(4, 4).name("y").allocate()) {
            refused(
                Pipeline.on(world).gemm(spec).input(wide),
                "input of `%s` must be 4x4 on rank %d of 2 but local tensor 4x5 fp32 was given; allocate it with shape(4, 4)"
                    .formatted(spec, world.rank()));
            refused(
                Pipeline.on(world).gemm(spec).input(narrow),
                "input of `%s` must be fp32 but local tensor 4x4 bf16 was given; allocate it with dtype(FP32)"
                    .formatted(spec));
            refused(
                Pipeline.on(world).gemm(spec).input(pinned),
                "input must be in the memory that streams work on but local tensor 4x4 fp32, pinned is in the host's; allocate it without pinned()");
            refused(
                Pipeline.on(world).gemm(spec).input(elsewhere),
                "input must be on group `world` but symmetric tensor `y` is on group `alone-%d`; allocate it on `world`, or give a LocalTensor"
                    .formatted(world.rank()));
            refused(
                Pipeline.on(world).gemm(spec).bias(square),
                "`%s` has no bias but local tensor 4x4 fp32 was given for it; leave it out"
                    .formatted(spec));
            var same = GemmSpec.allGatherGemm(8, 8, 4).gatheredInput();
            try (var both = LocalTensor.on(world).shape(8, 4).allocate()) {
              refused(
                  Pipeline.on(world).gemm(same).output(both).gatheredInput(both),
                  "output and gathered input must be different tensors, since a run writes one while it reads the other, but both are local tensor 8x4 fp32; allocate another");
            }
            assertThatThrownBy(() -> Pipeline.on(world).gemm(spec).input(x).input(square))
                .isInstanceOf(BraidException.class)
                .hasMessageStartingWith("input was given already: symmetric tensor `x`");
            var gone = LocalTensor.on(world).shape(4, 4).allocate();
            gone.close();
            refused(
                Pipeline.on(world).gemm(spec).input(gone),
                "local tensor 4x4 fp32 is closed; allocate it again");
          }
        });
  }

  private static void refused(Pipeline.Builder builder, String message) {
    assertThatThrownBy(builder::build)
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith(message);
  }

  @Test
  void aPipelineDoesNotRunOnATensorThatWasClosed() {
    var spec = GemmSpec.allGatherGemm(8, 6, 4);
    LocalRanks.run(
        2,
        world -> {
          var w = LocalTensor.on(world).shape(4, 3).allocate();
          try (var pipe = Pipeline.on(world).gemm(spec).weight(w).build()) {
            pipe.run();
            w.close();
            assertThatThrownBy(pipe::run)
                .isInstanceOf(BraidException.class)
                .hasMessage("local tensor 4x3 fp32 is closed; allocate it again");
            assertThatThrownBy(() -> pipe.time(2)).isInstanceOf(BraidException.class);
          }
        });
  }

  /// Ranks that pass different tensors all get an error.
  @Test
  void ranksMustGiveTheSameParts() {
    var spec = GemmSpec.allGatherGemm(8, 6, 4);
    LocalRanks.run(
        2,
        world -> {
          try (var w = LocalTensor.on(world).shape(4, 3).allocate()) {
            var builder = Pipeline.on(world).gemm(spec);
            var different = world.rank() == 0 ? builder.weight(w) : builder;
            assertThatThrownBy(different::build)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("weight in local memory");
          }
        });
  }
}
