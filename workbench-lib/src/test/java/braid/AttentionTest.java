package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.PlainAttention.Expected;
import braid.PlainAttention.Inputs;
import braid.evidence.ProfileSet;
import braid.internal.selftest.AttentionCase;
import braid.internal.selftest.AttentionOracle;
import braid.internal.selftest.PartColumns;
import braid.internal.selftest.Sweep;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.Overlap;
import braid.model.Stage;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Tokens;
import braid.model.Transport;
import braid.model.VerificationFailed;
import braid.schedule.Part;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Attention over a divided sequence, compared with plain loops in double precision over the whole
/// sequence.
class AttentionTest {
  /// Error of fp32, relative to the largest number of a rank's output.
  static final double MOST_ERROR = 1e-5;

  private static final int RANDOM_CASES = 200;

  /// Layouts that give each rank tokens of a single sequence.
  static final List<TokenLayout> OF_ONE_SEQUENCE =
      List.of(TokenLayout.CONTIGUOUS, TokenLayout.ZIGZAG);

  private static final List<TokenLayout> LAYOUTS = List.of(TokenLayout.values());

  static final List<ContextParallel> METHODS =
      List.of(
          ContextParallel.ring(),
          ContextParallel.ring().splits(3).streams(2),
          ContextParallel.ring().splits(2).streams(2).neighborToNeighbor(),
          ContextParallel.allGatherKv(),
          ContextParallel.allGatherKv().splits(3).streams(3),
          ContextParallel.unfused());

  static void give(Pipeline attention, Inputs inputs) {
    var spec = (AttentionSpec) attention.problem();
    var mine = PlainAttention.positions(spec, attention.group().size(), attention.group().rank());
    int kv = spec.kvHeads() * spec.headSize();
    PartColumns.of(spec, Part.QUERY)
        .store(
            attention, PlainAttention.rows(inputs.query(), mine, spec.heads() * spec.headSize()));
    var keys = PlainAttention.keys(spec, attention.group().size(), attention.group().rank());
    PartColumns.of(spec, Part.KEY).store(attention, PlainAttention.rows(inputs.key(), keys, kv));
    PartColumns.of(spec, Part.VALUE)
        .store(attention, PlainAttention.rows(inputs.value(), keys, kv));
  }

  static void check(Pipeline attention, Expected expected, double mostError, String description) {
    var spec = (AttentionSpec) attention.problem();
    var mine = PlainAttention.positions(spec, attention.group().size(), attention.group().rank());
    compare(
        attention.output().toFloats(),
        expected.output(),
        mine,
        spec.heads() * spec.headSize(),
        mostError,
        "output of " + description);
    compare(
        attention.lse().toFloats(),
        expected.lse(),
        mine,
        spec.heads(),
        MOST_ERROR,
        "lse of " + description);
  }

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
      if (Double.isInfinite(wanted)) {
        assertThat(got[i]).as(description).isEqualTo((float) wanted);
        continue;
      }
      largest = Math.max(largest, Math.abs(wanted));
      // A NaN is larger than any error.
      error = Math.max(error, Math.abs(got[i] - wanted));
    }
    assertThat(error / Math.max(largest, 1e-3)).as(description).isLessThanOrEqualTo(mostError);
  }

  static List<AttentionSpec> specs() {
    var specs = new ArrayList<AttentionSpec>();
    for (var layout : OF_ONE_SEQUENCE) {
      var plain = AttentionSpec.of(61, 2, 8).layout(layout);
      specs.add(plain);
      specs.add(plain.causal());
      specs.add(plain.causal().window(9));
      specs.add(plain.causal().window(1));
      specs.add(plain.window(9));
      specs.add(plain.window(1));
      specs.add(AttentionSpec.of(60, 6, 4).kvHeads(2).causal().layout(layout));
      specs.add(AttentionSpec.of(60, 4, 5).kvHeads(1).scale(0.7f).layout(layout));
      // Several tiles of rows and of keys.
      specs.add(AttentionSpec.of(701, 1, 3).causal().layout(layout));
      specs.add(AttentionSpec.of(701, 1, 3).causal().window(300).layout(layout));
      specs.add(AttentionSpec.of(701, 1, 3).window(300).layout(layout));
    }
    var striped = AttentionSpec.of(61, 2, 8).layout(TokenLayout.STRIPED);
    specs.add(striped);
    specs.add(striped.causal());
    specs.add(striped.kvHeads(1).causal());
    specs.add(striped.causal().window(9));
    specs.add(striped.causal().window(1));
    specs.add(striped.window(9));
    specs.add(striped.window(2));
    specs.add(AttentionSpec.of(701, 1, 3).causal().layout(TokenLayout.STRIPED));
    specs.add(AttentionSpec.of(701, 1, 3).window(300).layout(TokenLayout.STRIPED));
    // Chunks of a prompt, and attention to another sequence.
    for (var layout : List.of(TokenLayout.CONTIGUOUS, TokenLayout.ZIGZAG, TokenLayout.STRIPED)) {
      specs.add(AttentionSpec.of(31, 2, 8).keys(90).causal().layout(layout));
      specs.add(AttentionSpec.of(90, 2, 8).keys(31).layout(layout));
    }
    specs.add(AttentionSpec.of(20, 4, 4).kvHeads(2).keys(77).causal().window(9));
    specs.add(AttentionSpec.of(300, 1, 3).keys(701).causal().window(200).fused(Fused.KV));
    specs.add(AttentionSpec.of(50, 2, 4).keys(30).window(6).layout(TokenLayout.ZIGZAG));
    specs.add(AttentionSpec.of(50, 2, 4).keys(30).window(6).layout(TokenLayout.STRIPED));
    specs.add(
        AttentionSpec.of(30, 4, 4)
            .kvHeads(2)
            .keys(77)
            .causal()
            .window(9)
            .layout(TokenLayout.STRIPED));
    // Many short pieces, and one of several tokens in each split.
    specs.add(
        AttentionSpec.of(150, 2, 4)
            .kvHeads(1)
            .causal()
            .packed(0, 11, 21, 30, 70, 80, 90, 93, 105, 116, 127, 138, 150)
            .layout(TokenLayout.PER_SEQUENCE));
    for (var fused : List.of(Fused.KV, Fused.QKV)) {
      var zigzag = AttentionSpec.of(60, 6, 4).kvHeads(2).layout(TokenLayout.ZIGZAG).fused(fused);
      specs.add(zigzag);
      specs.add(zigzag.causal());
      specs.add(zigzag.causal().window(9).layout(TokenLayout.CONTIGUOUS));
      specs.add(zigzag.causal().layout(TokenLayout.STRIPED));
      specs.add(
          zigzag
              .window(6)
              .packed(new int[] {0, 20, 37}, new int[] {0, 23, 60})
              .layout(TokenLayout.STRIPED));
      specs.add(
          zigzag
              .causal()
              .packed(new int[] {0, 20, 37}, new int[] {0, 23, 60})
              .layout(TokenLayout.PER_SEQUENCE));
    }
    return specs;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void b1EveryMethodEqualsPlainLoops(int ranks) {
    var specs = Sweep.oneOf(2, specs());
    var inputs = specs.stream().map(spec -> Inputs.of(spec, 7)).toList();
    var expected = new ArrayList<Expected>();
    for (int i = 0; i < inputs.size(); i++) {
      expected.add(Expected.of(specs.get(i), inputs.get(i)));
    }
    LocalRanks.run(
        ranks,
        world -> {
          for (int i = 0; i < inputs.size(); i++) {
            for (var method : METHODS) {
              try (var attention =
                  Pipeline.on(world).attention(specs.get(i)).overlap(method).build()) {
                give(attention, inputs.get(i));
                world.barrier();
                attention.run();
                check(attention, expected.get(i), MOST_ERROR, attention.toString());
                attention.verify();
              }
            }
          }
        });
  }

  /// Random problems on 1 to 5 ranks; -Dbraid.seed repeats them.
  @Test
  void b1RandomCasesEqualPlainLoops() {
    long seed = Long.getLong("braid.seed", 11);
    var random = new Random(seed);
    var cases = new ArrayList<RandomCase>();
    for (int i = 0; i < RANDOM_CASES; i++) {
      cases.add(RandomCase.of(random));
    }
    for (int ranks = 1; ranks <= 5; ranks++) {
      int size = ranks;
      var own = cases.stream().filter(each -> each.ranks() == size).toList();
      var inputs = own.stream().map(each -> Inputs.of(each.spec(), seed)).toList();
      var expected =
          own.stream().map(each -> Expected.of(each.spec(), Inputs.of(each.spec(), seed))).toList();
      LocalRanks.run(
          ranks,
          world -> {
            for (int i = 0; i < own.size(); i++) {
              var each = own.get(i);
              try (var attention =
                  Pipeline.on(world).attention(each.spec()).overlap(each.method()).build()) {
                give(attention, inputs.get(i));
                world.barrier();
                attention.verify();
                check(attention, expected.get(i), each.mostError(), "seed " + seed + ": " + each);
              }
            }
          });
    }
  }

  /// A NaN or infinity reaches the rows that see its token, and no others: a weight of 0 times NaN
  /// is NaN, so it must not be multiplied.
  @ParameterizedTest
  @EnumSource(names = {"FP32", "BF16"})
  void anUnseenNanReachesNoRow(DType dtype) {
    var spec = AttentionSpec.of(150, 4, 8).kvHeads(2).causal().window(60).dtype(dtype);
    var inputs = Inputs.of(spec, 8);
    int columns = spec.kvHeads() * spec.headSize();
    int position = 77;
    inputs.value()[position * columns + 3] = Float.NaN;
    inputs.value()[position * columns + 5] = Float.POSITIVE_INFINITY;
    inputs.key()[position * columns + 9] = Float.NaN;
    var expected = Expected.of(spec, inputs).output();
    LocalRanks.run(
        3,
        world -> {
          for (var method : METHODS) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build();
                var backward = Pipeline.on(world).overlap(method).backward(attention).build()) {
              give(attention, inputs);
              backward.outputGradient().fill(1);
              world.barrier();
              attention.run();
              backward.run();
              var mine = PlainAttention.positions(spec, 3, world.rank());
              var output = attention.output().toFloats();
              var gradient = backward.queryGradient().toFloats();
              int width = output.length / mine.size();
              for (int i = 0; i < output.length; i++) {
                int row = mine.get(i / width);
                if (row >= position && row < position + 60) {
                  assertThat(Float.isNaN(output[i]) || i % width != 3).isTrue();
                } else {
                  assertThat(output[i])
                      .isCloseTo(
                          (float) expected[row * width + i % width],
                          within((float) (1e-4 + 2 * dtype.epsilon())));
                  assertThat(gradient[i]).isFinite();
                }
              }
              world.barrier();
            }
          }
        });
  }

  record RandomCase(AttentionSpec spec, ContextParallel method, int ranks) {
    static RandomCase of(Random random) {
      int ranks = 1 + random.nextInt(5);
      int kvHeads = 1 + random.nextInt(3);
      var spec =
          AttentionSpec.of(
                  ranks + random.nextInt(random.nextBoolean() ? 20 : 150),
                  kvHeads * (1 + random.nextInt(3)),
                  1 + random.nextInt(16))
              .kvHeads(kvHeads)
              .layout(OF_ONE_SEQUENCE.get(random.nextInt(2)))
              .fused(List.of(Fused.values()).get(random.nextInt(3)))
              .dtype(
                  List.of(DType.FP32, DType.FP32, DType.BF16, DType.FP16).get(random.nextInt(4)));
      if (random.nextInt(4) == 0) {
        spec = spec.exchanged(DType.FP8_E4M3);
      }
      spec = random.nextBoolean() ? spec : spec.causal();
      spec = random.nextInt(3) > 0 ? spec : spec.window(1 + random.nextInt(spec.sequence()));
      if (random.nextBoolean()) {
        spec = PackedAttentionTest.packed(spec, random);
        var divided = spec.layout(LAYOUTS.get(random.nextInt(LAYOUTS.size())));
        spec = AttentionOracle.canDivide(divided, ranks) ? divided : spec;
      }
      if (random.nextInt(3) == 0) {
        var separate = AttentionCase.withKeys(random, spec, true);
        spec = AttentionOracle.canDivide(separate, ranks) ? separate : spec;
      }
      int kind = random.nextInt(7);
      if (kind > 4) {
        var method = kind == 5 || ranks < 4 ? ContextParallel.ulysses() : halves(ranks);
        int sharing = method.headRanks(ranks);
        spec =
            AttentionOracle.canDivide(spec, method, ranks) ? spec : spec.layout(TokenLayout.ZIGZAG);
        int splits = List.of(1, kvHeads).get(random.nextInt(2));
        method =
            method.splits(splits).streams(Math.min(splits, Overlap.MAX_STREAMS)).over(any(random));
        spec = spec.heads(spec.heads() * sharing, kvHeads * sharing);
        return new RandomCase(spec, random.nextBoolean() ? method : method.replay(), ranks);
      }
      var method =
          switch (kind) {
            case 0 -> ContextParallel.unfused();
            case 1, 2 -> tuned(ContextParallel.allGatherKv(), spec, ranks, random);
            case 3 -> tuned(ContextParallel.ring(), spec, ranks, random);
            default -> tuned(ContextParallel.ring().neighborToNeighbor(), spec, ranks, random);
          };
      return new RandomCase(spec, random.nextBoolean() ? method : method.replay(), ranks);
    }

    private static ContextParallel halves(int ranks) {
      return ContextParallel.twoLevel(ranks % 2 == 0 ? 2 : ranks);
    }

    private static ContextParallel tuned(
        ContextParallel method, AttentionSpec spec, int ranks, Random random) {
      int most = Math.min(5, method.mostSplits(spec, ranks));
      var tuned = method.splits(1 + random.nextInt(most)).streams(1 + random.nextInt(3));
      return tuned.over(any(random));
    }

    private static Transport any(Random random) {
      return random.nextInt(4) > 0 ? Transport.COPY_ENGINE : Transport.WORKERS;
    }

    /// A 16-bit output is rounded once, by half a step.
    double mostError() {
      return spec.dtype() == DType.FP32 ? MOST_ERROR : MOST_ERROR + spec.dtype().epsilon() / 2;
    }
  }

  /// Iterations in flight and replayed ones, with inputs that change between them.
  @Test
  void attentionRunsRepeatedlyWithInputsThatChange() {
    var spec = AttentionSpec.of(50, 6, 8).causal().layout(TokenLayout.ZIGZAG);
    LocalRanks.run(
        3,
        world -> {
          for (var method :
              List.of(
                  ContextParallel.ring().splits(2),
                  ContextParallel.ring().streams(2).replay(),
                  ContextParallel.ring().splits(2).neighborToNeighbor().replay(),
                  ContextParallel.ulysses(),
                  ContextParallel.ulysses().splits(2).streams(2).replay(),
                  ContextParallel.allGatherKv().splits(2).replay())) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
              for (int round = 0; round < 3; round++) {
                var inputs = Inputs.of(spec, round);
                give(attention, inputs);
                world.barrier();
                assertThat(attention.time(6, round == 1 ? Timing.LATENCY : Timing.BACK_TO_BACK))
                    .hasSize(6);
                check(attention, Expected.of(spec, inputs), MOST_ERROR, attention.toString());
                world.barrier();
              }
            }
          }
        });
  }

  @Test
  void b3ZigzagDividesCausalWorkEqually() {
    for (int ranks : new int[] {1, 2, 3, 8}) {
      var spec = AttentionSpec.of(64 * ranks, 1, 1).causal();
      for (var layout : OF_ONE_SEQUENCE) {
        var pairs = new ArrayList<Long>();
        for (int rank = 0; rank < ranks; rank++) {
          pairs.add(
              PlainAttention.positions(spec.layout(layout), ranks, rank).stream()
                  .mapToLong(position -> position + 1)
                  .sum());
          assertThat(Tokens.of(spec.layout(layout), ranks, rank).count()).isEqualTo(64);
        }
        assertThat(pairs.stream().distinct().count())
            .isEqualTo(layout == TokenLayout.ZIGZAG ? 1 : ranks);
      }
    }
  }

  @Test
  void onlyTheBorderOfAWindowIsExchanged() {
    LocalRanks.run(
        4,
        world -> {
          var spec = AttentionSpec.of(400, 1, 4).causal().window(11);
          for (var method :
              List.of(ContextParallel.ring(), ContextParallel.ring().neighborToNeighbor())) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
              attention.verify();
              // 10 keys and 10 values of the rank before.
              assertThat(copied(attention))
                  .isEqualTo(world.rank() == 0 ? 0 : 2 * 10 * 4 * Float.BYTES);
            }
          }
        });
  }

  /// Returns the bytes that a rank copies from others in an iteration.
  static long copied(Pipeline attention) {
    return attention.profile(1).spans().stream()
        .filter(span -> span.stage() == Stage.COPY)
        .mapToLong(span -> span.bytes())
        .sum();
  }

  @Test
  void aProfileNamesMethodAndChunks() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(64, 2, 8).kvHeads(1);
          var method = ContextParallel.ring().splits(2);
          try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
            var profile = attention.profile(2);
            assertThat(profile.configuration())
                .containsEntry("pattern", "attention")
                .containsEntry("method", "ring")
                .containsEntry("splits", "2")
                .containsEntry("kv heads", "1");
            var computed =
                profile.spans().stream().filter(span -> span.stage() == Stage.ATTENTION).toList();
            assertThat(computed).extracting(span -> span.chunk()).contains(0, 1, 2);
            assertThat(computed.stream().mapToLong(span -> span.flops()).sum())
                .isEqualTo(2 * Math.round(spec.flops() / 2));
          }
        });
  }

  /// A rank has its own and two fetched chunks, which take turns on two streams; -1 is the merge.
  @Test
  void f2ChunksTakeTurnsOnTwoStreams() {
    var spec = AttentionSpec.of(48, 2, 8);
    LocalRanks.run(
        3,
        world -> {
          for (int streams : new int[] {1, 2}) {
            var method = ContextParallel.ring().streams(streams);
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
              attention.verify();
              var chunks = new TreeMap<String, Set<Integer>>();
              for (var span : attention.profile(1).spans()) {
                if (span.stage() == Stage.ATTENTION) {
                  chunks.computeIfAbsent(span.stream(), lane -> new TreeSet<>()).add(span.chunk());
                }
              }
              assertThat(chunks)
                  .isEqualTo(
                      streams == 1
                          ? Map.of("attend-0", Set.of(0, 1, 2))
                          : Map.of("attend-0", Set.of(-1, 0, 2), "attend-1", Set.of(1)));
            }
          }
        });
  }

  @Test
  void tensorsMayBeTheCallers() {
    tensorsMayBeTheCallers(ContextParallel.ring());
    tensorsMayBeTheCallers(ContextParallel.ulysses());
  }

  private static void tensorsMayBeTheCallers(ContextParallel method) {
    var spec = AttentionSpec.of(41, 6, 4).kvHeads(3).causal().layout(TokenLayout.ZIGZAG);
    var inputs = Inputs.of(spec, 3);
    var expected = Expected.of(spec, inputs);
    LocalRanks.run(
        3,
        world -> {
          long rows = Tokens.of(spec, 3, world.rank()).count();
          try (var query = LocalTensor.on(world).shape(rows, 24).allocate();
              var key = LocalTensor.on(world).shape(rows, 12).allocate();
              var value = SymmetricTensor.on(world).shape(14, 12).name("value").allocate();
              var output = LocalTensor.on(world).shape(rows, 24).allocate();
              var lse = LocalTensor.on(world).shape(rows, 6).allocate();
              var attention =
                  Pipeline.on(world)
                      .attention(spec)
                      .overlap(method)
                      .query(query)
                      .key(key)
                      .value(value)
                      .output(output)
                      .lse(lse)
                      .build()) {
            give(attention, inputs);
            world.barrier();
            attention.verify();
            check(attention, expected, MOST_ERROR, attention.toString());
            assertThat(output.view().toFloats()).isEqualTo(attention.output().toFloats());
            assertThat(attention.schedule().findings()).isEmpty();
          }
        });
  }

  /// Ranks that are processes read each other's keys and values in shared memory.
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
        for (var spec : specs()) {
          for (var method : METHODS) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
              attention.verify();
            }
          }
        }
        for (var spec : UlyssesTest.specs(6)) {
          var method = ContextParallel.ulysses().splits(2);
          try (var attention = Pipeline.on(world).attention(spec).overlap(method).build()) {
            attention.verify();
          }
        }
        System.out.println("verified");
      }
    }
  }

  /// A second attention of the same problem reuses plan and memory, and the views of the first end.
  @Test
  void aClosedAttentionIsReused() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(20, 1, 4).causal();
          var first = Pipeline.on(world).attention(spec).build();
          var output = first.output();
          first.close();
          first.close();
          var before = world.counters().get("rendezvous");
          try (var second = Pipeline.on(world).attention(spec).build()) {
            second.verify();
            assertThat(world.counters().get("rendezvous")).isEqualTo(before);
            assertThatThrownBy(output::toFloats)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("is closed; build it again");
            assertThatThrownBy(first::run).hasMessageContaining("is closed; build it again");
          }
        });
  }

  @Test
  void scoresOfAnySizeAreFinite() {
    var spec = AttentionSpec.of(9, 1, 2).scale(1);
    LocalRanks.run(
        3,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build()) {
            attention.query().fill(1000);
            attention.key().fill(world.rank() == 1 ? 10 : -10);
            attention.value().fill(world.rank());
            world.barrier();
            attention.verify();
            assertThat(attention.output().toFloats()).containsOnly(1);
            assertThat(attention.lse().toFloats()[0]).isCloseTo(20_001.1f, within(0.01f));
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
    LocalRanks.run(
        2,
        world -> {
          try (var attention = Pipeline.on(world).attention(spec).build()) {
            give(attention, inputs);
            world.barrier();
            attention.verify();
            for (int window : new int[] {23, 25}) {
              var other = Expected.of(spec.window(window), inputs);
              refuses(
                  attention,
                  () -> attention.output().copyFrom(mine(attention, other.output())),
                  "output[");
              refuses(
                  attention, () -> attention.lse().copyFrom(mine(attention, other.lse())), "lse[");
            }
            var size = Math.max(dtype.epsilon(), 1e-4f);
            for (int row : new int[] {0, 20, 47}) {
              refuses(
                  attention,
                  () ->
                      attention.output().set(attention.output().get(row, 3) + (float) size, row, 3),
                  "output[%d, 3] must be ".formatted(row));
              refuses(
                  attention,
                  () -> attention.lse().set(Float.NaN, row, 1),
                  "lse[%d, 1]".formatted(row));
            }
            assertThatThrownBy(() -> attention.verify(0, 0)).isInstanceOf(VerificationFailed.class);
            attention.verify(1e-2, 1e-2);
          }
        });
  }

  /// Plants an error on rank 1, which both ranks report.
  private static void refuses(Pipeline attention, Runnable planted, String message) {
    int rank = attention.group().rank();
    assertThatThrownBy(
            () ->
                attention.verify(
                    null,
                    () -> {
                      if (rank == 1) {
                        planted.run();
                      }
                    }))
        .isInstanceOf(VerificationFailed.class)
        .hasMessageStartingWith("rank 1: " + message)
        .hasMessageContaining("of position ");
  }

  private static float[] mine(Pipeline attention, double[] all) {
    var spec = (AttentionSpec) attention.problem();
    var positions =
        PlainAttention.positions(spec, attention.group().size(), attention.group().rank());
    int columns = all.length / spec.sequence();
    var mine = new float[positions.size() * columns];
    for (int i = 0; i < mine.length; i++) {
      mine[i] = (float) all[positions.get(i / columns) * columns + i % columns];
    }
    return mine;
  }

  /// The flops of all ranks are those of the problem, and zigzag ends earlier than contiguous.
  @Test
  void aScheduleIsSimulated() {
    var spec = AttentionSpec.of(1 << 16, 32, 128).kvHeads(8).causal().dtype(DType.BF16);
    for (var method : METHODS) {
      var contiguous = Schedule.of(spec, method, 8).simulate(Machine.h200x8());
      var zigzag =
          Schedule.of(spec.layout(TokenLayout.ZIGZAG), method, 8).simulate(Machine.h200x8());
      for (var profiles : List.of(contiguous, zigzag)) {
        assertThat(
                profiles.profiles().stream()
                    .flatMap(profile -> profile.spans().stream())
                    .mapToDouble(span -> span.flops())
                    .sum())
            .isEqualTo(spec.flops());
      }
      assertThat(slowest(zigzag)).as("%s", method).isLessThan(0.8 * slowest(contiguous));
      var chunk = AttentionSpec.of(1 << 12, 32, 128).keys(1 << 16).causal().dtype(DType.BF16);
      assertThat(
              Schedule.of(chunk, method, 8).simulate(Machine.h200x8()).profiles().stream()
                  .flatMap(profile -> profile.spans().stream())
                  .mapToDouble(span -> span.flops())
                  .sum())
          .isEqualTo(chunk.flops());
    }
  }

  static double slowest(ProfileSet profiles) {
    return profiles.profiles().stream()
        .mapToLong(profile -> profile.iterationNanos().getFirst())
        .max()
        .orElseThrow();
  }

  @Test
  void impossibleProblemsAreRefusedInOneLine() {
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).kvHeads(4))
        .isInstanceOf(BraidException.class)
        .hasMessage("kvHeads must divide heads but were 4 of 6; try kvHeads(3)");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).window(-1))
        .hasMessage("window must be 1 or more positions, or 0 for no limit, but was -1");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).keys(0))
        .hasMessage("keys must be 1 or more but was 0; give the size of the whole problem");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).causal().keys(5))
        .hasMessage(
            "causal attention aligns the last query with the last key, so each sequence must have"
                + " as many keys as queries or more, but sequence 0 has 8 queries and 5 keys; leave"
                + " causal() out");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).fused(Fused.QKV).keys(9))
        .hasMessage(
            "fused qkv has a row for each token with query, key and value, but queries and keys"
                + " differ in number: 8 queries and 9 keys; take fused(KV)");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).packed(0, 3, 8).keys(9))
        .hasMessage(
            "queries and keys must have as many sequences but have 2 and 1; call packed(...) and"
                + " then packedKeys(...) with a length for each sequence, 0 if it has none");
    assertThatThrownBy(() -> AttentionSpec.of(0, 6, 4))
        .hasMessage("sequence must be 1 or more but was 0; give the size of the whole problem");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).scale(Float.NaN))
        .hasMessage(
            "scale must be more than 0 and finite but was NaN; leave it out for 1 / sqrt(headSize)"
                + " = 0.5");
    assertThatThrownBy(() -> AttentionSpec.of(8, 6, 4).dtype(DType.FP8_E4M3))
        .hasMessage("attention is in fp32, bf16 or fp16 but dtype was fp8_e4m3; try dtype(BF16)");
    assertThatThrownBy(() -> ContextParallel.unfused().splits(2))
        .hasMessage(
            "unfused has 1 split and 1 stream but was given 2 and 1; take ring() to overlap");
    assertThatThrownBy(() -> ContextParallel.allGatherKv().neighborToNeighbor())
        .hasMessage(
            "only ring exchanges from neighbor to neighbor but the method was all-gather-kv; try"
                + " ring().neighborToNeighbor()");
    assertThatThrownBy(() -> ContextParallel.ring().workers(2))
        .hasMessage("workers must be 0 over copy_engine but were 2; call over(WORKERS) first");
  }

  /// A chunk of a prompt has the output that its rows have in the whole prompt.
  @Test
  void aChunkOfAPromptEqualsTheRowsOfTheWhole() {
    var whole = AttentionSpec.of(40, 4, 8).kvHeads(2).causal();
    var inputs = Inputs.of(whole, 3);
    var expected = Expected.of(whole, inputs);
    int width = 4 * 8;
    var chunk = AttentionSpec.of(10, 4, 8).kvHeads(2).keys(40).causal();
    var query = Arrays.copyOfRange(inputs.query(), 30 * width, 40 * width);
    var output = Arrays.copyOfRange(expected.output(), 30 * width, 40 * width);
    var lse = Arrays.copyOfRange(expected.lse(), 30 * 4, 40 * 4);
    LocalRanks.run(
        2,
        world -> {
          try (var attention = Pipeline.on(world).attention(chunk).build()) {
            give(attention, new Inputs(query, inputs.key(), inputs.value()));
            world.barrier();
            attention.verify();
            check(attention, new Expected(output, lse), MOST_ERROR, attention.toString());
            assertThat(attention.key().shape()).containsExactly(20L, 16L);
            assertThat(attention.query().shape()).containsExactly(5L, 32L);
          }
        });
  }

  @Test
  void separateKeysAreNamed() {
    var spec = AttentionSpec.of(10, 4, 8).keys(40);
    assertThat(spec.toString())
        .isEqualTo("attention sequence=10 keys=40 heads=4 headSize=8 fp32 contiguous");
    assertThat(spec.columns()).containsEntry("sequence", "10").containsEntry("keys", "40");
    assertThat(spec.flops()).isEqualTo(4.0 * 10 * 40 * 4 * 8);
    assertThat(spec.causal().flops()).isEqualTo(4.0 * (10 * 30 + 10 * 11 / 2) * 4 * 8);
    assertThat(spec.keys(10)).isEqualTo(AttentionSpec.of(10, 4, 8));
    assertThat(spec.batch(3))
        .isEqualTo(
            AttentionSpec.of(30, 4, 8)
                .packed(0, 10, 20, 30)
                .packedKeys(0, 40, 80, 120)
                .layout(TokenLayout.PER_SEQUENCE));
    assertThat(spec.batch(3).toString()).contains(" packed=3 × 10 packedKeys=3 × 40 ");
    assertThat(spec.batch(3).columns()).containsEntry("packed keys", "3 × 40");
    // A cut sequence keeps its ratio of keys.
    assertThat(spec.first(5)).isEqualTo(AttentionSpec.of(5, 4, 8).keys(20));
    assertThat(spec.batch(3).first(15))
        .isEqualTo(
            AttentionSpec.of(15, 4, 8)
                .packed(0, 10, 15)
                .packedKeys(0, 40, 60)
                .layout(TokenLayout.PER_SEQUENCE));
  }

  @Test
  void aTuningThatAGroupCannotRunIsRefusedBefore() {
    LocalRanks.run(
        3,
        world -> {
          assertThatThrownBy(() -> Pipeline.on(world).build())
              .hasMessage(
                  "the problem is missing; call gemm(GemmSpec.allGatherGemm(m, n, k)) or"
                      + " attention(AttentionSpec.of(sequence, heads, headSize)) before build()");
          assertThatThrownBy(() -> Pipeline.on(world).attention(AttentionSpec.of(2, 1, 1)).build())
              .hasMessage(
                  "sequence must be 3 or more (a token for each rank of group `world`) but was 2");
          assertThatThrownBy(
                  () -> Pipeline.on(world).attention(AttentionSpec.of(9, 1, 1).keys(2)).build())
              .hasMessage(
                  "keys must be 3 or more (a key for each rank of group `world`) but was 2");
          var half = AttentionSpec.of(37, 3, 4).layout(TokenLayout.ZIGZAG);
          for (var method :
              List.of(
                  ContextParallel.ring(),
                  ContextParallel.ring().neighborToNeighbor(),
                  ContextParallel.allGatherKv())) {
            refusesSplits(
                world,
                AttentionSpec.of(12, 1, 4),
                method.splits(1000),
                "splits must be 1..4 (tokens of the smallest shard) but was 1000; try splits(4)");
            refusesSplits(
                world,
                half,
                method.splits(7),
                "splits must be 1..6 (tokens of the smallest half shard) but was 7; try splits(6)");
            Pipeline.on(world).attention(half).overlap(method.splits(6)).build().close();
          }
          var alone = world.subset("alone-" + world.rank(), world.rank());
          refusesSplits(
              alone,
              half,
              ContextParallel.ulysses().splits(4),
              "splits must be 1..3 (kvHeads of each rank) but was 4; try splits(3)");
          refusesSplits(
              world,
              half,
              ContextParallel.ulysses().splits(2),
              "splits of ulysses must divide the 1 kvHeads of each rank but were 2; try splits(1)");
          try (var other = LocalTensor.on(world).shape(4, 4).allocate()) {
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world)
                            .attention(AttentionSpec.of(9, 1, 4))
                            .query(other)
                            .build())
                .hasMessageContaining("must be 3x4 on rank")
                .hasMessageContaining("allocate it with shape(3, 4)");
          }
        });
  }

  /// Requires that attention and its backward pass refuse the method.
  private static void refusesSplits(
      ProcessGroup world, AttentionSpec spec, ContextParallel method, String message) {
    assertThatThrownBy(() -> Pipeline.on(world).attention(spec).overlap(method).build())
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
    try (var forward = Pipeline.on(world).attention(spec).build()) {
      assertThatThrownBy(() -> Pipeline.on(world).overlap(method).backward(forward).build())
          .isInstanceOf(BraidException.class)
          .hasMessage(message);
    }
  }
}
