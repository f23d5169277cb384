package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.PlainAttention.Expected;
import braid.PlainAttention.Inputs;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Stage;
import braid.model.TokenLayout;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Pipeline whose heads are divided among ranks: all-to-all over heads, alone and combined with a
/// ring. Compared with plain loops as [AttentionTest] compares the other methods.
class UlyssesTest {
  /// Problems of one head of key and value for each rank that heads are divided among, times
  /// `heads`.
  static List<AttentionSpec> specs(int heads) {
    var specs = new ArrayList<AttentionSpec>();
    for (var layout : AttentionTest.OF_ONE_SEQUENCE) {
      var plain = AttentionSpec.of(31, 2 * heads, 5).kvHeads(heads).layout(layout);
      specs.add(plain);
      specs.add(plain.causal());
      specs.add(plain.causal().window(4));
      specs.add(plain.causal().window(1));
      specs.add(plain.window(4));
      specs.add(plain.keys(50).causal());
      specs.add(AttentionSpec.of(60, heads, 4).causal().layout(layout));
      // Several tiles of rows and of keys.
      specs.add(AttentionSpec.of(301, heads, 2).causal().layout(layout));
    }
    return specs;
  }

  /// The methods that divide heads, with the number of ranks that they divide them among.
  static Map<ContextParallel, Integer> methods(int ranks) {
    var methods = new LinkedHashMap<ContextParallel, Integer>();
    methods.put(ContextParallel.ulysses(), ranks);
    for (int group = 2; group < ranks; group++) {
      if (ranks % group == 0) {
        methods.put(ContextParallel.twoLevel(group), group);
      }
    }
    return methods;
  }

  /// Each rank has one split, and two on two streams.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6})
  void f1MethodsThatDivideHeadsEqualPlainLoops(int ranks) {
    methods(ranks)
        .forEach(
            (method, sharing) -> {
              runs(ranks, method, specs(sharing));
              runs(ranks, method.splits(2).streams(2), specs(2 * sharing));
            });
  }

  private static void runs(int ranks, ContextParallel method, List<AttentionSpec> specs) {
    var inputs = specs.stream().map(spec -> Inputs.of(spec, 7)).toList();
    var expected = new ArrayList<Expected>();
    for (int i = 0; i < specs.size(); i++) {
      expected.add(Expected.of(specs.get(i), inputs.get(i)));
    }
    LocalRanks.run(
        ranks,
        world -> {
          for (int i = 0; i < specs.size(); i++) {
            try (var attention =
                Pipeline.on(world).attention(specs.get(i)).overlap(method).build()) {
              AttentionTest.give(attention, inputs.get(i));
              world.barrier();
              attention.verify();
              AttentionTest.check(
                  attention, expected.get(i), AttentionTest.MOST_ERROR, attention.toString());
            }
          }
        });
  }

  @Test
  void f1HeadsThatCannotBeDividedAreRefusedByName() {
    var spec = AttentionSpec.of(96, 12, 4).kvHeads(6);
    refuses(
        spec,
        ContextParallel.ulysses(),
        4,
        "ulysses divides heads among 4 ranks, so heads and kvHeads must be multiples of 4 but were"
            + " 12 and 6; try twoLevel(2) or ring() for 4 ranks");
    refuses(
        spec,
        ContextParallel.ulysses(),
        5,
        "ulysses divides heads among 5 ranks, so heads and kvHeads must be multiples of 5 but were"
            + " 12 and 6; try ring() for 5 ranks");
    refuses(
        spec,
        ContextParallel.twoLevel(3),
        4,
        "two-level exchanges heads among 3 ranks, which must divide the 4 ranks; try twoLevel(2) or"
            + " ring() for 4 ranks");
    refuses(
        spec,
        ContextParallel.twoLevel(4),
        8,
        "two-level divides heads among 4 ranks, so heads and kvHeads must be multiples of 4 but"
            + " were 12 and 6; try twoLevel(2) or ring() for 8 ranks");
    refuses(
        spec,
        ContextParallel.ulysses().splits(2),
        2,
        "splits of ulysses must divide the 3 kvHeads of each rank but were 2; try splits(1)");
    refuses(
        spec,
        ContextParallel.ulysses().splits(3).streams(4),
        2,
        "ulysses computes each split on one stream, so streams must be at most 3 splits but were 4;"
            + " try streams(3)");
    refuses(
        spec.layout(TokenLayout.STRIPED),
        ContextParallel.twoLevel(2),
        4,
        "layout striped has the tokens of 2 ranks in turns, which two-level would copy row by row;"
            + " take layout(ZIGZAG), or ring()");
    assertThatThrownBy(() -> ContextParallel.twoLevel(1))
        .hasMessage("ulyssesRanks must be 2 or more but were 1; try twoLevel(2), or ring()");
    LocalRanks.run(
        4,
        world ->
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world)
                            .attention(spec)
                            .overlap(ContextParallel.ulysses())
                            .build())
                .hasMessageStartingWith("ulysses divides heads among 4 ranks"));
  }

  private static void refuses(
      AttentionSpec spec, ContextParallel method, int ranks, String message) {
    assertThatThrownBy(() -> Schedule.of(spec, method, ranks))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  /// Dividing heads instead of keys balances causal attention in any layout.
  @Test
  void aScheduleIsSimulated() {
    var spec = AttentionSpec.of(1 << 16, 32, 128).kvHeads(8).causal().dtype(DType.BF16);
    for (var method : methods(8).keySet()) {
      var profiles =
          Schedule.of(spec.layout(TokenLayout.ZIGZAG), method, 8).simulate(Machine.h200x8());
      assertThat(
              profiles.profiles().stream()
                  .flatMap(profile -> profile.spans().stream())
                  .mapToDouble(span -> span.flops())
                  .sum())
          .isEqualTo(spec.flops());
    }
    assertThat(
            AttentionTest.slowest(
                Schedule.of(spec, ContextParallel.ulysses(), 8).simulate(Machine.h200x8())))
        .isLessThan(
            0.8
                * AttentionTest.slowest(
                    Schedule.of(spec, ContextParallel.ring(), 8).simulate(Machine.h200x8())));
  }

  /// Each rank reads its heads of the other ranks' tokens, and returns their output and LSE.
  @Test
  void f1HeadsAreExchangedOnce() {
    LocalRanks.run(
        4,
        world -> {
          var spec = AttentionSpec.of(80, 8, 4).kvHeads(4);
          try (var attention =
              Pipeline.on(world).attention(spec).overlap(ContextParallel.ulysses()).build()) {
            attention.verify();
            var profile = attention.profile(1);
            assertThat(profile.configuration()).containsEntry("method", "ulysses");
            var copied =
                profile.spans().stream()
                    .filter(span -> span.stage() == Stage.COPY)
                    .mapToLong(span -> span.bytes())
                    .sum();
            // Of 60 tokens 2 query heads, a key and a value head, 2 output heads and LSEs.
            assertThat(copied).isEqualTo(60 * (2 * 4 + 2 * 4 + 2 * 4 + 2) * Float.BYTES);
          }
        });
  }
}
