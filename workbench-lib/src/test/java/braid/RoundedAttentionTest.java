package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.PlainAttention.Expected;
import braid.PlainAttention.Inputs;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.TokenLayout;
import braid.model.Transport;
import braid.model.VerificationFailed;
import braid.schedule.Buffer;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Attention whose keys and values are exchanged in e4m3.
class RoundedAttentionTest {
  private static final DType E4M3 = DType.FP8_E4M3;

  private static List<AttentionSpec> specs() {
    var spec = AttentionSpec.of(61, 4, 8).kvHeads(2).layout(TokenLayout.ZIGZAG).exchanged(E4M3);
    return List.of(
        spec,
        spec.causal(),
        spec.causal().window(9).fused(Fused.KV),
        spec.causal().fused(Fused.QKV).layout(TokenLayout.CONTIGUOUS),
        AttentionSpec.of(61, 2, 5).causal().layout(TokenLayout.STRIPED).exchanged(E4M3),
        AttentionSpec.of(61, 2, 5).window(7).layout(TokenLayout.STRIPED).exchanged(E4M3),
        spec.causal()
            .packed(new int[] {0, 20, 37}, new int[] {0, 23, 61})
            .layout(TokenLayout.PER_SEQUENCE));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5})
  void everyMethodEqualsPlainLoopsOverRoundedKeys(int ranks) {
    AttentionGradientTest.runs(ranks, AttentionTest.METHODS, specs());
  }

  @Test
  void dividedHeadsEqualPlainLoopsOverRoundedKeys() {
    var specs =
        specs().stream()
            .filter(spec -> spec.layout() != TokenLayout.STRIPED)
            .map(spec -> spec.heads(16, 8))
            .toList();
    var methods =
        List.of(
            ContextParallel.ulysses(),
            ContextParallel.ulysses().splits(2).streams(2).replay(),
            ContextParallel.twoLevel(2).splits(2));
    AttentionGradientTest.runs(4, methods, specs);
  }

  /// No bit depends on where the keys are: their owner uses the rounded ones too.
  @ParameterizedTest
  @EnumSource(names = {"FP32", "BF16", "FP16"})
  void theResultIsThatOfKeysWhichWereRoundedBefore(DType dtype) {
    var spec = AttentionSpec.of(48, 4, 8).kvHeads(2).causal().dtype(dtype);
    LocalRanks.run(
        2,
        world -> {
          for (var method : List.of(ContextParallel.ring(), ContextParallel.ulysses())) {
            try (var rounding =
                    Pipeline.on(world).attention(spec.exchanged(E4M3)).overlap(method).build();
                var plain = Pipeline.on(world).attention(spec).overlap(method).build()) {
              var inputs = Inputs.of(spec, 4);
              AttentionTest.give(rounding, inputs);
              AttentionTest.give(plain, inputs);
              for (var tensor : List.of(plain.key(), plain.value())) {
                var _ = tensor.copyFrom(rounded(tensor.toFloats(), spec.headSize()));
              }
              world.barrier();
              rounding.run();
              plain.run();
              world.barrier();
              assertThat(rounding.output().toFloats()).isEqualTo(plain.output().toFloats());
              assertThat(rounding.lse().toFloats()).isEqualTo(plain.lse().toFloats());
              var exact = Expected.of(spec, inputs);
              assertThatThrownBy(() -> AttentionTest.check(rounding, exact, 1e-2, "unrounded"))
                  .isInstanceOf(AssertionError.class);
            }
          }
        });
  }

  /// Rounds to 4 significant bits. Gaussian numbers of a head are far from the smallest of e4m3.
  private static float[] rounded(float[] numbers, int headSize) {
    var rounded = new float[numbers.length];
    for (int i = 0; i < numbers.length; i++) {
      float largest = 0;
      for (int j = i / headSize * headSize; j < (i / headSize + 1) * headSize; j++) {
        largest = Math.max(largest, Math.abs(numbers[j]));
      }
      // Smaller ones would lose bits.
      assertThat(Math.abs(numbers[i])).isGreaterThan(largest * 0x1p-13f);
      float ulp = Math.ulp(numbers[i]) * 0x1p20f;
      rounded[i] = (float) Math.rint(numbers[i] / ulp) * ulp;
    }
    return rounded;
  }

  /// Each token sees itself only, so the output is the rounded value.
  @ParameterizedTest
  @EnumSource(names = {"FP32", "BF16", "FP16"})
  void numbersOfAllSizesAreRounded(DType dtype) {
    int tokens = 400;
    int headSize = 5;
    var spec =
        AttentionSpec.of(tokens, 1, headSize)
            .dtype(dtype)
            .packed(IntStream.rangeClosed(0, tokens).toArray())
            .exchanged(E4M3);
    var random = new Random(9);
    var value = new float[tokens * headSize];
    for (int i = 0; i < value.length; i++) {
      // Numbers of a row differ by up to 2^20.
      double size = Math.scalb(1 + random.nextDouble(), random.nextInt(20) - 140 + i / 7);
      float number = dtype.round((float) (random.nextBoolean() ? size : -size));
      value[i] = Float.isFinite(number) ? number : dtype.round(random.nextInt(65505));
    }
    value[3] = Float.NaN;
    value[headSize] = Float.POSITIVE_INFINITY;
    var zeros = new float[tokens * headSize];
    var expected = Expected.of(spec, new Inputs(zeros, zeros, value)).output();
    LocalRanks.run(
        1,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build()) {
            var _ = attention.value().copyFrom(value);
            attention.run();
            var output = attention.output().toFloats();
            for (int i = 0; i < output.length; i++) {
              assertThat(output[i])
                  .as("%s, %s", i, value[i])
                  .isEqualTo((Float) (float) expected[i]);
            }
            assertThat(output).hasSize(expected.length);
          }
        });
    assertThat(IntStream.range(0, value.length).filter(i -> value[i] != (float) expected[i]))
        .hasSizeGreaterThan(value.length / 2);
  }

  @Test
  void verifyRefusesTheResultOfUnroundedKeys() {
    var spec = AttentionSpec.of(40, 2, 8).kvHeads(1).dtype(DType.BF16).exchanged(E4M3);
    LocalRanks.run(
        2,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build();
              var plain = Pipeline.on(world).attention(spec.exchanged(DType.BF16)).build()) {
            for (var each : List.of(attention, plain)) {
              AttentionTest.give(each, Inputs.of(spec, 6));
            }
            world.barrier();
            plain.run();
            attention.verify();
            var unrounded = plain.output().toFloats();
            assertThatThrownBy(
                    () -> attention.verify(null, () -> attention.output().copyFrom(unrounded)))
                .isInstanceOf(VerificationFailed.class)
                .hasMessageContaining("output[");
          }
        });
  }

  @Test
  void aRoundedExchangeHasHalfOfTheBytes() {
    var spec = AttentionSpec.of(4096, 8, 128).kvHeads(2).dtype(DType.BF16);
    for (var method :
        List.of(
            ContextParallel.ring(),
            ContextParallel.allGatherKv().splits(2),
            ContextParallel.allGatherKv().over(Transport.NCCL_KERNELS))) {
      long exact = linkBytes(Schedule.of(spec, method, 4));
      long rounded = linkBytes(Schedule.of(spec.exchanged(E4M3), method, 4));
      // 128 bytes and the scale, instead of 256.
      assertThat(rounded * 256).as("%s", method).isEqualTo(exact * 132);
    }
  }

  private static long linkBytes(Schedule schedule) {
    long bytes = 0;
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      for (var step : schedule.steps(rank)) {
        if (step instanceof Step.Copy copy) {
          bytes +=
              copy.moves().stream()
                  .filter(move -> !move.isLocal())
                  .mapToLong(move -> move.from().bytes())
                  .sum();
        } else if (step instanceof Step.LibraryCall call) {
          bytes += call.x().bytes();
        }
      }
    }
    return bytes;
  }

  @Test
  void timelinesNameRoundingAndWhoseKeysAreAttendedTo() {
    var spec = AttentionSpec.of(64, 1, 4).exchanged(E4M3);
    assertThat(Schedule.of(spec, ContextParallel.ring(), 2).timeline(0).toString())
        .contains("round 0", "restore 0", "attend own", "restore 1", "attend 1");
  }

  /// A schedule of one's own that forgets a step is told which.
  @Test
  void theCheckFindsUnroundedKeys() {
    var spec = AttentionSpec.of(8, 1, 4).exchanged(E4M3);
    assertThat(checked(spec, true, true)).isEmpty();
    assertThat(checked(spec, false, true))
        .anyMatch(line -> line.contains("round to fp8_e4m3 or restore from it"));
    assertThat(checked(spec, true, false))
        .anyMatch(
            line ->
                line.contains(
                    "instead of attention of query@0[0..7] at position 0 to rounded(key@"));
  }

  /// Checks attention on one rank.
  ///
  /// @param rounds false to copy the keys instead
  /// @param restores false to use the keys as they were given
  private static List<String> checked(AttentionSpec spec, boolean rounds, boolean restores) {
    var plan = Schedule.on(spec, 1);
    var math = plan.lane("math", Lane.Role.COMPUTE);
    var query = plan.local(Part.QUERY);
    var given = List.of(plan.symmetric(Part.KEY), plan.symmetric(Part.VALUE));
    var output = plan.local(Part.OUTPUT);
    var lse = plan.local(Part.LSE);
    int columns = spec.headSize() + (rounds ? 4 : 0);
    var narrow = new ArrayList<Buffer>();
    var used = new ArrayList<Buffer>();
    for (var each : given) {
      narrow.add(plan.local("rounded " + each, rounds ? E4M3 : DType.FP32, 8, columns));
      used.add(plan.local("used " + each, DType.FP32, 8, spec.headSize()));
    }
    return plan.steps(
            p -> {
              for (int i = 0; i < 2; i++) {
                var rounding = List.of(new Step.Move(given.get(i).on(0), narrow.get(i).on(0)));
                var restoring = List.of(new Step.Move(narrow.get(i).on(0), used.get(i).on(0)));
                p.recode(math, 0, rounding, spec.headSize())
                    .recode(math, 0, restoring, spec.headSize());
              }
              var keys = restores ? used : given;
              p.attend(
                  math,
                  0,
                  spec,
                  query.on(0),
                  0,
                  keys.get(0).on(0),
                  keys.get(1).on(0),
                  0,
                  new Step.Partial(output.on(0), lse.on(0)),
                  false);
            })
        .findings();
  }

  @Test
  void otherTypesAreRefused() {
    var spec = AttentionSpec.of(16, 2, 4).dtype(DType.BF16);
    assertThat(spec.exchanged(DType.BF16)).isEqualTo(spec);
    assertThat(spec.exchanged(E4M3))
        .hasToString("attention sequence=16 heads=2 headSize=4 bf16 contiguous exchanged=fp8_e4m3");
    assertThat(spec.exchanged(E4M3).columns()).containsEntry("exchanged", "fp8_e4m3");
    assertThatThrownBy(() -> spec.exchanged(DType.FP8_E5M2))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("in fp8_e4m3 but exchanged was fp8_e5m2");
  }
}
