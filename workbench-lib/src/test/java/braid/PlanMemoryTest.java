package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.pipeline.Plan;
import braid.internal.pipeline.PlanCache;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.FreeSpace;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.schedule.Schedule;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/// Memory of a plan is granted as a whole, before any of it is allocated.
class PlanMemoryTest {
  private static final int HEADS = 64;
  private static final int HEAD_SIZE = 256;
  private static final long BYTES_PER_TOKEN = (long) HEADS * HEAD_SIZE * Float.BYTES;

  /// Returns how many tokens of fp32 are a part of the machine's free memory.
  private static int tokens(ProcessGroup world, double part) {
    long free =
        world.context().backend().freeSpaces(MemoryKind.NATIVE, world.members()).stream()
            .mapToLong(FreeSpace::bytes)
            .min()
            .orElseThrow();
    return (int) (world.broadcast(free, 0) * part / BYTES_PER_TOKEN);
  }

  private static void refused(
      ProcessGroup world, String start, String remedy, ThrowingCallable build) {
    long before = world.counters().getOrDefault("buffers allocated", 0L);
    assertThatThrownBy(build)
        .isInstanceOf(AllocationFailed.class)
        .hasMessageStartingWith(start + ": the buffers need ")
        .hasMessageContaining(" for ranks 0, 1 but ")
        .hasMessageContaining(" MiB are free there: rank ")
        .hasMessageEndingWith("; " + remedy + ", or close what is not needed")
        .hasNoCause()
        .satisfies(
            failure ->
                assertThat(world.gather(String.valueOf(failure.getMessage())).stream().distinct())
                    .hasSize(1));
    assertThat(world.counters().getOrDefault("buffers allocated", 0L)).isEqualTo(before);
  }

  /// Every buffer alone fits into the machine.
  @Test
  void plansWhoseBuffersTogetherAreTooLargeAreRefusedBeforeTheyAreAllocated() {
    LocalRanks.run(
        2,
        world -> {
          var spec = AttentionSpec.of(tokens(world, 0.45), HEADS, HEAD_SIZE);
          var ring = ContextParallel.ring();
          refused(
              world,
              spec + ", " + ring,
              "take a shorter sequence, more splits or fewer streams",
              () -> Pipeline.on(world).attention(spec).overlap(ring).build());
          var all = ContextParallel.allGatherKv();
          refused(
              world,
              spec + ", " + all,
              "take a shorter sequence, or ring() with several splits",
              () -> Pipeline.on(world).attention(spec).overlap(all).build());
          var heads = ContextParallel.ulysses();
          refused(
              world,
              spec + ", " + heads,
              "take a shorter sequence or more splits",
              () -> Pipeline.on(world).attention(spec).overlap(heads).build());
          var gemm = GemmSpec.allGatherGemm(spec.sequence(), HEADS * HEAD_SIZE, HEADS * HEAD_SIZE);
          refused(
              world,
              gemm + ", " + Overlap.direct(),
              "take smaller sizes",
              () -> Pipeline.on(world).gemm(gemm).overlap(Overlap.direct()).build());
          // Refused on all ranks alike, so that they continue together.
          try (var small = Pipeline.on(world).attention(AttentionSpec.of(20, 2, 4)).build()) {
            small.verify();
          }
        });
  }

  @Test
  void theRefusalNamesPrivateBuffersToo() {
    LocalRanks.run(
        1,
        world -> {
          // Query and output of 16 TiB each, in private memory.
          var spec = AttentionSpec.of(1 << 28, HEADS, HEAD_SIZE).kvHeads(1);
          assertThatThrownBy(() -> Pipeline.on(world).attention(spec).build())
              .isInstanceOf(AllocationFailed.class)
              .hasMessageContaining("of this machine's memory for rank 0")
              .hasMessageContaining("rank 0 needs `query` 16777216 MiB, `output` 16777216 MiB, ");
        });
  }

  @Test
  void moreSplitsAndFewerStreamsNeedLessMemory() {
    var spec = AttentionSpec.of(4096, 32, 8);
    var ring = ContextParallel.ring();
    assertThat(bytes(spec, ring.splits(4)))
        .isLessThan(bytes(spec, ring))
        .isLessThan(bytes(spec, ring.splits(4).streams(2)))
        .isLessThan(bytes(spec, ContextParallel.allGatherKv()))
        .isLessThan(bytes(spec, ContextParallel.unfused()));
    for (var heads : List.of(ContextParallel.ulysses(), ContextParallel.twoLevel(2))) {
      assertThat(bytes(spec, heads.splits(4))).isLessThan(bytes(spec, heads));
    }
  }

  private static long bytes(AttentionSpec spec, ContextParallel tuning) {
    return Schedule.of(spec, tuning, 4).buffers().stream().mapToLong(each -> each.bytes(0)).sum()
        + Schedule.of(spec.backward(), tuning, 4).buffers().stream()
            .mapToLong(each -> each.bytes(0))
            .sum();
  }

  @Test
  void idlePlansAreClosedIfTheirMemoryIsNeeded() {
    LocalRanks.run(
        2,
        world -> {
          var cache = world.keep(PlanCache.class, PlanCache::new);
          var attempts = new AtomicInteger();
          Supplier<Plan> maker =
              () -> {
                attempts.incrementAndGet();
                throw new AllocationFailed("no room");
              };
          assertThatThrownBy(() -> PlanLease.make(world, cache, maker)).hasMessage("no room");
          assertThat(attempts).hasValue(1);
          Pipeline.on(world).attention(AttentionSpec.of(20, 2, 4)).build().close();
          assertThatThrownBy(() -> PlanLease.make(world, cache, maker)).hasMessage("no room");
          assertThat(attempts).hasValue(3);
          assertThat(cache.clear(world.calls().round())).isFalse();
        });
  }
}
