package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.PlainAttention.Inputs;
import braid.internal.selftest.PartColumns;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.TokenLayout;
import braid.schedule.Buffer;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Attention whose query, key and value are columns of one tensor.
class FusedAttentionTest {
  private static final List<Fused> FUSED = List.of(Fused.KV, Fused.QKV);

  private static List<ContextParallel> methods(int ranks) {
    var methods = new ArrayList<>(AttentionTest.METHODS);
    methods.add(ContextParallel.ulysses());
    methods.add(ContextParallel.ulysses().splits(2).streams(2).replay());
    if (ranks == 4) {
      methods.add(ContextParallel.twoLevel(2).splits(2));
    }
    return methods;
  }

  private static List<AttentionSpec> specs() {
    var spec = AttentionSpec.of(61, 16, 4).kvHeads(8).layout(TokenLayout.ZIGZAG);
    var packed = spec.causal().packed(new int[] {0, 20, 37}, new int[] {0, 23, 61});
    return List.of(
        spec,
        spec.causal(),
        spec.causal().window(9).dtype(DType.BF16),
        packed.layout(TokenLayout.PER_SEQUENCE),
        packed.dtype(DType.FP16));
  }

  /// Output, LSE and gradients of this rank.
  private static List<float[]> results(
      ProcessGroup world, AttentionSpec spec, ContextParallel method) {
    try (var attention = Pipeline.on(world).attention(spec).overlap(method).build();
        var backward = Pipeline.on(world).overlap(method).backward(attention).build()) {
      AttentionTest.give(attention, Inputs.of(spec, 5));
      var gradient = AttentionGradientTest.outputGradient(spec, 5);
      var _ = backward.outputGradient().copyFrom(AttentionGradientTest.mine(backward, gradient));
      world.barrier();
      attention.run();
      backward.run();
      world.barrier();
      var results = new ArrayList<>(List.of(attention.output().toFloats()));
      results.add(attention.lse().toFloats());
      for (var part : List.of(Part.QUERY_GRADIENT, Part.KEY_GRADIENT, Part.VALUE_GRADIENT)) {
        results.add(PartColumns.of(spec, part).load(backward));
      }
      return results;
    }
  }

  /// A division of the columns changes no number.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void resultsEqualThoseOfSeparateTensors(int ranks) {
    LocalRanks.run(
        ranks,
        world -> {
          for (var spec : specs()) {
            for (var method : methods(ranks)) {
              if (spec.kvHeads() % (method.headRanks(ranks) * method.splits()) != 0) {
                continue;
              }
              var separate = results(world, spec, method);
              for (var fused : FUSED) {
                assertThat(results(world, spec.fused(fused), method))
                    .as("%s, %s, %s", spec, fused, method)
                    .usingRecursiveComparison()
                    .isEqualTo(separate);
              }
            }
          }
        });
  }

  /// A GEMM writes the columns, attention works on them, and GEMMs read their gradients.
  @Test
  void aChainBindsFusedTensorsWithoutCopies() {
    int ranks = 2;
    var spec =
        AttentionSpec.of(32, 4, 8).kvHeads(2).causal().layout(TokenLayout.ZIGZAG).fused(Fused.QKV);
    LocalRanks.run(
        ranks,
        world -> {
          int rows = 32 / ranks;
          var alone = world.subset("alone-" + world.rank(), world.rank());
          try (var qkv = SymmetricTensor.on(world).shape(rows, 64).allocate();
              var ofQkv = LocalTensor.on(world).shape(rows, 64).allocate();
              var attended = LocalTensor.on(world).shape(rows, 32).allocate();
              var x = LocalTensor.on(world).shape(rows, 16).allocate();
              var project =
                  Pipeline.on(alone)
                      .gemm(GemmSpec.allGatherGemm(rows, 64, 16))
                      .input(x)
                      .output(qkv.local())
                      .build();
              var attention = Pipeline.on(world).attention(spec).qkv(qkv).output(attended).build();
              var output =
                  Pipeline.on(alone)
                      .gemm(GemmSpec.allGatherGemm(rows, 16, 32))
                      .input(attended)
                      .build();
              var gradient = Pipeline.on(world).backward(attention).qkvGradient(ofQkv).build();
              var ofWeight =
                  Pipeline.on(alone)
                      .gemm(GemmSpec.allGatherGemm(16, 64, rows).transposedInput())
                      .input(x)
                      .weight(ofQkv)
                      .build()) {
            x.view().fillIntegers(world.rank() + 1);
            world.barrier();
            var chain =
                Chain.on(world)
                    .then(project)
                    .then(attention)
                    .then(output)
                    .then(gradient)
                    .then(ofWeight);
            chain.verify();
            for (var built : List.of(attention, gradient)) {
              assertThat(built.schedule().buffers())
                  .extracting(Buffer::name)
                  .noneMatch(name -> name.contains("caller"));
            }
            assertThat(attention.qkv().toFloats()).isEqualTo(project.output().toFloats());
            assertThat(gradient.qkvGradient().toFloats()).isEqualTo(ofWeight.weight().toFloats());
          }
        });
  }

  /// Other ranks read the columns of key and value only.
  @Test
  void aQueryReachesNoOtherRank() {
    var spec = AttentionSpec.of(24, 2, 4).fused(Fused.QKV);
    var sums = new ConcurrentHashMap<String, Float>();
    LocalRanks.run(
        3,
        world -> {
          for (var method :
              List.of(
                  ContextParallel.ring(),
                  ContextParallel.ring().neighborToNeighbor(),
                  ContextParallel.allGatherKv())) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
              if (world.rank() == 0) {
                var query = new float[8 * 8];
                Arrays.fill(query, Float.NaN);
                PartColumns.of(spec, Part.QUERY).store(attention, query);
              }
              world.barrier();
              attention.run();
              float sum = 0;
              for (float each : attention.output().toFloats()) {
                sum += each;
              }
              sums.put(method + " " + world.rank(), sum);
            }
          }
        });
    assertThat(sums).hasSize(9);
    sums.forEach(
        (name, sum) -> assertThat(Float.isNaN(sum)).as(name).isEqualTo(name.endsWith(" 0")));
  }

  /// One symmetric buffer instead of three, and as many bytes.
  @Test
  void fusedTensorsTakeOneBuffer() {
    var spec = AttentionSpec.of(64, 4, 8).kvHeads(2);
    for (var method : List.of(ContextParallel.ring(), ContextParallel.ulysses())) {
      var separate = Schedule.of(spec.backward(), method, 2);
      var fused = Schedule.of(spec.fused(Fused.QKV).backward(), method, 2);
      assertThat(bytes(fused)).isEqualTo(bytes(separate));
      assertThat(fused.port("qkv").orElseThrow().on(1).columns()).isEqualTo(64);
      assertThat(fused.port("key")).isEmpty();
      assertThat(fused.port("qkv gradient").orElseThrow().given()).isFalse();
    }
  }

  private static long bytes(Schedule schedule) {
    return schedule.buffers().stream().mapToLong(Buffer::mostBytes).sum();
  }

  @Test
  void tensorsOfAnotherDivisionAreRefused() {
    var spec = AttentionSpec.of(16, 2, 4).fused(Fused.QKV);
    assertThat(spec)
        .hasToString("attention sequence=16 heads=2 headSize=4 fp32 contiguous fused=qkv");
    assertThat(spec.columns()).containsEntry("fused", "qkv");
    LocalRanks.run(
        1,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build();
              var tensor = LocalTensor.on(world).shape(16, 8).allocate()) {
            assertThatThrownBy(attention::key)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("has no key; it has output, qkv, lse");
            assertThatThrownBy(() -> Pipeline.on(world).attention(spec).key(tensor).build())
                .hasMessageContaining("has no key but");
            assertThatThrownBy(() -> Pipeline.on(world).attention(spec).qkv(tensor).build())
                .hasMessageContaining("qkv of `" + spec + "` must be 16x24");
          }
        });
  }
}
