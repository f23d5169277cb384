package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.AttentionTest.RandomCase;
import braid.PlainAttention.Expected;
import braid.PlainAttention.Gradients;
import braid.PlainAttention.Inputs;
import braid.internal.selftest.AttentionOracle;
import braid.internal.selftest.PartColumns;
import braid.internal.selftest.Sweep;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.MemoryKind;
import braid.model.Stage;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.model.VerificationFailed;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The backward pass of attention over a divided sequence, compared with plain loops in double
/// precision over the whole sequence.
class AttentionGradientTest {
  private static final int RANDOM_CASES = 200;

  static float[] outputGradient(AttentionSpec spec, long seed) {
    return Inputs.numbers(
        new Random(seed + 1), spec.sequence() * spec.heads() * spec.headSize(), spec.dtype());
  }

  static float[] mine(Pipeline backward, float[] all) {
    var spec = ((AttentionGradientSpec) backward.problem()).forward();
    return PlainAttention.rows(
        all,
        PlainAttention.positions(spec, backward.group().size(), backward.group().rank()),
        all.length / spec.sequence());
  }

  static void check(Pipeline backward, Gradients expected, double mostError, String description) {
    var spec = ((AttentionGradientSpec) backward.problem()).forward();
    var positions =
        PlainAttention.positions(spec, backward.group().size(), backward.group().rank());
    var keys = PlainAttention.keys(spec, backward.group().size(), backward.group().rank());
    int columns = spec.heads() * spec.headSize();
    int kvColumns = spec.kvHeads() * spec.headSize();
    compare(
        PartColumns.of(spec, Part.QUERY_GRADIENT).load(backward),
        expected.query(),
        positions,
        columns,
        mostError,
        "query gradient of " + description);
    compare(
        PartColumns.of(spec, Part.KEY_GRADIENT).load(backward),
        expected.key(),
        keys,
        kvColumns,
        mostError,
        "key gradient of " + description);
    compare(
        PartColumns.of(spec, Part.VALUE_GRADIENT).load(backward),
        expected.value(),
        keys,
        kvColumns,
        mostError,
        "value gradient of " + description);
  }

  /// Compares with an error relative to the largest number, or absolute if all are almost 0: a
  /// query that sees one key has no gradient, and fp32 leaves the roundings of what cancels out.
  private static void compare(
      float[] got,
      double[] expected,
      List<Integer> positions,
      int columns,
      double mostError,
      String description) {
    assertThat(got).as(description).hasSize(positions.size() * columns);
    double largest = 0;
    double error = 0;
    for (int i = 0; i < got.length; i++) {
      double wanted = expected[positions.get(i / columns) * columns + i % columns];
      largest = Math.max(largest, Math.abs(wanted));
      // A NaN is larger than any error.
      error = Math.max(error, Math.abs(got[i] - wanted));
    }
    assertThat(error / (largest < 1e-3 ? 1 : largest))
        .as(description)
        .isLessThanOrEqualTo(mostError);
  }

  /// Runs forward and backward, and compares.
  static void check(
      ProcessGroup world,
      AttentionSpec spec,
      ContextParallel method,
      Inputs inputs,
      float[] outputGradient,
      Gradients expected,
      double mostError) {
    try (var attention = Pipeline.on(world).attention(spec).overlap(method).build();
        var backward = Pipeline.on(world).overlap(method).backward(attention).build()) {
      AttentionTest.give(attention, inputs);
      backward.outputGradient().copyFrom(mine(backward, outputGradient));
      world.barrier();
      attention.run();
      backward.verify();
      check(backward, expected, mostError, backward.toString());
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void b2EveryMethodEqualsPlainLoops(int ranks) {
    runs(ranks, AttentionTest.METHODS, Sweep.oneOf(2, AttentionTest.specs()));
  }

  /// Runs all problems by all methods, and compares with plain loops.
  static void runs(int ranks, List<ContextParallel> methods, List<AttentionSpec> specs) {
    var inputs = specs.stream().map(spec -> Inputs.of(spec, 7)).toList();
    var gradients = specs.stream().map(spec -> outputGradient(spec, 7)).toList();
    var expected = new ArrayList<Gradients>();
    for (int i = 0; i < specs.size(); i++) {
      expected.add(Gradients.of(specs.get(i), inputs.get(i), gradients.get(i)));
    }
    LocalRanks.run(
        ranks,
        world -> {
          for (int i = 0; i < specs.size(); i++) {
            for (var method : methods) {
              check(
                  world,
                  specs.get(i),
                  method,
                  inputs.get(i),
                  gradients.get(i),
                  expected.get(i),
                  AttentionTest.MOST_ERROR);
            }
          }
        });
  }

  @Test
  void f3PaddingHasNoGradientAndMayHoldAnything() {
    var spec =
        AttentionSpec.of(400, 2, 4)
            .packed(new int[] {0, 90, 240}, new int[] {0, 160, 400})
            .causal();
    LocalRanks.run(
        3,
        world -> {
          for (var layout : TokenLayout.values()) {
            if (!AttentionOracle.canDivide(spec.layout(layout), 3)) {
              continue;
            }
            for (var method :
                List.of(
                    ContextParallel.ring(),
                    ContextParallel.ring().neighborToNeighbor(),
                    ContextParallel.allGatherKv().splits(2))) {
              paddingHasNoGradient(world, spec.layout(layout), method);
            }
          }
        });
  }

  /// Runs with NaN in all inputs of padding.
  static void paddingHasNoGradient(ProcessGroup world, AttentionSpec spec, ContextParallel method) {
    var sequences = AttentionOracle.sequences(spec.packing().queries());
    try (var attention = Pipeline.on(world).attention(spec).overlap(method).build();
        var backward = Pipeline.on(world).overlap(method).backward(attention).build()) {
      var mine = PlainAttention.positions(spec, world.size(), world.rank());
      for (int row = 0; row < mine.size(); row++) {
        if (sequences[mine.get(row)] < 0) {
          attention.query().rows(row, 1).fill(Float.NaN);
          attention.key().rows(row, 1).fill(Float.NaN);
          attention.value().rows(row, 1).fill(Float.NaN);
          backward.outputGradient().rows(row, 1).fill(Float.NaN);
        }
      }
      world.barrier();
      attention.verify();
      backward.verify();
      for (int row = 0; row < mine.size(); row++) {
        if (sequences[mine.get(row)] < 0) {
          assertThat(backward.queryGradient().rows(row, 1).toFloats()).containsOnly(0);
          assertThat(backward.keyGradient().rows(row, 1).toFloats()).containsOnly(0);
          assertThat(backward.valueGradient().rows(row, 1).toFloats()).containsOnly(0);
        }
      }
    }
  }

  /// Random problems on 1 to 5 ranks; -Dbraid.seed repeats them.
  @Test
  void b2RandomCasesEqualPlainLoops() {
    long seed = Long.getLong("braid.seed", 17);
    var random = new Random(seed);
    var cases = new ArrayList<RandomCase>();
    for (int i = 0; i < RANDOM_CASES; i++) {
      cases.add(RandomCase.of(random));
    }
    for (int ranks = 1; ranks <= 5; ranks++) {
      int size = ranks;
      var own = cases.stream().filter(each -> each.ranks() == size).toList();
      var inputs = own.stream().map(each -> Inputs.of(each.spec(), seed)).toList();
      var gradients = own.stream().map(each -> outputGradient(each.spec(), seed)).toList();
      var expected = new ArrayList<Gradients>();
      for (int i = 0; i < own.size(); i++) {
        expected.add(Gradients.of(own.get(i).spec(), inputs.get(i), gradients.get(i)));
      }
      LocalRanks.run(
          ranks,
          world -> {
            for (int i = 0; i < own.size(); i++) {
              var each = own.get(i);
              var spec = each.spec();
              // A 16-bit output was rounded before the backward pass reads it.
              double most =
                  spec.dtype() == DType.FP32 ? each.mostError() : 8 * spec.dtype().epsilon();
              check(
                  world,
                  spec,
                  each.method(),
                  inputs.get(i),
                  gradients.get(i),
                  expected.get(i),
                  most);
            }
          });
    }
  }

  @ParameterizedTest
  @EnumSource(TokenLayout.class)
  void b2GradientsAreThoseOfFiniteDifferences(TokenLayout layout) {
    checkDifferences(2, ContextParallel.ring(), layout);
  }

  @Test
  void gradientsWithAWindowToBothSidesAreThoseOfFiniteDifferences() {
    var spec = AttentionSpec.of(12, 4, 3).kvHeads(2).window(3);
    checkDifferences(2, ContextParallel.ring(), spec);
    checkDifferences(3, ContextParallel.allGatherKv(), spec.packed(0, 5, 7, 12));
  }

  @Test
  void gradientsOfSeparateKeysAreThoseOfFiniteDifferences() {
    var spec = AttentionSpec.of(6, 4, 3).kvHeads(2);
    checkDifferences(2, ContextParallel.ring(), spec.keys(10).causal());
    checkDifferences(2, ContextParallel.ulysses(), spec.keys(4).layout(TokenLayout.ZIGZAG));
    // No keys for the first sequence, and some that no query sees.
    checkDifferences(
        2,
        ContextParallel.ring().neighborToNeighbor(),
        spec.packed(0, 1, 1, 6).packedKeys(0, 0, 3, 9).window(3));
  }

  /// Compares with finite differences of the forward pass in double precision.
  static void checkDifferences(int ranks, ContextParallel method, TokenLayout layout) {
    var whole = AttentionSpec.of(12, 4, 3).kvHeads(2).causal().window(4).layout(layout);
    var spec =
        AttentionTest.OF_ONE_SEQUENCE.contains(layout) ? whole : whole.packed(0, 5, 7, 10, 12);
    checkDifferences(ranks, method, spec);
  }

  private static void checkDifferences(int ranks, ContextParallel method, AttentionSpec spec) {
    var inputs = Inputs.of(spec, 3);
    var gradient = outputGradient(spec, 3);
    var expected =
        new Gradients(
            differences(spec, inputs, gradient, inputs.query()),
            differences(spec, inputs, gradient, inputs.key()),
            differences(spec, inputs, gradient, inputs.value()));
    LocalRanks.run(ranks, world -> check(world, spec, method, inputs, gradient, expected, 1e-4));
  }

  /// Returns the change of the sum of output × gradient by each of the numbers.
  private static double[] differences(
      AttentionSpec spec, Inputs inputs, float[] gradient, float[] numbers) {
    float step = 1f / 256;
    var differences = new double[numbers.length];
    for (int i = 0; i < numbers.length; i++) {
      float before = numbers[i];
      if (Float.isNaN(before)) {
        continue; // nobody sees it
      }
      numbers[i] = before + step;
      double above = loss(spec, inputs, gradient);
      float up = numbers[i];
      numbers[i] = before - step;
      double below = loss(spec, inputs, gradient);
      differences[i] = (above - below) / ((double) up - numbers[i]);
      numbers[i] = before;
    }
    return differences;
  }

  private static double loss(AttentionSpec spec, Inputs inputs, float[] gradient) {
    var output = Expected.of(spec, inputs).output();
    double loss = 0;
    for (int i = 0; i < output.length; i++) {
      loss += output[i] * gradient[i];
    }
    return loss;
  }

  @Test
  void b2RunsRepeatedlyAndDeterministically() {
    runsRepeatedly(
        3,
        AttentionSpec.of(50, 4, 8).kvHeads(2).causal().layout(TokenLayout.ZIGZAG),
        List.of(
            ContextParallel.ring().splits(2),
            ContextParallel.ring().streams(2).replay(),
            ContextParallel.ring().splits(2).streams(2).neighborToNeighbor().replay(),
            ContextParallel.allGatherKv().splits(2).replay(),
            ContextParallel.unfused()));
  }

  /// Runs iterations in flight and replayed ones, with inputs that change between them; equal
  /// inputs have equal results, to the last bit. The forward pass is a ring.
  static void runsRepeatedly(int ranks, AttentionSpec spec, List<ContextParallel> methods) {
    LocalRanks.run(
        ranks,
        world -> {
          for (var method : methods) {
            try (var attention = Pipeline.on(world).attention(spec).build();
                var backward =
                    Pipeline.on(world)
                        .overlap(method)
                        .attention(spec.backward().deterministic())
                        .backward(attention)
                        .build()) {
              assertThat(backward.problem()).isEqualTo(spec.backward().deterministic());
              for (int round = 0; round < 3; round++) {
                var inputs = Inputs.of(spec, round);
                var gradient = outputGradient(spec, round);
                AttentionTest.give(attention, inputs);
                backward.outputGradient().copyFrom(mine(backward, gradient));
                world.barrier();
                attention.run();
                world.barrier();
                backward.run();
                var first = results(backward);
                assertThat(backward.time(6, round == 1 ? Timing.LATENCY : Timing.BACK_TO_BACK))
                    .hasSize(6);
                var last = results(backward);
                for (int i = 0; i < first.size(); i++) {
                  assertThat(last.get(i)).as("%s", method).containsExactly(first.get(i));
                }
                check(
                    backward,
                    Gradients.of(spec, inputs, gradient),
                    AttentionTest.MOST_ERROR,
                    backward.toString());
                world.barrier();
              }
            }
          }
        });
  }

  private static List<float[]> results(Pipeline backward) {
    return List.of(
        backward.queryGradient().toFloats(),
        backward.keyGradient().toFloats(),
        backward.valueGradient().toFloats());
  }

  /// Every tensor may be the caller's, and an attention's keys are read in place.
  @Test
  void tensorsMayBeTheCallers() {
    var spec = AttentionSpec.of(41, 4, 6).kvHeads(2).causal().layout(TokenLayout.ZIGZAG);
    var inputs = Inputs.of(spec, 3);
    var gradient = outputGradient(spec, 3);
    var expected = Gradients.of(spec, inputs, gradient);
    LocalRanks.run(
        3,
        world -> {
          long rows = Tokens.of(spec, 3, world.rank()).count();
          try (var outputGradient = LocalTensor.on(world).shape(rows, 24).allocate();
              var queryGradient = LocalTensor.on(world).shape(rows, 24).allocate();
              var keyGradient = SymmetricTensor.on(world).shape(14, 12).name("dk").allocate();
              var valueGradient = LocalTensor.on(world).shape(rows, 12).allocate();
              var key = LocalTensor.on(world).shape(rows, 12).allocate();
              var attention = Pipeline.on(world).attention(spec).build();
              var all =
                  Pipeline.on(world)
                      .backward(attention)
                      .outputGradient(outputGradient)
                      .queryGradient(queryGradient)
                      .keyGradient(keyGradient)
                      .valueGradient(valueGradient)
                      .build();
              var some =
                  Pipeline.on(world)
                      .attention(spec.backward())
                      .query(attention.query())
                      .key(key)
                      .value(attention.value())
                      .output(attention.output())
                      .lse(attention.lse())
                      .outputGradient(outputGradient)
                      .build()) {
            AttentionTest.give(attention, inputs);
            key.view().copyFrom(attention.key());
            outputGradient.view().copyFrom(mine(all, gradient));
            world.barrier();
            attention.run();
            all.verify();
            some.verify();
            check(all, expected, AttentionTest.MOST_ERROR, all.toString());
            check(some, expected, AttentionTest.MOST_ERROR, some.toString());
            assertThat(queryGradient.view().toFloats()).isEqualTo(some.queryGradient().toFloats());
            assertThat(all.schedule().findings()).isEmpty();
            assertThat(some.schedule().findings()).isEmpty();
            assertThat(copiesOfKeys(all)).isZero();
            assertThat(copiesOfKeys(some)).isPositive();
          }
        });
  }

  private static long copiesOfKeys(Pipeline backward) {
    return backward.profile(1).spans().stream()
        .filter(span -> span.stage() == Stage.LOCAL && span.label().startsWith("copy"))
        .count();
  }

  /// Ranks that are processes read and write each other's shared memory.
  @Test
  void ranksMayBeProcesses() throws Exception {
    var more = Map.of("BRAID_LINK", "unlimited", "BRAID_TIMEOUT_SECONDS", "60");
    for (var ended : ProcessRanks.run(3, more, OnRank.class)) {
      assertThat(ended.exitCode()).as("rank %d: %s", ended.rank(), ended.output()).isZero();
      assertThat(ended.output()).endsWith("verified\n");
    }
  }

  /// Body of each process.
  static final class OnRank {
    private OnRank() {}

    public static void main(String[] arguments) {
      try (var world = ProcessGroup.world()) {
        for (var spec : AttentionTest.specs()) {
          for (var method : AttentionTest.METHODS) {
            verify(world, spec, method);
          }
        }
        verify(world, AttentionSpec.of(61, 6, 8).kvHeads(3).causal(), ContextParallel.ulysses());
        System.out.println("verified");
      }
    }

    private static void verify(ProcessGroup world, AttentionSpec spec, ContextParallel method) {
      try (var attention = Pipeline.on(world).attention(spec).overlap(method).build();
          var backward = Pipeline.on(world).overlap(method).backward(attention).build()) {
        attention.verify();
        backward.verify();
      }
    }
  }

  @Test
  void aProfileNamesTheBackwardPassAndCountsItsFlops() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(64, 2, 8).kvHeads(1);
          try (var attention = Pipeline.on(world).attention(spec).build();
              var backward = Pipeline.on(world).backward(attention).build()) {
            attention.run();
            var profile = backward.profile(2);
            assertThat(profile.configuration())
                .containsEntry("pattern", "attention backward")
                .containsEntry("method", "ring");
            var computed =
                profile.spans().stream().filter(span -> span.stage() == Stage.ATTENTION).toList();
            assertThat(computed.stream().mapToLong(span -> span.flops()).sum())
                .isEqualTo(
                    2 * Math.round(((AttentionGradientSpec) backward.problem()).flops() / 2));
            assertThat(profile.spans())
                .extracting(span -> span.label())
                .contains("backward own", "backward 1");
          }
        });
  }

  /// Results that are wrong in one value, or those of a mask that is off by one, are refused; the
  /// right ones are not.
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FP32", "BF16"})
  void verifyFindsPlantedErrors(DType dtype) {
    var spec =
        AttentionSpec.of(96, 4, 16)
            .kvHeads(2)
            .causal()
            .window(24)
            .layout(TokenLayout.ZIGZAG)
            .dtype(dtype);
    var inputs = Inputs.of(spec, 5);
    var gradient = outputGradient(spec, 5);
    LocalRanks.run(
        2,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build();
              var backward = Pipeline.on(world).backward(attention).build()) {
            AttentionTest.give(attention, inputs);
            backward.outputGradient().copyFrom(mine(backward, gradient));
            world.barrier();
            attention.run();
            backward.verify();
            for (int window : new int[] {23, 25}) {
              var other = Gradients.of(spec.window(window), inputs, gradient);
              refuses(backward, backward.queryGradient(), other.query(), "query gradient[");
              refuses(backward, backward.keyGradient(), other.key(), "key gradient[");
              refuses(backward, backward.valueGradient(), other.value(), "value gradient[");
            }
            var size = Math.max(4 * dtype.epsilon(), 1e-4f);
            for (var part :
                List.of(
                    backward.queryGradient(), backward.keyGradient(), backward.valueGradient())) {
              for (int row : new int[] {0, 20, 47}) {
                refuses(
                    backward,
                    () -> part.set(part.get(row, 3) + (float) size, row, 3),
                    "gradient[%d, 3] must be ".formatted(row));
                refuses(
                    backward,
                    () -> part.set(Float.NaN, row, 20),
                    "gradient[%d, 20]".formatted(row));
              }
            }
            assertThatThrownBy(() -> backward.verify(0, 0)).isInstanceOf(VerificationFailed.class);
            backward.verify(1e-2, 1e-2);
          }
        });
  }

  private static void refuses(Pipeline backward, TensorView part, double[] all, String message) {
    var numbers = new float[all.length];
    for (int i = 0; i < all.length; i++) {
      numbers[i] = (float) all[i];
    }
    refuses(backward, () -> part.copyFrom(mine(backward, numbers)), message);
  }

  /// Plants an error on rank 1, which both ranks report.
  private static void refuses(Pipeline backward, Runnable planted, String message) {
    int rank = backward.group().rank();
    assertThatThrownBy(
            () ->
                backward.verify(
                    null,
                    () -> {
                      if (rank == 1) {
                        planted.run();
                      }
                    }))
        .isInstanceOf(VerificationFailed.class)
        .hasMessageStartingWith("rank 1: ")
        .hasMessageContaining(message)
        .hasMessageContaining("of position ");
  }

  /// The flops of all ranks are those of the problem, and zigzag ends earlier than contiguous.
  @Test
  void aScheduleIsSimulated() {
    var spec = AttentionSpec.of(1 << 16, 32, 128).kvHeads(8).causal().dtype(DType.BF16);
    for (var method : AttentionTest.METHODS) {
      var contiguous = Schedule.of(spec.backward(), method, 8).simulate(Machine.h200x8());
      var zigzag =
          Schedule.of(spec.layout(TokenLayout.ZIGZAG).backward(), method, 8)
              .simulate(Machine.h200x8());
      for (var profiles : List.of(contiguous, zigzag)) {
        assertThat(
                profiles.profiles().stream()
                    .flatMap(profile -> profile.spans().stream())
                    .mapToDouble(span -> span.flops())
                    .sum())
            .isEqualTo(spec.backward().flops());
      }
      assertThat(AttentionTest.slowest(zigzag))
          .as("%s", method)
          .isLessThan(0.8 * AttentionTest.slowest(contiguous));
    }
  }

  @Test
  @SuppressWarnings("try") // closes the forward pass before its end
  void impossibleProblemsAreRefusedInOneLine() {
    var spec = AttentionSpec.of(12, 2, 4);
    LocalRanks.run(
        2,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build();
              var lse = LocalTensor.on(world).shape(6, 2).allocate();
              var other = LocalTensor.on(world).shape(5, 8).allocate()) {
            assertThatThrownBy(() -> Pipeline.on(world).attention(spec.backward()).build())
                .hasMessage(
                    "lse is missing; call backward(attention), or lse(tensor) with the lse of the"
                        + " forward pass, before build()");
            assertThatThrownBy(() -> Pipeline.on(world).attention(spec.backward()).lse(lse).build())
                .hasMessage(
                    "output is missing; call backward(attention), or output(tensor) with the output"
                        + " of the forward pass, before build()");
            assertThatThrownBy(
                    () -> Pipeline.on(world).attention(spec.causal()).backward(attention))
                .hasMessage(
                    "the problem is `%s` but the forward pass is `%s`; leave attention(...) out"
                        .formatted(spec.causal(), spec));
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world).attention(spec.causal().backward()).backward(attention))
                .hasMessage(
                    "the problem is `%s` but the forward pass is `%s`; leave attention(...) out"
                        .formatted(spec.causal().backward(), spec));
            try (var gradient = Pipeline.on(world).backward(attention).build()) {
              assertThatThrownBy(() -> Pipeline.on(world).backward(gradient))
                  .hasMessage(
                      "backward needs the pipeline of an attention but %s was given"
                          .formatted(gradient));
              assertThatThrownBy(gradient::weight)
                  .hasMessage(
                      "`%s` has no weight; it has output, query, key, value, lse, output gradient, query gradient, key gradient, value gradient"
                          .formatted(spec.backward()));
            }
            assertThatThrownBy(() -> Pipeline.on(world).backward(attention).lse(lse))
                .hasMessageStartingWith("lse was given already: ");
            assertThatThrownBy(
                    () -> Pipeline.on(world).backward(attention).outputGradient(other).build())
                .hasMessageContaining("output gradient of `backward of " + spec + "` must be 6x8")
                .hasMessageContaining("allocate it with shape(6, 8)");
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world)
                            .backward(attention)
                            .outputGradient(attention.query())
                            .queryGradient(attention.output())
                            .build())
                .hasMessageContaining("must be different tensors");
            var backward = Pipeline.on(world).backward(attention).build();
            attention.close();
            assertThatThrownBy(backward::run).hasMessageContaining("is closed; build it again");
            backward.close();
            backward.close();
            assertThatThrownBy(backward::run).hasMessageContaining("is closed; build it again");
          }
        });
  }

  @Test
  void anAttentionOfAnotherGroupIsRefused() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(12, 2, 4);
          try (var pair = world.subset("pair", 0, 1);
              var attention = Pipeline.on(pair).attention(spec).build()) {
            assertThatThrownBy(() -> Pipeline.on(world).backward(attention))
                .hasMessageStartingWith("the forward pass must be on group `world` but is on `");
          }
        });
  }

  /// Every kind of memory that the host has.
  @Test
  void theMemoryIsThatOfTheForwardPass() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(12, 2, 4).causal();
          try (var attention =
                  Pipeline.on(world).attention(spec).memory(MemoryKind.NATIVE).build();
              var backward =
                  Pipeline.on(world).memory(MemoryKind.NATIVE).backward(attention).build()) {
            attention.run();
            backward.verify();
            assertThat(backward.profile(1).configuration()).containsEntry("memory", "native");
          }
        });
  }
}
