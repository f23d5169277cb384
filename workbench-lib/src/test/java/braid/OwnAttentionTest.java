package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.VerificationFailed;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Attention by a schedule of one's own: each rank keeps its tokens in private memory, copies its
/// keys and values to all others, and attends to all of them at once.
class OwnAttentionTest {
  private static final int TOKENS = 12;
  static final AttentionSpec SPEC = AttentionSpec.of(TOKENS, 4, 8).kvHeads(2).causal();

  /// @param wrong true to attend to the keys of rank 0 in place of those of rank 1
  static Schedule pushed(int ranks, boolean wrong) {
    var builder = Schedule.on(SPEC, ranks);
    var query = builder.local(Part.QUERY);
    var key = builder.local(Part.KEY);
    var value = builder.local(Part.VALUE);
    var output = builder.local(Part.OUTPUT);
    var lse = builder.local(Part.LSE);
    var keys = builder.symmetric("keys", SPEC.dtype(), TOKENS, 16);
    var values = builder.symmetric("values", SPEC.dtype(), TOKENS, 16);
    var begun = builder.flag("begun", ranks);
    var landed = builder.flag("landed", ranks);
    var comm = builder.lane("comm", Lane.Role.COMMUNICATION);
    var math = builder.lane("math", Lane.Role.COMPUTE);
    return builder.steps(
        p -> {
          int me = p.rank();
          for (int peer = 0; peer < ranks; peer++) {
            if (peer != me) {
              p.signal(comm, begun, peer);
            }
          }
          for (int peer = 0; peer < ranks; peer++) {
            var mine = Slice.of(TOKENS, ranks, me);
            if (peer != me) {
              p.await(comm, begun, peer);
            }
            p.copy(comm, peer, key.on(me), keys.on(peer, mine));
            p.copy(comm, peer, value.on(me), values.on(peer, mine));
            if (peer != me) {
              p.signal(comm, landed, peer);
            }
          }
          p.after(math, Step.NO_CHUNK, comm);
          for (int peer = 0; peer < ranks; peer++) {
            if (peer != me) {
              p.await(math, landed, peer);
            }
          }
          var part = wrong ? Slice.of(TOKENS, ranks, 0) : new Slice(0, TOKENS);
          p.attend(
              math,
              0,
              SPEC,
              query.on(me),
              Slice.of(TOKENS, ranks, me).start(),
              keys.on(me, part),
              values.on(me, part),
              0,
              new Step.Partial(output.on(me), lse.on(me)),
              false);
          p.after(comm, Step.NO_CHUNK, math);
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5})
  void itIsBuiltVerifiedAndChainedLikeAPlannedOne(int ranks) {
    var schedule = pushed(ranks, false).named("pushed");
    assertThat(schedule.findings()).isEmpty();
    LocalRanks.run(
        ranks,
        world -> {
          try (var planned = Pipeline.on(world).attention(SPEC).build();
              var own = Pipeline.on(world).schedule(schedule.replay()).build();
              var again =
                  Pipeline.on(world).schedule(Schedule.fromJson(schedule.toJson())).build()) {
            assertThat(own.problem()).isEqualTo(SPEC);
            assertThat(own.verify().values()).isPositive();
            again.verify();
            planned.run();
            assertThat(own.output().toFloats()).hasSameSizeAs(planned.output().toFloats());
            var expected = planned.output().toFloats();
            var got = own.output().toFloats();
            for (int i = 0; i < got.length; i++) {
              assertThat(got[i])
                  .isCloseTo(expected[i], org.assertj.core.api.Assertions.within(1e-5f));
            }
            assertThat(own.profile(2).configuration())
                .containsEntry("method", "pushed")
                .containsEntry("replayed", "true");
            Chain.of(planned, own).verify();
            try (var other = own.with(ContextParallel.allGatherKv())) {
              assertThat(other.tuning()).isEqualTo(ContextParallel.allGatherKv());
              other.verify();
            }
          }
        });
  }

  /// Returns the number of steps of rank 0 that attend to rank 1's keys, which come after its own.
  private static long laterBlocks(AttentionSpec spec, long keyPosition, boolean continued) {
    var builder = Schedule.on(spec, 2);
    var query = builder.local(Part.QUERY);
    var key = builder.local(Part.KEY);
    var value = builder.local(Part.VALUE);
    var sums = builder.local(Part.OUTPUT);
    var lse = builder.local(Part.LSE);
    var math = builder.lane("math", Lane.Role.COMPUTE);
    var sum = new Step.Partial(sums.on(0), lse.on(0));
    return builder
        .steps(
            p ->
                p.attend(
                    math,
                    1,
                    spec,
                    query.on(0),
                    0,
                    key.on(0),
                    value.on(0),
                    keyPosition,
                    sum,
                    continued))
        .steps(0)
        .size();
  }

  @Test
  void blocksThatTheMaskHidesAddNoStep() {
    int later = TOKENS / 2;
    assertThat(laterBlocks(SPEC, later, true)).isZero();
    assertThat(laterBlocks(SPEC, later - 1, true)).isOne();
    assertThat(laterBlocks(AttentionSpec.of(TOKENS, 4, 8).kvHeads(2), later, true)).isOne();
    // The first block begins the result, and the check reports positions outside of the sequence.
    assertThat(laterBlocks(SPEC, later, false)).isOne();
    assertThat(laterBlocks(SPEC, TOKENS, true)).isOne();
  }

  /// The check refuses what no run can compute; verification does not depend on the check.
  @Test
  void missingKeysAreRefusedBeforeAnyStepRuns() {
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(() -> Pipeline.on(world).schedule(pushed(2, true)).build())
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("output@1"));
  }

  @Test
  void alteredOutputFailsTheVerification() {
    var schedule = pushed(2, false);
    LocalRanks.run(
        2,
        world -> {
          try (var own = Pipeline.on(world).schedule(schedule).build()) {
            assertThatThrownBy(
                    () ->
                        own.verify(
                            null, () -> own.output().set(own.output().get(0, 0) + 0.5f, 0, 0)))
                .isInstanceOf(VerificationFailed.class)
                .hasMessageContaining("output[0, 0]");
          }
        });
  }

  @Test
  void otherTensorsAndTuningsAreRefused() {
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(
                  () -> Pipeline.on(world).attention(SPEC).overlap(Overlap.defaults()).build())
              .hasMessage(
                  "`%s` is tuned by ContextParallel but was given `%s`; try overlap(ContextParallel.ring())"
                      .formatted(SPEC, Overlap.defaults()));
          var gemm = GemmSpec.allGatherGemm(8, 8, 8);
          assertThatThrownBy(
                  () -> Pipeline.on(world).gemm(gemm).overlap(ContextParallel.ring()).build())
              .hasMessage(
                  "`%s` is tuned by Overlap but was given `%s`; try overlap(Overlap.defaults())"
                      .formatted(gemm, ContextParallel.ring()));
          assertThatThrownBy(() -> Pipeline.on(world).gemm(gemm).attention(SPEC))
              .hasMessageStartingWith("attention was set already");
          assertThatThrownBy(() -> Pipeline.on(world).attention(SPEC).scales(1, 1).build())
              .hasMessageContaining("leave them out");
          try (var attention = Pipeline.on(world).attention(SPEC).build();
              var pipe = Pipeline.on(world).gemm(gemm).build()) {
            assertThatThrownBy(attention::input)
                .hasMessage(
                    "`%s` has no input; it has output, query, key, value, lse".formatted(SPEC));
            assertThatThrownBy(pipe::query)
                .hasMessageStartingWith(
                    "`%s` has no query; it has input, weight, ".formatted(gemm));
            assertThatThrownBy(() -> attention.scales(1, 1)).hasMessageContaining("leave them out");
            assertThat(List.of(attention.tensor(Part.KEY).shape())).isNotEmpty();
          }
        });
  }
}
