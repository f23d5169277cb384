package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.PlainAttention.Expected;
import braid.PlainAttention.Inputs;
import braid.internal.selftest.AttentionOracle;
import braid.internal.selftest.Sweep;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Packing;
import braid.model.TokenLayout;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Pipeline of packed sequences with and without padding (F3), compared with the plain loops of
/// [AttentionTest]. Query, key and value of padding are NaN.
class PackedAttentionTest {
  /// Divides the tokens of a problem at random. Sequences may be empty, and may have no padding.
  static AttentionSpec packed(AttentionSpec spec, Random random) {
    int sequences = 1 + random.nextInt(6);
    var padded = new int[sequences + 1];
    for (int i = 1; i < sequences; i++) {
      padded[i] = random.nextInt(spec.sequence() + 1);
    }
    padded[sequences] = spec.sequence();
    Arrays.sort(padded);
    if (random.nextBoolean()) {
      return spec.packed(padded);
    }
    var cumulative = new int[sequences + 1];
    for (int i = 1; i <= sequences; i++) {
      int room = padded[i] - padded[i - 1];
      int padding = random.nextBoolean() ? 0 : random.nextInt(room + 1);
      cumulative[i] = cumulative[i - 1] + room - padding;
    }
    return spec.packed(cumulative, padded);
  }

  private static List<AttentionSpec> specs() {
    var specs = new ArrayList<AttentionSpec>();
    for (var layout : TokenLayout.values()) {
      var plain = AttentionSpec.of(61, 2, 4).kvHeads(1).layout(layout);
      for (var masked : List.of(plain, plain.causal(), plain.causal().window(7), plain.window(4))) {
        // A single token, an empty sequence, and borders within ranks.
        specs.add(masked.packed(0, 1, 2, 2, 23, 60, 61));
        // Padding of 3, of a sequence without tokens, none, and of 10 in the end.
        specs.add(masked.packed(new int[] {0, 5, 5, 21, 43}, new int[] {0, 8, 13, 29, 61}));
        // Ranks of padding alone.
        specs.add(masked.packed(new int[] {0, 2, 5}, new int[] {0, 41, 61}));
        specs.add(masked.packed(new int[] {0, 0}, new int[] {0, 61}));
      }
      // Several tiles of rows and of keys.
      var tiles = AttentionSpec.of(701, 1, 3).layout(layout);
      specs.add(tiles.packed(0, 300, 301, 690, 701));
      specs.add(tiles.causal().packed(new int[] {0, 300, 301, 590}, new int[] {0, 350, 390, 701}));
    }
    specs.add(AttentionSpec.of(20, 2, 4).causal().window(7).batch(3));
    specs.add(AttentionSpec.of(20, 2, 4).keys(33).causal().window(7).batch(3));
    for (var layout : TokenLayout.values()) {
      // A sequence of queries alone, one of keys alone, one with padding of both.
      var two = AttentionSpec.of(60, 2, 4).kvHeads(1).layout(layout);
      specs.add(
          two.packed(new int[] {0, 7, 7, 50}, new int[] {0, 7, 7, 60})
              .packedKeys(new int[] {0, 0, 9, 30}, new int[] {0, 4, 13, 41}));
      var chunks = two.packed(0, 25, 31, 60).packedKeys(0, 25, 80, 150).causal();
      specs.add(chunks);
      specs.add(chunks.window(8));
    }
    return specs;
  }

  /// The rows of a rank are those of each sequence, one after another.
  @Test
  void aBatchEqualsItsSequencesAlone() {
    var one = AttentionSpec.of(24, 4, 8).kvHeads(2).causal().layout(TokenLayout.ZIGZAG);
    LocalRanks.run(
        3,
        world -> {
          try (var batch = Pipeline.on(world).attention(one.batch(2)).build();
              var alone = Pipeline.on(world).attention(one).build()) {
            long rows = alone.query().shape().getFirst();
            for (int i = 0; i < 2; i++) {
              long first = i * rows;
              alone.query().copyFrom(batch.query().rows(first, rows));
              alone.key().copyFrom(batch.key().rows(first, rows));
              alone.value().copyFrom(batch.value().rows(first, rows));
              world.barrier();
              batch.run();
              alone.run();
              assertThat(batch.output().rows(first, rows).toFloats())
                  .isEqualTo(alone.output().toFloats());
              world.barrier();
            }
          }
        });
  }

  @Test
  void aBatchIsNamedByItsNumbers() {
    var batch = AttentionSpec.of(1000, 2, 4).causal().batch(4);
    assertThat(batch.toString())
        .isEqualTo(
            "attention sequence=4000 heads=2 headSize=4 fp32 causal packed=4 × 1000 per-sequence");
    assertThat(batch.columns()).containsEntry("packed", "4 × 1000");
    assertThat(batch.flops()).isEqualTo(4 * AttentionSpec.of(1000, 2, 4).causal().flops());
    assertThat(batch)
        .isEqualTo(
            AttentionSpec.of(4000, 2, 4)
                .causal()
                .packed(0, 1000, 2000, 3000, 4000)
                .layout(TokenLayout.PER_SEQUENCE));
    assertThatThrownBy(() -> batch.batch(2))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "batch repeats one sequence but there are 4 × 1000; leave packed(...) out, or"
                + " batch(2)");
    assertThatThrownBy(() -> AttentionSpec.of(1 << 20, 2, 4).batch(1 << 12))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("try batch(2047)");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void f3EveryMethodEqualsPlainLoops(int ranks) {
    var specs =
        Sweep.oneOf(2, specs()).stream()
            .filter(spec -> AttentionOracle.canDivide(spec, ranks))
            .toList();
    var inputs = specs.stream().map(spec -> Inputs.of(spec, 9)).toList();
    var expected = new ArrayList<Expected>();
    for (int i = 0; i < specs.size(); i++) {
      expected.add(Expected.of(specs.get(i), inputs.get(i)));
    }
    LocalRanks.run(
        ranks,
        world -> {
          for (int i = 0; i < specs.size(); i++) {
            for (var each : AttentionTest.METHODS) {
              var method =
                  each.splits(Math.min(each.splits(), each.mostSplits(specs.get(i), ranks)));
              try (var attention =
                  Pipeline.on(world).attention(specs.get(i)).overlap(method).build()) {
                AttentionTest.give(attention, inputs.get(i));
                world.barrier();
                attention.verify();
                AttentionTest.check(
                    attention, expected.get(i), AttentionTest.MOST_ERROR, attention.toString());
              }
            }
          }
        });
  }

  @Test
  void f3RanksOfPaddingAloneHaveResultsToo() {
    LocalRanks.run(
        4,
        world -> {
          var spec = AttentionSpec.of(16, 4, 2).causal();
          // Tokens of ranks 1 and 2 are padding; then all are.
          for (var packed :
              List.of(
                  spec.packed(new int[] {0, 3, 6}, new int[] {0, 12, 16}),
                  spec.packed(new int[] {0, 0}, new int[] {0, 16}))) {
            for (var method :
                List.of(
                    ContextParallel.ring(),
                    ContextParallel.ring().neighborToNeighbor(),
                    ContextParallel.allGatherKv(),
                    ContextParallel.ulysses(),
                    ContextParallel.twoLevel(2),
                    ContextParallel.unfused())) {
              try (var attention = Pipeline.on(world).attention(packed).overlap(method).build()) {
                attention.verify();
              }
            }
          }
        });
  }

  @Test
  void f3PaddingHasNoOutputAndNoWeight() {
    var spec =
        AttentionSpec.of(12, 1, 2).packed(new int[] {0, 3, 7}, new int[] {0, 6, 12}).scale(1);
    LocalRanks.run(
        3,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build()) {
            attention.query().fill(0);
            attention.value().fill(world.rank());
            world.barrier();
            attention.run();
            var zeros = new float[] {0, 0, 0, 0};
            float none = Float.NEGATIVE_INFINITY;
            float three = (float) Math.log(3);
            float four = (float) Math.log(4);
            // Tokens 0..3 | 4..7 | 8..11; tokens 0, 1, 2 and 6, 7, 8, 9.
            switch (world.rank()) {
              case 0 -> {
                assertThat(attention.lse().toFloats()).containsExactly(three, three, three, none);
                assertThat(attention.output().toFloats()).containsOnly(0);
              }
              case 1 -> {
                assertThat(attention.lse().toFloats()).containsExactly(none, none, four, four);
                assertThat(attention.output().toFloats())
                    .startsWith(zeros)
                    .endsWith(1.5f, 1.5f, 1.5f, 1.5f);
              }
              default -> {
                assertThat(attention.lse().toFloats()).containsExactly(four, four, none, none);
                assertThat(attention.output().toFloats())
                    .startsWith(1.5f, 1.5f, 1.5f, 1.5f)
                    .endsWith(zeros);
              }
            }
          }
        });
  }

  /// Of the tokens of other ranks, only those of sequences that cross the border are fetched.
  @Test
  void f3RanksFetchTheirOwnSequencesAlone() {
    // Ranks have 0..99, 100..199, 200..299; the last sequence but one crosses a border.
    var spec = AttentionSpec.of(300, 1, 4).packed(0, 30, 100, 180, 203, 300);
    LocalRanks.run(
        3,
        world -> {
          var forwarded = ContextParallel.ring().neighborToNeighbor();
          for (var method :
              List.of(ContextParallel.ring(), ContextParallel.allGatherKv(), forwarded)) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
              attention.verify();
              // Rank 0 is between rank 2 and rank 1 in the ring.
              int passing = method.equals(forwarded) ? 3 : 0;
              long tokens = List.of(passing, 3, 20).get(world.rank());
              assertThat(AttentionTest.copied(attention)).isEqualTo(tokens * 2 * 4 * Float.BYTES);
            }
          }
        });
  }

  @Test
  void f3PairsAreCountedAsTheyAreSeen() {
    long seed = Long.getLong("braid.seed", 17);
    var random = new Random(seed);
    for (int i = 0; i < 500; i++) {
      var spec = AttentionSpec.of(1 + random.nextInt(40), 1, 1);
      spec = random.nextBoolean() ? spec : spec.causal();
      spec = random.nextBoolean() ? spec : spec.window(1 + random.nextInt(spec.sequence()));
      spec = packed(spec, random);
      int query = random.nextInt(spec.sequence());
      int endOfQuery = query + random.nextInt(spec.sequence() - query + 1);
      int key = random.nextInt(spec.sequence());
      int endOfKey = key + random.nextInt(spec.sequence() - key + 1);
      int pairs = 0;
      long first = 0;
      long last = -1;
      for (int q = 0; q < spec.sequence(); q++) {
        assertThat(spec.firstSeen(q)).isGreaterThanOrEqualTo(first);
        assertThat(spec.lastSeen(q)).isGreaterThanOrEqualTo(last);
        first = spec.firstSeen(q);
        last = spec.lastSeen(q);
        for (int k = key; k < endOfKey; k++) {
          pairs += q >= query && q < endOfQuery && first <= k && k <= last ? 1 : 0;
        }
      }
      assertThat(spec.pairs(query, endOfQuery, key, endOfKey))
          .as("seed %d: %s", seed, spec)
          .isEqualTo(pairs);
    }
    var large = AttentionSpec.of(1 << 30, 1, 1);
    assertThat(large.flops()).isEqualTo(0x1p62);
    assertThat(large.causal().window(1 << 10).flops()).isEqualTo(0x1p42 - 4.0 * 1023 * 512);
    assertThat(large.window(1 << 10).flops()).isEqualTo(2 * (0x1p42 - 4.0 * 1023 * 512) - 0x1p32);
  }

  @Test
  void f3ATableShowsPackedSequencesInShort() {
    var spec = AttentionSpec.of(20, 1, 4).packed(0, 3, 20);
    assertThat(spec.toString()).contains(" packed=2 sequences #");
    assertThat(spec.columns().get("packed")).startsWith("2 sequences #");
    assertThat(spec.packing()).isEqualTo(new Packing(List.of(0, 3, 20), List.of(0, 3, 20)));
    // As many sequences of other lengths are another problem.
    assertThat(spec.packed(0, 4, 20).columns()).isNotEqualTo(spec.columns());
    assertThat(spec.packed(new int[] {0, 3, 15}, new int[] {0, 3, 20}).toString())
        .contains(" packed=2 sequences, 5 padding #");
    assertThat(spec.packed(0, 20)).isEqualTo(AttentionSpec.of(20, 1, 4));
    assertThat(Schedule.of(spec, ContextParallel.ring(), 2).findings()).isEmpty();
  }

  @Test
  void f3RanksThatPackDifferentlyAreRefused() {
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world)
                            .attention(AttentionSpec.of(20, 1, 4).packed(0, 3 + world.rank(), 20))
                            .build())
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("packed=2 sequences #"));
  }

  @Test
  void f3WhatCannotBePackedIsRefusedInOneLine() {
    var spec = AttentionSpec.of(20, 2, 4);
    assertThatThrownBy(() -> spec.packed())
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "cumulative lengths must be 0 and the end of each sequence but were []; for example 0,"
                + " 5, 12");
    assertThatThrownBy(() -> spec.packed(3, 20))
        .hasMessage("cumulative lengths must begin at 0 but begin at 3; put 0 before them");
    assertThatThrownBy(() -> spec.packed(0, 12, 7, 20))
        .hasMessage(
            "cumulative lengths must not fall but number 2 is 7 after 12; give sums of lengths,"
                + " such as 0, 5, 12 for sequences of 5 and 7");
    assertThatThrownBy(() -> spec.packed(0, 12, 19))
        .hasMessage(
            "cumulative lengths must end at the sequence of 20 tokens but end at 19; try"
                + " AttentionSpec.of(19, 2, 4)");
    assertThatThrownBy(() -> spec.packed(new int[] {0, 4, 9}, new int[] {0, 8, 21}))
        .hasMessage(
            "padded offsets must end at the sequence of 20 tokens but end at 21; try"
                + " AttentionSpec.of(21, 2, 4)");
    assertThatThrownBy(() -> spec.packed(new int[] {0, 4, 9}, new int[] {0, 20}))
        .hasMessage(
            "padded offsets must be as many as cumulative lengths, 3, but were 2; give both of the"
                + " same sequences");
    assertThatThrownBy(() -> spec.packed(new int[] {0, 4, 9}, new int[] {0, 16, 20}))
        .hasMessage(
            "padded offsets must have room for each sequence but sequence 1 has 5 tokens and room"
                + " for 4; try padded offset 21 instead of 20");
    assertThatThrownBy(() -> spec.packed(new int[] {0, 9}, new int[] {0, 8, 4}))
        .hasMessageStartingWith("padded offsets must not fall but number 2 is 4 after 8");
  }

  /// Counts the steps that add or round, of sequences within ranks and across them.
  @Test
  void f3ResultsOfOneBlockAreWrittenAtOnce() {
    var plain = AttentionSpec.of(64, 4, 8).kvHeads(2).causal().dtype(DType.BF16);
    var within = plain.packed(0, 10, 32, 40, 64);
    var across = plain.packed(0, 10, 40, 64);
    for (var method : List.of(ContextParallel.ring(), ContextParallel.unfused())) {
      for (int rank = 0; rank < 2; rank++) {
        assertThat(sums(Schedule.of(within, method, 2), rank)).isZero();
        assertThat(sums(Schedule.of(within.backward(), method, 2), rank)).isZero();
      }
      // The last block of the sequence across both writes its output. Rank 1 rounds its query's
      // gradient. Rank 0 adds and rounds those of key and value.
      assertThat(sums(Schedule.of(across, method, 2), 0)).isZero();
      assertThat(sums(Schedule.of(across, method, 2), 1)).isZero();
      assertThat(sums(Schedule.of(across.backward(), method, 2), 0)).isEqualTo(4);
      assertThat(sums(Schedule.of(across.backward(), method, 2), 1)).isEqualTo(1);
    }
    assertThat(sums(Schedule.of(plain.backward(), ContextParallel.ulysses(), 2), 0)).isZero();
  }

  /// Rank 0 holds tokens 0 to 15, a sequence, and 48 to 63, which nobody else sees but which see
  /// all of the second sequence. Rank 1 holds the tokens between.
  @Test
  void f3ARankWritesOneRunAtOnceAndSumsTheOther() {
    var spec =
        AttentionSpec.of(64, 4, 8)
            .kvHeads(2)
            .causal()
            .layout(TokenLayout.ZIGZAG)
            .dtype(DType.BF16)
            .packed(0, 16, 64);
    for (var method :
        List.of(
            ContextParallel.ring(),
            ContextParallel.ring().neighborToNeighbor(),
            ContextParallel.allGatherKv().streams(2))) {
      // Two streams have a partial result each.
      assertThat(sums(Schedule.of(spec, method, 2), 0))
          .as("%s", method)
          .isEqualTo(method.streams() - 1);
      // The two parts of rank 1 follow each other, and see no others.
      assertThat(sums(Schedule.of(spec, method, 2), 1)).as("%s", method).isEqualTo(0);
      // The gradient of the later queries.
      assertThat(sums(Schedule.of(spec.backward(), method, 2), 0)).as("%s", method).isEqualTo(1);
      // Rank 1 adds one piece each to key and value, and rounds both.
      assertThat(sums(Schedule.of(spec.backward(), method, 2), 1)).as("%s", method).isEqualTo(4);
    }
  }

  private static long sums(Schedule schedule, int rank) {
    return schedule.steps(rank).stream()
        .filter(step -> step instanceof Step.Merge || step instanceof Step.Reduce)
        .count();
  }
}
