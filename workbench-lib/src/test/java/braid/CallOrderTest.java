package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.memory.Call;
import braid.model.BraidException;
import braid.model.GroupAborted;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks that make different calls, or the same call with different values, get an error; also
/// while they wait in shared memory, where no front can see it.
class CallOrderTest {
  /// Message of a wait that has timed out.
  private static final String IN_VAIN = "in vain";

  private final Map<Integer, String> errors = new ConcurrentHashMap<>();

  /// Runs the body on each rank and collects its errors; no rank releases the others, and no wait
  /// times out.
  private void onEachRank(int ranks, LocalRanks.Body body) {
    LocalRanks.run(
        ranks,
        world -> {
          try {
            body.run(world);
          } catch (BraidException e) {
            errors.put(world.rank(), e.getMessage());
          }
        });
    assertThat(errors.values()).noneMatch(message -> message.contains(IN_VAIN));
  }

  /// Waits like the end of an iteration, for signals that never arrive.
  private static void run(ProcessGroup group, String call) {
    group.calls().enter(Call.of(call));
    var _ = group.context().waits().<Boolean>until(() -> call, CallOrderTest::nothing);
  }

  private static @Nullable Boolean nothing(long nanos) throws InterruptedException {
    LockSupport.parkNanos(nanos);
    return null;
  }

  private static void prepare(ProcessGroup group) {
    SymmetricTensor.on(group).shape(1).allocate().close();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void oneWaitsInMemoryAndOneAtTheStore(boolean prepared) {
    onEachRank(
        2,
        world -> {
          if (prepared) {
            prepare(world);
          }
          if (world.rank() == 0) {
            run(world, "run of `a`");
          } else {
            world.barrier();
          }
        });
    assertThat(errors)
        .hasSize(2)
        .allSatisfy(
            (rank, message) ->
                assertThat(message)
                    .startsWith(
                        "all ranks of a group must make the same calls in the same order but rank ")
                    .contains("rank 0 called run of `a` in group `world`")
                    .contains("rank 1 called barrier in group `world`"));
  }

  @Test
  void bothWaitInMemory() {
    onEachRank(
        3,
        world -> {
          prepare(world);
          world.barrier();
          run(world, world.rank() == 2 ? "run of `b`" : "run of `a`");
        });
    assertThat(errors)
        .hasSize(3)
        .containsValue(
            "all ranks of a group must make the same calls in the same order but rank 0 called run"
                + " of `a` in group `world` where rank 2 called run of `b` in group `world`");
  }

  @Test
  void aRankThatIsAheadIsRight() {
    onEachRank(
        2,
        world -> {
          prepare(world);
          if (world.rank() == 0) {
            // Twice around the ring before the other rank has made a call.
            for (int i = 0; i < 40; i++) {
              world.calls().enter(Call.of("call " + i));
            }
          }
          if (world.rank() == 1) {
            for (int i = 0; i < 40; i++) {
              world.calls().enter(Call.of("call " + i));
            }
          }
          world.barrier();
        });
    assertThat(errors).isEmpty();
  }

  @Test
  void anEarlierCallThatDifferedIsNamedAlsoAfterwards() {
    onEachRank(
        2,
        world -> {
          prepare(world);
          world.calls().enter(Call.of("call " + world.rank()));
          world.calls().enter(Call.of("the same"));
          run(world, "run");
        });
    assertThat(errors)
        .hasSize(2)
        .containsValue(
            "all ranks of a group must make the same calls in the same order but rank 0 called call"
                + " 0 in group `world` where rank 1 called call 1 in group `world`");
  }

  @Test
  void valuesThatDifferAreNamedRankByRank() {
    onEachRank(
        4,
        world -> {
          var pair = world.subset("pair", 1, 3);
          if (pair.isMember()) {
            assertThatThrownBy(() -> pair.agree("build", "m=" + world.rank()))
                .hasMessage(
                    "build in group `pair`: ranks must agree but rank 1 has m=1, rank 3 has m=3;"
                        + " pass the same value on every rank");
          }
          world.agree("build", "m=1");
          world.agree("build", "m=" + world.rank() / 3);
        });
    assertThat(errors)
        .containsOnlyKeys(0, 1, 2, 3)
        .containsValue(
            "build in group `world`: ranks must agree but ranks 0, 1, 2 have m=0, rank 3 has m=1;"
                + " pass the same value on every rank");
  }

  @Test
  void valuesThatDifferInMemoryAreNamedToo() {
    onEachRank(
        2,
        world -> {
          prepare(world);
          world.calls().enter(Call.of("run", world.rank() == 0 ? "" : "v".repeat(2000)));
          run(world, "run");
        });
    assertThat(errors)
        .hasSize(2)
        .allSatisfy(
            (_, message) ->
                assertThat(message)
                    .startsWith(
                        "run in group `world`: ranks must agree but rank 0 has nothing, rank 1 has"
                            + " vvvv"));
  }

  @Test
  void longDifferingValuesAreReportedWithoutThem() {
    onEachRank(
        2,
        world -> {
          prepare(world);
          world.calls().enter(Call.of("run", "v".repeat(2000) + world.rank()));
          run(world, "run");
        });
    assertThat(errors)
        .hasSize(2)
        .allSatisfy(
            (_, message) ->
                assertThat(message)
                    .startsWith(
                        "run in group `world`: ranks must agree but their values differ beyond the"
                            + " first 1004 bytes, of vvvv"));
  }

  @Test
  void processesAreToldToo() throws Exception {
    for (var ended : ProcessRanks.run(2, Map.of(), OnRank.class)) {
      assertThat(ended.exitCode()).as(ended.output()).isZero();
      assertThat(ended.output().lines().toList())
          .isEqualTo(
              List.of(
                  "all ranks of a group must make the same calls in the same order but rank 0"
                      + " called run of `a` in group `world` where rank 1 called barrier in group"
                      + " `world`"));
    }
  }

  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) {
      try (var world = ProcessGroup.world()) {
        prepare(world);
        world.barrier();
        try {
          if (world.rank() == 0) {
            run(world, "run of `a`");
          } else {
            world.barrier();
          }
        } catch (GroupAborted e) {
          System.out.println("released: " + e.getMessage());
        } catch (BraidException e) {
          System.out.println(e.getMessage());
        }
      }
    }
  }
}
