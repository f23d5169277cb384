package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Study;
import braid.internal.memory.Call;
import braid.internal.rank.CallsDiffer;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Method;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks whose calls differ all get an error in that very call, and their next common call works.
class DifferingCallsTest {
  private static final int ROUNDS = 40;

  private static SymmetricTensor allocate(ProcessGroup group, long elements) {
    return SymmetricTensor.on(group).shape(elements).name("x").allocate();
  }

  /// Returns the message of the call's failure; empty if it succeeded.
  private static String failure(Runnable call) {
    try {
      call.run();
      return "";
    } catch (GroupAborted e) {
      throw new AssertionError("a consequence instead of the cause", e);
    } catch (BraidException e) {
      return String.valueOf(e.getMessage());
    }
  }

  /// Rank 0 finds a buffer of its size in the pool, the others need a new one.
  private static String refusedAllocation(ProcessGroup world) {
    return failure(() -> allocate(world, world.rank() == 0 ? 2 : 3).close());
  }

  private static void checkAllocations(ProcessGroup world) {
    for (int elements = 1; elements <= 4; elements++) {
      try (var x = allocate(world, elements)) {
        assertThat(x.all().toFloats()).hasSize(world.size() * elements).containsOnly(0);
        world.barrier();
        x.local().fill(world.rank());
        world.barrier();
        for (int rank = 0; rank < world.size(); rank++) {
          assertThat(x.on(rank).toFloats()).containsOnly(rank);
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void aRefusedAllocationFailsOnAllRanksAndTheNextWorks(int ranks) {
    var errors = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        ranks,
        world -> {
          allocate(world, 2).close();
          for (int i = 0; i < 5; i++) {
            var failure = refusedAllocation(world);
            errors.put(world.rank() + ranks * i, failure);
            checkAllocations(world);
          }
        });
    assertThat(errors)
        .hasSize(5 * ranks)
        .allSatisfy(
            (_, message) ->
                assertThat(message)
                    .startsWith("allocate `x` in group `world`: ranks must agree but rank 0 has 2 ")
                    .contains(" 3 fp32 native")
                    .endsWith("pass the same value on every rank"));
  }

  @Test
  void aRefusedAllocationFailsOnAllProcesses() throws Exception {
    for (var ended : ProcessRanks.run(3, Map.of(), OnRank.class)) {
      assertThat(ended.exitCode()).as(ended.output()).isZero();
      assertThat(ended.output().lines().toList())
          .hasSize(4)
          .allSatisfy(
              line ->
                  assertThat(line).startsWith("refused: ").contains("group `world`", "rank 0 "));
    }
  }

  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) {
      try (var world = ProcessGroup.world()) {
        allocate(world, 2).close();
        for (int i = 0; i < 3; i++) {
          System.out.println("refused: " + refusedAllocation(world));
          checkAllocations(world);
        }
        System.out.println(
            "refused: "
                + failure(
                    () -> {
                      if (world.rank() == 0) {
                        world.barrier();
                      } else {
                        allocate(world, 2).close();
                      }
                    }));
        checkAllocations(world);
      }
    }
  }

  @Test
  void aPipelineThatBrokeOffOnOneRankIsRefusedOnAllAndTheOthersGoOn() {
    var errors = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        3,
        world -> {
          var one = Pipeline.on(world).gemm(GemmSpec.gemmReduceScatter(6, 4, 6)).build();
          var other = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(6, 4, 2)).build();
          one.run();
          other.run();
          var expected = other.output().toFloats();
          assertThat(failure(world.rank() == 0 ? one::run : world::barrier))
              .contains("rank 0 called run of `gemm-reduce-scatter");
          other.output().fill(Float.NaN);
          other.run();
          assertThat(other.output().toFloats()).containsExactly(expected);
          errors.put(world.rank(), failure(one::run));
          one.close();
          other.close();
          try (var again = Pipeline.on(world).gemm(GemmSpec.gemmReduceScatter(6, 4, 6)).build()) {
            again.verify();
          }
        });
    assertThat(errors)
        .hasSize(3)
        .allSatisfy(
            (_, message) -> assertThat(message).contains("was aborted before").contains("rank 0"));
  }

  /// On a host that the peer's entry has not reached, the board shows equal calls.
  @Test
  void aNewRoundBeginsIfTheStoreFindsThatCallsDiffer() {
    LocalRanks.run(
        2,
        world -> {
          assertThat(roundsAfter(world, new CallsDiffer("calls differ"))).isEqualTo(1);
          assertThat(roundsAfter(world, new BraidException("given up"))).isZero();
        });
  }

  /// Returns the number of rounds that begin after a meeting that fails on all ranks. Then
  /// allocations must work.
  private static int roundsAfter(ProcessGroup world, BraidException failure) {
    allocate(world, 3).close(); // creates the board
    int before = world.calls().round();
    assertThatThrownBy(
            () ->
                world
                    .calls()
                    .meet(
                        Call.of("meeting"),
                        () -> {
                          throw failure;
                        }))
        .isSameAs(failure);
    int after = world.calls().round();
    checkAllocations(world);
    return after - before;
  }

  private static Study<Overlap> tune(ProcessGroup world, int... splits) {
    return Tuner.on(world)
        .gemm(GemmSpec.allGatherGemm(24, 16, 8))
        .splits(splits)
        .methods(Method.PIPELINED)
        .repeats(6)
        .warmup(0)
        .run();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void aTuningThatDiffersFailsOnAllRanksAndTheNextWorks(int ranks) {
    var errors = new ConcurrentHashMap<Integer, String>();
    LocalRanks.run(
        ranks,
        world -> {
          for (int i = 0; i < 2; i++) {
            var failure = failure(() -> tune(world, 1, world.rank() == 0 ? 2 : 4));
            errors.put(world.rank() + ranks * i, failure);
            assertThat(tune(world, 1, 2).trials()).hasSize(2);
          }
        });
    assertThat(errors)
        .hasSize(2 * ranks)
        .allSatisfy(
            (_, message) -> assertThat(message).contains("ranks must agree but rank 0 has"));
  }

  /// Calls of a rank; no two of them are equal.
  private enum Op {
    ALLOCATE_2,
    ALLOCATE_3,
    BARRIER,
    GATHER,
    ALL_REDUCE,
    ALL_GATHER,
    COLLECTIVE_BARRIER,
    BUILD_NEW,
    BUILD_CACHED,
    RUN_ONE,
    RUN_OTHER,
    AGREE
  }

  /// One rank's side of a random sequence of calls.
  private static final class Player implements AutoCloseable {
    private static final GemmSpec ONE = GemmSpec.allGatherGemm(10, 6, 4);
    private static final GemmSpec OTHER = GemmSpec.gemmAllReduce(10, 6, 10);
    private static final GemmSpec CACHED = GemmSpec.gemmReduceScatter(10, 6, 10);

    private final ProcessGroup world;
    private final Collectives comm;
    private final SymmetricTensor x;
    private final SymmetricTensor gathered;
    private final float[][] expected = new float[2][];
    private Pipeline one;
    private Pipeline other;

    Player(ProcessGroup world) {
      this.world = world;
      this.comm = Collectives.on(world);
      this.x = allocate(world, 5);
      this.gathered = allocate(world, 5L * world.size());
      x.local().fill(world.rank() + 1);
      Pipeline.on(world).gemm(CACHED).build().close();
      one = Pipeline.on(world).gemm(ONE).build();
      other = Pipeline.on(world).gemm(OTHER).build();
    }

    /// Builds the pipelines again on all ranks after one rank's iteration was aborted.
    void rebuild() {
      close();
      one = Pipeline.on(world).gemm(ONE).build();
      other = Pipeline.on(world).gemm(OTHER).build();
    }

    void play(Op op, int round) {
      int ranks = world.size();
      switch (op) {
        case ALLOCATE_2 -> allocate(world, 2).close();
        case ALLOCATE_3 -> allocate(world, 3).close();
        case BARRIER -> world.barrier();
        case GATHER ->
            assertThat(world.gather((long) world.rank()))
                .containsExactly(IntStream.range(0, ranks).mapToLong(i -> i).toArray());
        case ALL_REDUCE -> {
          try (var sum = comm.allReduce(x)) {
            assertThat(sum.local().toFloats()).containsOnly(ranks * (ranks + 1) / 2f);
          }
        }
        case ALL_GATHER -> {
          comm.allGather(x, gathered);
          for (int i = 0; i < 5 * ranks; i++) {
            assertThat(gathered.local().get(i)).isEqualTo(i / 5 + 1);
          }
        }
        case COLLECTIVE_BARRIER -> comm.barrier();
        case BUILD_NEW ->
            Pipeline.on(world).gemm(GemmSpec.gemmAllReduce(10, 6, 12 + round)).build().close();
        case BUILD_CACHED -> Pipeline.on(world).gemm(CACHED).build().close();
        case RUN_ONE -> run(0, one);
        case RUN_OTHER -> run(1, other);
        case AGREE -> world.agree("agree", "the same");
      }
    }

    private void run(int index, Pipeline pipe) {
      pipe.output().fill(Float.NaN);
      pipe.run();
      var got = pipe.output().toFloats();
      if (expected[index] == null) {
        pipe.verify();
        expected[index] = got;
      }
      assertThat(got).containsExactly(expected[index]);
    }

    @Override
    public void close() {
      one.close();
      other.close();
    }
  }

  /// Draws calls by rank; nearly half of the rounds differ.
  private static List<Op> draw(Random random, int ranks) {
    var all = Op.values();
    var ops = new Op[ranks];
    Arrays.fill(ops, all[random.nextInt(all.length)]);
    if (random.nextBoolean()) {
      // Differs on one rank, or on each.
      if (random.nextBoolean()) {
        ops[random.nextInt(ranks)] = all[random.nextInt(all.length)];
      } else {
        Arrays.setAll(ops, _ -> all[random.nextInt(all.length)]);
      }
    }
    return List.of(ops);
  }

  @ParameterizedTest
  @CsvSource({"2,1", "2,2", "3,3", "3,4", "3,5", "4,6", "4,7", "5,8"})
  void callsThatDifferAndCallsThatAgreeTakeTurns(int ranks, long seed) {
    var random = new Random(seed);
    var rounds = new ArrayList<List<Op>>();
    for (int i = 0; i < ROUNDS; i++) {
      rounds.add(draw(random, ranks));
    }
    LocalRanks.run(
        ranks,
        world -> {
          try (var player = new Player(world)) {
            for (int i = 0; i < ROUNDS; i++) {
              int round = i;
              var ops = rounds.get(round);
              boolean agree = ops.stream().distinct().count() == 1;
              var description =
                  "seed %d, round %d, %s, rank %d".formatted(seed, round, ops, world.rank());
              var failure = failure(() -> player.play(ops.get(world.rank()), round));
              if (agree) {
                assertThat(failure).as(description).isEmpty();
              } else {
                assertThat(failure)
                    .as(description)
                    .containsAnyOf("must make the same", "must agree");
                if (ops.contains(Op.RUN_ONE) || ops.contains(Op.RUN_OTHER)) {
                  player.rebuild();
                }
              }
            }
          }
        });
  }
}
