package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.Sweep;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks that wait for each other over groups, messages, collectives and pipelines. Waits last 300
/// s here, so a test that ends within its time limit ended because the circle was found.
class WaitCirclesTest {
  /// Calls of two ranks; each waits for the other one.
  private enum Call {
    BARRIER,
    GATHER,
    BUILD,
    RUN,
    ALL_REDUCE,
    SEND,
    RECEIVE
  }

  /// A pair of ranks with everything that the calls need.
  private static final class Pair {
    private final ProcessGroup group;
    private final Collectives all;
    private final SymmetricTensor x;
    private final Pipeline pipe;

    Pair(ProcessGroup world, String name, int rank, int next) {
      group = world.subset(name, rank, next);
      all = Collectives.on(group);
      x = SymmetricTensor.on(group).shape(4).dtype(DType.FP32).name("x").allocate();
      pipe = Pipeline.on(group).gemm(GemmSpec.allGatherGemm(16, 8, 8)).build();
    }

    void make(Call call) {
      switch (call) {
        case BARRIER -> group.barrier();
        case GATHER -> group.gather(1L);
        case BUILD -> Pipeline.on(group).gemm(GemmSpec.allGatherGemm(32, 8, 8)).build().close();
        case RUN -> pipe.run();
        case ALL_REDUCE -> all.allReduce(x, x);
        case SEND -> all.send(x, 1 - group.rank());
        case RECEIVE -> all.receive(x, 1 - group.rank());
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5})
  void aCircleOfAnyCallsIsNamed(int ranks) {
    long seed = Long.getLong("braid.seed", ThreadLocalRandom.current().nextInt(1_000_000_000));
    var random = new Random(seed);
    for (int i = 0; i < Sweep.times(4, 12); i++) {
      var calls =
          random
              .ints(ranks, 0, Call.values().length)
              .mapToObj(index -> Call.values()[index])
              .toList();
      assertThatThrownBy(() -> LocalRanks.run(ranks, world -> waitInACircle(world, calls)))
          .as("-Dbraid.seed=%d: %s", seed, calls)
          .isExactlyInstanceOf(BraidException.class)
          .satisfies(
              e -> {
                assertThat(e.getMessage()).startsWith("ranks wait for each other: ");
                for (int rank = 0; rank < ranks; rank++) {
                  assertThat(e.getMessage())
                      .contains("rank %d waits for rank %d ".formatted(rank, (rank + 1) % ranks));
                }
              });
    }
  }

  /// Rank r calls something with rank r + 1, which has not called it yet.
  private static void waitInACircle(ProcessGroup world, List<Call> calls) {
    var pairs = new ArrayList<Pair>();
    for (int first = 0; first < world.size(); first++) {
      int next = (first + 1) % world.size();
      boolean member = world.rank() == first || world.rank() == next;
      pairs.add(member ? new Pair(world, "pair" + first, first, next) : null);
    }
    pairs.get(world.rank()).make(calls.get(world.rank()));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "a.barrier | b.barrier | rank 0 waits for rank 1 in barrier in group `a`, rank 1 waits for rank 0 in barrier in group `b`; make these calls in the same order on every rank",
        "world.barrier | a.barrier | rank 0 waits for rank 1 in barrier in group `world`, rank 1 waits for rank 0 in barrier in group `a`; make these calls in the same order on every rank",
        "a.barrier | receive | rank 0 waits for rank 1 in barrier in group `a`, rank 1 waits for rank 0 to send `x` 4 fp32; send and receive every message before the next call of both ranks",
        "allReduce | send | rank 0 waits for rank 1 in all-reduce in group `world`, rank 1 waits for rank 0 to receive `x` 4 fp32; send and receive every message before the next call of both ranks",
      })
  void theCallsOfACircleAreNamedWithTheRemedy(String first, String second, String message) {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      var all = Collectives.on(world);
                      var x = SymmetricTensor.on(world).shape(4).name("x").allocate();
                      switch (world.rank() == 0 ? first : second) {
                        case "a.barrier" -> world.subset("a", 0, 1).barrier();
                        case "b.barrier" -> world.subset("b", 0, 1).barrier();
                        case "world.barrier" -> world.barrier();
                        case "receive" -> all.receive(x, 0);
                        case "send" -> all.send(x, 0);
                        default -> all.allReduce(x, x);
                      }
                    }))
        .hasMessage("ranks wait for each other: " + message);
  }

  /// All ranks make the calls in one order, so none can hang, however late one is.
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5})
  void ranksThatAreLateRaiseNoAlarm(int ranks) {
    long seed = Long.getLong("braid.seed", ThreadLocalRandom.current().nextInt(1_000_000_000));
    LocalRanks.run(
        ranks,
        world -> {
          var drawn = new Random(seed);
          var pairs = new Pair[ranks][ranks];
          for (int i = 0; i < ranks; i++) {
            for (int j = i + 1; j < ranks; j++) {
              if (world.rank() == i || world.rank() == j) {
                pairs[i][j] = new Pair(world, "pair%d_%d".formatted(i, j), i, j);
              }
            }
          }
          for (int step = 0; step < Sweep.times(25, 100); step++) {
            int i = drawn.nextInt(ranks - 1);
            int j = i + 1 + drawn.nextInt(ranks - 1 - i);
            int late = drawn.nextBoolean() ? i : j;
            int millis = drawn.nextInt(3) == 0 ? drawn.nextInt(700) : 0;
            var call = Call.values()[drawn.nextInt(Call.values().length)];
            var pair = pairs[i][j];
            if (pair != null) {
              if (world.rank() == late) {
                Thread.sleep(millis);
              }
              boolean answers = world.rank() == j;
              pair.make(
                  switch (call) {
                    case SEND -> answers ? Call.RECEIVE : Call.SEND;
                    case RECEIVE -> answers ? Call.SEND : Call.RECEIVE;
                    default -> call;
                  });
            }
          }
          world.barrier();
        });
    System.out.printf("late ranks of %d: seed %d%n", ranks, seed);
  }

  @Test
  void aThreadThatTheBodyHasStartedMayStillCome() {
    LocalRanks.run(
        2,
        world -> {
          var a = world.subset("a", 0, 1);
          var b = world.subset("b", 0, 1);
          if (world.rank() == 1) {
            b.barrier();
            a.barrier();
            return;
          }
          var late =
              Thread.ofVirtual()
                  .start(
                      () -> {
                        try {
                          Thread.sleep(1500);
                        } catch (InterruptedException e) {
                          return;
                        }
                        b.barrier();
                      });
          a.barrier();
          late.join();
        });
  }
}
