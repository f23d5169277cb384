package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.context.RankContext;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Overlap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/// A failing cell leaves its ranks at different steps, but the session continues.
class EpochTest {
  private static final int RANKS = 4;
  private final ConcurrentLinkedQueue<RankContext> contexts = new ConcurrentLinkedQueue<>();

  /// Represents the session's front, so it does not use the library.
  private final CyclicBarrier front = new CyclicBarrier(RANKS);

  private void meet() throws Exception {
    front.await(240, TimeUnit.SECONDS);
  }

  @Test
  void aPipelineThatBrokeOffRunsAgainAfterAResume() {
    LocalRanks.run(
        RANKS,
        world -> {
          contexts.add(RankContext.current());
          var spec = GemmSpec.allGatherGemm(64, 32, 16);
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.pipelined(4)).build()) {
            for (int epoch = 2; epoch < 5; epoch++) {
              pipe.verify();
              meet();
              failInTheMiddle(world, pipe, epoch);
              meet();
              RankContext.current().resume(epoch);
              if (world.rank() == 2) {
                // No rank waits for the others' resume.
                assertThat(world.context().waits().epoch()).isEqualTo(epoch);
              }
            }
            pipe.verify();
            assertThat(pipe.time(3)).hasSize(3);
          }
        });
  }

  /// Rank 1 runs fewer iterations than the others, more with every epoch, and then fails.
  private void failInTheMiddle(ProcessGroup world, Pipeline pipe, int epoch) {
    if (world.rank() == 1) {
      for (int i = 0; i < epoch; i++) {
        pipe.run();
      }
      awaitWaits("signal begun[1] from rank 1", RANKS - 1);
      contexts.forEach(each -> each.release("rank 1 failed: no more"));
      return;
    }
    // With iterations in flight and one by one.
    assertThatThrownBy(
            () -> {
              if (epoch % 2 == 0) {
                var _ = pipe.inFlight(1_000_000, _ -> {});
              } else {
                runFor(pipe);
              }
            })
        // The rank waits for rank 1's signal, or is about to begin the next run.
        .isInstanceOfSatisfying(
            GroupAborted.class,
            e -> assertThat(e.waitedFor()).containsAnyOf("signal begun[1] from rank 1", "run of `"))
        .hasMessageEndingWith("and was released: rank 1 failed: no more");
    // Waits that begin after the release fail too, and the pipeline names the reason why it cannot
    // run.
    assertThatThrownBy(world::barrier).isInstanceOf(GroupAborted.class);
    assertThatThrownBy(pipe::run)
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("was aborted before");
  }

  /// Waits until that number of ranks wait for the given step; polls like a front.
  private void awaitWaits(String step, int ranks) {
    long waiting = 0;
    while (waiting < ranks) {
      waiting =
          contexts.stream()
              .filter(each -> each.waits().current().stream().anyMatch(one -> one.contains(step)))
              .count();
      Thread.onSpinWait();
    }
  }

  private static void runFor(Pipeline pipe) {
    for (; ; ) {
      pipe.run();
    }
  }

  /// A front releases the ranks in order. To the others, the first one released must not look as if
  /// it made another call.
  @Test
  void theCallsOfAReleasedRankMisleadNobody() {
    var ahead = new CountDownLatch(2 * 3);
    var tried = new CountDownLatch(1);
    var groups = new ConcurrentLinkedQueue<ProcessGroup>();
    LocalRanks.run(
        RANKS,
        world -> {
          contexts.add(RankContext.current());
          groups.add(world);
          var spec = GemmSpec.allGatherGemm(64, 32, 16);
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.pipelined(4)).build()) {
            pipe.verify();
            meet();
            if (world.rank() == 1) {
              awaitWaits("signal begun[1] from rank 1", RANKS - 1);
              assertThat(ahead.await(240, TimeUnit.SECONDS)).isTrue();
              contexts.stream()
                  .filter(each -> each.place().rank() == 2)
                  .forEach(each -> each.release("enough"));
              assertThat(tried.await(240, TimeUnit.SECONDS)).isTrue();
              assertThat(groups).noneMatch(each -> each.calls().failed());
              contexts.forEach(each -> each.release("enough"));
            } else if (world.rank() == 2) {
              assertThatThrownBy(pipe::run).isInstanceOf(GroupAborted.class);
              assertThatThrownBy(world::barrier)
                  .isInstanceOf(GroupAborted.class)
                  .hasMessage("waited for barrier in group `world` and was released: enough");
              tried.countDown();
            } else {
              // Two iterations are in flight where a third is about to be enqueued.
              assertThatThrownBy(() -> pipe.inFlight(9, _ -> ahead.countDown()))
                  .isInstanceOf(GroupAborted.class);
            }
            meet();
            RankContext.current().resume(2);
            pipe.verify();
          }
        });
  }

  @Test
  void groupsAreInStepAgainAfterAResume() {
    var through = new CountDownLatch(2);
    LocalRanks.run(
        RANKS,
        world -> {
          contexts.add(RankContext.current());
          var half = world.subset("half", world.rank() < 2 ? new int[] {0, 1} : new int[] {2, 3});
          meet();
          // Ranks 0 and 1 are one call ahead of ranks 2 and 3, one of which waits for the other.
          if (world.rank() < 2) {
            half.barrier();
            through.countDown();
          }
          if (world.rank() == 1) {
            through.await();
            awaitWaits("barrier in group `half`", 1);
            contexts.forEach(each -> each.release("enough"));
          } else if (world.rank() == 2) {
            assertThatThrownBy(half::barrier)
                .hasMessage("waited for barrier in group `half` and was released: enough");
          }
          meet();
          RankContext.current().resume(7);
          assertThat(half.gather((long) world.rank()))
              .containsExactly(world.rank() < 2 ? 0 : 2, world.rank() < 2 ? 1 : 3);
          world.barrier();
        });
  }

  @Test
  void anotherThreadCanReadTheWaitOfARank() {
    LocalRanks.run(
        2,
        world -> {
          if (world.rank() == 0) {
            contexts.add(RankContext.current());
            world.barrier();
          } else {
            awaitWaits("barrier in group `world`", 1);
            world.barrier();
          }
        });
  }
}
