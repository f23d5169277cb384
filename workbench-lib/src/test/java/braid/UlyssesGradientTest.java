package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Stage;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The backward pass of attention whose heads are divided among ranks: all-to-all over heads, alone
/// and combined with a ring. Compared with plain loops as [AttentionGradientTest] compares the
/// other methods.
class UlyssesGradientTest {
  /// Each rank has one split, and two on two streams.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void f1MethodsThatDivideHeadsEqualPlainLoops(int ranks) {
    UlyssesTest.methods(ranks)
        .forEach(
            (method, sharing) -> {
              AttentionGradientTest.runs(ranks, List.of(method), specs(sharing));
              AttentionGradientTest.runs(
                  ranks, List.of(method.splits(2).streams(2)), specs(2 * sharing));
            });
  }

  /// The gradients of keys come from three groups.
  @Test
  void f1ThreeGroupsEqualPlainLoops() {
    AttentionGradientTest.runs(6, List.of(ContextParallel.twoLevel(2)), specs(2));
  }

  /// Those of the forward pass, and packed ones, with and without padding.
  private static List<AttentionSpec> specs(int heads) {
    var specs = new ArrayList<>(UlyssesTest.specs(heads));
    for (var layout :
        List.of(TokenLayout.CONTIGUOUS, TokenLayout.ZIGZAG, TokenLayout.PER_SEQUENCE)) {
      var plain = AttentionSpec.of(45, 2 * heads, 3).kvHeads(heads).layout(layout);
      specs.add(plain.packed(0, 1, 1, 20, 45));
      specs.add(plain.causal().packed(new int[] {0, 7, 27, 30}, new int[] {0, 20, 40, 45}));
    }
    return specs;
  }

  @ParameterizedTest
  @EnumSource(value = TokenLayout.class, names = "STRIPED", mode = EnumSource.Mode.EXCLUDE)
  void f1GradientsAreThoseOfFiniteDifferences(TokenLayout layout) {
    AttentionGradientTest.checkDifferences(2, ContextParallel.ulysses(), layout);
    AttentionGradientTest.checkDifferences(4, ContextParallel.twoLevel(2), layout);
  }

  @Test
  void f1RunsRepeatedlyAndDeterministically() {
    var spec = AttentionSpec.of(50, 8, 4).kvHeads(4).causal().layout(TokenLayout.ZIGZAG);
    AttentionGradientTest.runsRepeatedly(
        6,
        spec,
        List.of(
            ContextParallel.twoLevel(2).splits(2).streams(2),
            ContextParallel.twoLevel(2).replay()));
    AttentionGradientTest.runsRepeatedly(
        4, spec, List.of(ContextParallel.ulysses(), ContextParallel.ulysses().replay()));
  }

  @Test
  void f3PaddingHasNoGradientAndMayHoldAnything() {
    var spec =
        AttentionSpec.of(200, 4, 4).packed(new int[] {0, 45, 120}, new int[] {0, 80, 200}).causal();
    LocalRanks.run(
        4,
        world -> {
          for (var layout : AttentionTest.OF_ONE_SEQUENCE) {
            for (var method : List.of(ContextParallel.ulysses(), ContextParallel.twoLevel(2))) {
              AttentionGradientTest.paddingHasNoGradient(world, spec.layout(layout), method);
            }
          }
        });
  }

  /// Other ranks access all tensors but the caller's; these are copied.
  @Test
  void tensorsMayBeTheCallers() {
    var spec = AttentionSpec.of(41, 8, 3).kvHeads(4).causal().layout(TokenLayout.ZIGZAG);
    LocalRanks.run(
        4,
        world -> {
          long rows = Tokens.of(spec, 4, world.rank()).count();
          try (var outputGradient = LocalTensor.on(world).shape(rows, 24).allocate();
              var queryGradient = LocalTensor.on(world).shape(rows, 24).allocate();
              var keyGradient = LocalTensor.on(world).shape(rows, 12).allocate();
              var attention = Pipeline.on(world).attention(spec).build()) {
            outputGradient.view().fill(0.5f);
            attention.verify();
            for (var method : List.of(ContextParallel.ulysses(), ContextParallel.twoLevel(2))) {
              queryGradient.view().fill(Float.NaN);
              keyGradient.view().fill(Float.NaN);
              try (var backward =
                  Pipeline.on(world)
                      .overlap(method)
                      .backward(attention)
                      .outputGradient(outputGradient)
                      .queryGradient(queryGradient)
                      .keyGradient(keyGradient)
                      .build()) {
                assertThat(backward.schedule().findings()).isEmpty();
                backward.verify();
                assertThat(queryGradient.view().toFloats())
                    .containsExactly(backward.queryGradient().toFloats());
                assertThat(keyGradient.view().toFloats())
                    .containsExactly(backward.keyGradient().toFloats());
              }
            }
          }
        });
  }

  @Test
  void f1HeadsThatCannotBeDividedAreRefusedByName() {
    var spec = AttentionSpec.of(96, 12, 4).kvHeads(6);
    assertThatThrownBy(() -> Schedule.of(spec.backward(), ContextParallel.ulysses(), 4))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "ulysses divides heads among 4 ranks, so heads and kvHeads must be multiples of 4 but"
                + " were 12 and 6; try twoLevel(2) or ring() for 4 ranks");
    LocalRanks.run(
        4,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build()) {
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world)
                            .overlap(ContextParallel.twoLevel(3))
                            .backward(attention)
                            .build())
                .hasMessage(
                    "two-level exchanges heads among 3 ranks, which must divide the 4 ranks; try"
                        + " twoLevel(2) or ring() for 4 ranks");
          }
        });
  }

  /// Each rank reads its heads of the other ranks' tokens, and returns their gradients.
  @Test
  void f1HeadsAreExchangedOnce() {
    LocalRanks.run(
        4,
        world -> {
          var spec = AttentionSpec.of(80, 8, 4).kvHeads(4);
          try (var attention = Pipeline.on(world).attention(spec).build();
              var ulysses =
                  Pipeline.on(world)
                      .overlap(ContextParallel.ulysses())
                      .backward(attention)
                      .build();
              var twoLevel =
                  Pipeline.on(world)
                      .overlap(ContextParallel.twoLevel(2))
                      .backward(attention)
                      .build()) {
            attention.run();
            world.barrier();
            // Of 60 tokens 2 query heads of 4 tensors and their LSEs, and a head of key, value and
            // their gradients.
            assertThat(copied(ulysses)).isEqualTo(60 * (4 * 2 * 4 + 2 + 4 * 4) * Float.BYTES);
            // Of 20 tokens 4 query heads of 4 tensors and their LSEs; of 60 tokens 2 heads of key
            // and value; of 20 tokens their gradients; of the 40 of the other group too.
            assertThat(copied(twoLevel))
                .isEqualTo(
                    (20 * (4 * 4 * 4 + 4) + (60 + 20 + 40) * 2 * 2 * 4) * (long) Float.BYTES);
          }
        });
  }

  private static long copied(Pipeline backward) {
    return backward.profile(1).spans().stream()
        .filter(span -> span.stage() == Stage.COPY)
        .mapToLong(span -> span.bytes())
        .sum();
  }

  /// The flops of all ranks are those of the problem, and dividing heads instead of keys balances
  /// causal attention in any layout.
  @Test
  void aScheduleIsSimulated() {
    var spec = AttentionSpec.of(1 << 16, 32, 128).kvHeads(8).causal().dtype(DType.BF16);
    for (var method : UlyssesTest.methods(8).keySet()) {
      var profiles =
          Schedule.of(spec.layout(TokenLayout.ZIGZAG).backward(), method, 8)
              .simulate(Machine.h200x8());
      assertThat(
              profiles.profiles().stream()
                  .flatMap(profile -> profile.spans().stream())
                  .mapToDouble(span -> span.flops())
                  .sum())
          .isEqualTo(spec.backward().flops());
    }
    assertThat(
            AttentionTest.slowest(
                Schedule.of(spec.backward(), ContextParallel.ulysses(), 8)
                    .simulate(Machine.h200x8())))
        .isLessThan(
            0.8
                * AttentionTest.slowest(
                    Schedule.of(spec.backward(), ContextParallel.ring(), 8)
                        .simulate(Machine.h200x8())));
  }
}
