package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.VerifiedInputs.Kind;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.VerificationFailed;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Results that verification accepts, errors that it finds, and its messages.
class VerifyTest {
  /// An error planted after the run, on rank 0.
  private interface Planted {
    void into(TensorView output);
  }

  private static void verify(Pipeline pipe, Planted planted) {
    pipe.verify(
        null,
        () -> {
          if (pipe.group().rank() == 0) {
            planted.into(pipe.output());
          }
        });
  }

  private static void off(TensorView output, double amount, long row, long column) {
    output.set((float) (output.get(row, column) + amount), row, column);
  }

  private static Pipeline pipeline(
      ProcessGroup world, GemmSpec spec, Overlap tuning, Kind kind, long seed) {
    var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build();
    new VerifiedInputs(spec, world.size(), kind, seed).fill(pipe);
    return pipe;
  }

  @ParameterizedTest
  @EnumSource(names = {"BF16", "FP16"})
  void ringsRoundAtEveryHop(DType dtype) {
    LocalRanks.run(
        3,
        world -> {
          for (var spec :
              List.of(GemmSpec.gemmReduceScatter(48, 32, 96), GemmSpec.gemmAllReduce(48, 32, 96))) {
            for (int seed = 0; seed < 20; seed++) {
              try (var pipe =
                  pipeline(world, spec.dtype(dtype), Overlap.ring(), Kind.GAUSSIAN, seed)) {
                pipe.verify();
                // Outputs have a standard deviation of 10, and the roundings of bf16 are below 0.2.
                assertThatThrownBy(() -> verify(pipe, output -> off(output, 1, 0, 0)))
                    .isInstanceOf(VerificationFailed.class);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource(names = {"FP8_E4M3", "FP8_E5M2"})
  void scalesMayRoundThePartialsOfARing(DType dtype) {
    LocalRanks.run(
        3,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(24, 16, 6).dtype(dtype);
          try (var pipe =
              Pipeline.on(world).gemm(spec).overlap(Overlap.ring()).scales(0.3f, 1).build()) {
            pipe.verify();
          }
        });
  }

  /// Values beyond the range of the type are stored as the largest number; any other value is
  /// wrong.
  @ParameterizedTest
  @EnumSource(names = {"FP8_E4M3", "FP8_E5M2"})
  void anFp8OutputMaySaturate(DType output) {
    float largest = output == DType.FP8_E4M3 ? 448 : 57344;
    LocalRanks.run(
        2,
        world -> {
          for (var spec :
              List.of(GemmSpec.allGatherGemm(6, 4, 64), GemmSpec.gemmReduceScatter(6, 4, 128))) {
            var narrow = spec.dtype(DType.FP8_E4M3).output(output).bias();
            try (var pipe = Pipeline.on(world).gemm(narrow).scales(0.3f, 0.7f, 1e-6f).build()) {
              // Products that are not integers, so that results have intervals.
              pipe.input().fill(1.125f);
              pipe.weight().fill(-0.4375f);
              pipe.bias().fill(0);
              pipe.verify();
              assertThat(pipe.output().toFloats()).containsOnly(-largest);
              assertThatThrownBy(() -> verify(pipe, wrong -> wrong.set(-0.75f * largest, 0, 1)))
                  .isInstanceOf(VerificationFailed.class)
                  .hasMessageContaining("must be -%s ".formatted(largest));
              // The scale that turns the largest result into 390.
              pipe.scales(0.3f, 0.7f, pipe.amax() / 390);
              pipe.verify();
              assertThat(pipe.output().toFloats()).containsOnly(-384);
            }
          }
        });
  }

  /// Bounds scale with the outputs: inputs ten times as large.
  @ParameterizedTest
  @ValueSource(floats = {1, 10})
  void boundsGrowWithTheOutputs(float amount) {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.allGatherGemm(24, 16, 64).dtype(DType.BF16);
          try (var pipe = pipeline(world, spec, Overlap.pipelined(3), Kind.GAUSSIAN, 1)) {
            for (var each : List.of(pipe.input(), pipe.weight())) {
              var values = each.toFloats();
              for (int i = 0; i < values.length; i++) {
                values[i] *= amount;
              }
              each.copyFrom(values);
            }
            pipe.verify();
            // Outputs have a standard deviation of 8 by² and steps of up to a 128th of their size.
            assertThatThrownBy(() -> verify(pipe, output -> off(output, amount * amount, 3, 5)))
                .isInstanceOf(VerificationFailed.class)
                .hasMessageStartingWith("rank 0: output[3, 5] must be ")
                .hasMessageMatching(".* (exactly|within 0\\.[0-9]+) but was .*");
          }
        });
  }

  @Test
  void integersAreExactAlthoughPartialsAreRounded() {
    LocalRanks.run(
        4,
        world -> {
          for (var tuning : List.of(Overlap.pipelined(2), Overlap.ring(), Overlap.direct(2))) {
            for (var spec :
                List.of(
                    GemmSpec.gemmAllReduce(16, 16, 8192),
                    GemmSpec.gemmReduceScatter(16, 16, 8192))) {
              try (var pipe =
                  Pipeline.on(world).gemm(spec.dtype(DType.BF16)).overlap(tuning).build()) {
                pipe.verify();
                // One step of a number below 1024, beside sums of 8192 products of up to 9.
                assertThatThrownBy(() -> verify(pipe, output -> off(output, 4, 0, 0)))
                    .isInstanceOf(VerificationFailed.class)
                    .hasMessageMatching("rank 0: output\\[0, 0] must be .* exactly but was .*");
              }
            }
          }
        });
  }

  @Test
  void onlyElementsThatSeeAnInfinityAreHeldToIt() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.allGatherGemm(8, 6, 32);
          for (float special :
              new float[] {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY}) {
            try (var pipe = pipeline(world, spec, Overlap.pipelined(2), Kind.GAUSSIAN, 3)) {
              if (world.rank() == 0) {
                pipe.input().set(special, 1, 7);
              }
              pipe.verify();
              pipe.verify(1e-4, 1e-4);
              // The special row.
              assertThatThrownBy(() -> verify(pipe, output -> output.set(5, 1, 2)))
                  .hasMessageMatching(
                      "rank 0: output\\[1, 2] must be (NaN|-?Infinity) exactly but was 5.0.*");
              // Any other.
              assertThatThrownBy(() -> verify(pipe, output -> off(output, 1e-3, 2, 2)))
                  .hasMessageStartingWith("rank 0: output[2, 2] must be ")
                  .hasMessageContaining(" within ");
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource(
      value = Method.class,
      names = {"PIPELINED", "DIRECT", "RING", "UNFUSED"})
  void anOverflowIsExpectedWhereTheReferenceOverflows(Method method) {
    LocalRanks.run(
        3,
        world -> {
          var tuning = Overlap.of(method, 2);
          for (int seed = 0; seed < 5; seed++) {
            var spec = GemmSpec.gemmReduceScatter(12, 12, 48).dtype(DType.FP16);
            try (var pipe = pipeline(world, spec, tuning, Kind.NEAR_OVERFLOW, seed)) {
              pipe.verify();
              assertThatThrownBy(
                      () ->
                          verify(
                              pipe,
                              output ->
                                  output.set(
                                      Float.isFinite(output.get(0, 0)) ? Float.NaN : 1, 0, 0)))
                  .isInstanceOf(VerificationFailed.class);
            }
          }
        });
  }

  /// Each value is within its bound, but all deviate in one direction.
  @Test
  void aSmallErrorOfAllValuesIsSeen() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.allGatherGemm(64, 64, 256);
          try (var pipe = pipeline(world, spec, Overlap.pipelined(2), Kind.GAUSSIAN, 5)) {
            var inputs = new VerifiedInputs(spec, 2, Kind.GAUSSIAN, 5);
            // A single value may deviate by 12 standard deviations.
            for (double deviations : new double[] {2, 7}) {
              Planted planted =
                  output -> {
                    var sizes = inputs.products(0, 0, 0, 256, true);
                    var values = output.toFloats();
                    for (int i = 0; i < values.length; i++) {
                      values[i] += (float) (deviations * Math.sqrt(259) * 0x1p-24 * sizes[i]);
                    }
                    output.copyFrom(values);
                  };
              if (deviations < 3) {
                assertThatCode(() -> verify(pipe, planted)).doesNotThrowAnyException();
              } else {
                assertThatThrownBy(() -> verify(pipe, planted))
                    .isInstanceOf(VerificationFailed.class)
                    .hasMessageMatching(
                        "rank 0: output is off by [0-9.e-]+ in the RMS of its 2048 values but"
                            + " roundings explain at most [0-9.e-]+; each value is within its own"
                            + " bound, so all of them are a little wrong; .*");
              }
            }
          }
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void tinyOutputsPass(int size) {
    LocalRanks.run(
        size,
        world -> {
          for (var dtype : DType.values()) {
            if (dtype.isFp8()) {
              continue;
            }
            var spec = GemmSpec.allGatherGemm(size, size, 3).dtype(dtype);
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.pipelined(1)).build()) {
              for (int seed = 0; seed < 100; seed++) {
                new VerifiedInputs(spec, size, Kind.GAUSSIAN, seed).fill(pipe);
                pipe.verify();
              }
            }
          }
        });
  }
}
