package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.rank.Waits;
import braid.internal.work.Transfer;
import braid.model.GroupAborted;
import braid.model.Link;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

class CopyWorkersTest {
  private static final int BYTES = 1_000_003;

  /// A link so slow that a copy lasts until it is released.
  private static final Link STUCK = Link.parse("1B/s");

  private static final int LOOKS = 1_000;
  private final Waits waits = new Waits(Duration.ofSeconds(30));
  private final Cores anywhere = new Cores(List.of(), false);

  @Test
  void workersCopyEverything() {
    var link = Link.parse("100MB/s");
    try (var arena = Arena.ofShared();
        var workers = new CopyWorkers(3, "whole", new CopyEngine(link, waits), waits, anywhere)) {
      var from = arena.allocate(BYTES);
      var to = arena.allocate(BYTES);
      for (int i = 0; i < BYTES; i++) {
        from.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31));
      }
      long start = System.nanoTime();
      workers.copy(() -> "a copy", Transfer.of(from, to), start);
      assertThat(to.mismatch(from)).isEqualTo(-1);
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(link.nanos(BYTES));
    }
  }

  /// Samples the threads: each is always running.
  @Test
  void c2WorkersKeepTheirProcessorsBusyWhileTheLinkIs() throws InterruptedException {
    try (var arena = Arena.ofShared();
        var workers = new CopyWorkers(3, "busy", new CopyEngine(STUCK, waits), waits, anywhere)) {
      var copying = stuck(workers, arena);
      var threads = new ArrayList<Thread>();
      threads.add(copying);
      Thread.getAllStackTraces().keySet().stream()
          .filter(thread -> thread.getName().startsWith("braid-busy-"))
          .forEach(threads::add);
      assertThat(threads).hasSize(3);
      for (var thread : threads) {
        until(() -> isIn(thread, "CopyWorkers", "copy"));
        for (int look = 0; look < LOOKS; look++) {
          assertThat(thread.getState()).as(thread.getName()).isEqualTo(Thread.State.RUNNABLE);
        }
      }
      waits.release("the test has seen it");
      copying.join();
    }
  }

  @Test
  void c2ACopyEngineLeavesTheProcessorToOthers() throws InterruptedException {
    try (var arena = Arena.ofShared()) {
      var copying = stuck(new CopyEngine(STUCK, waits), arena);
      until(() -> copying.getState() == Thread.State.TIMED_WAITING);
      assertThat(isIn(copying, "Waits", "sleepUntil")).isTrue();
      waits.release("the test has seen it");
      copying.join();
    }
  }

  /// Starts a thread with a copy that does not end.
  private static Thread stuck(Mover mover, Arena arena) {
    var from = arena.allocate(BYTES);
    var to = arena.allocate(BYTES);
    return Thread.ofPlatform()
        .start(
            () ->
                assertThatThrownBy(
                        () -> mover.copy(() -> "a copy", Transfer.of(from, to), System.nanoTime()))
                    .isInstanceOf(GroupAborted.class));
  }

  private static boolean isIn(Thread thread, String type, String method) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(
            frame -> frame.getClassName().endsWith(type) && frame.getMethodName().contains(method));
  }

  /// Waits for a condition. The test's timeout ends a wait that never succeeds.
  private static void until(BooleanSupplier seen) {
    while (!seen.getAsBoolean()) {
      Thread.onSpinWait();
    }
  }

  @Test
  void aReleaseEndsACopyOverASlowLink() {
    try (var arena = Arena.ofShared();
        var workers =
            new CopyWorkers(
                2, "slow", new CopyEngine(Link.parse("1B/s"), waits), waits, anywhere)) {
      waits.release("rank 2 failed");
      assertThatThrownBy(
              () ->
                  workers.copy(
                      () -> "a copy",
                      Transfer.of(arena.allocate(64), arena.allocate(64)),
                      System.nanoTime()))
          .isInstanceOf(GroupAborted.class)
          .hasMessageContaining("rank 2 failed");
    }
  }
}
