package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.GroupAborted;
import braid.Link;
import braid.internal.rank.Waits;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CopyWorkersTest {
  private static final int BYTES = 1_000_003;
  private static final Link LINK = Link.parse("10MB/s");
  private final Waits waits = new Waits(Duration.ofSeconds(30));
  private final Cores anywhere = new Cores(List.of(), false);

  /// What one copy took, of the time that all threads of that name computed.
  private static long cpuNanos(String name) {
    var threads = ManagementFactory.getThreadMXBean();
    long nanos = 0;
    for (var info : threads.getThreadInfo(threads.getAllThreadIds())) {
      if (info != null && info.getThreadName().contains(name)) {
        nanos += Math.max(0, threads.getThreadCpuTime(info.getThreadId()));
      }
    }
    return nanos;
  }

  @Test
  void c2WorkersCopyEverythingAndKeepTheirProcessorsBusyMeanwhile() {
    try (var arena = Arena.ofShared();
        var workers = new CopyWorkers(3, "busy", new CopyEngine(LINK, waits), waits, anywhere)) {
      var from = arena.allocate(BYTES);
      var to = arena.allocate(BYTES);
      for (int i = 0; i < BYTES; i++) {
        from.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31));
      }
      long start = System.nanoTime();
      long before = cpuNanos("braid-busy");
      workers.copy(() -> "a copy", from, to, start);
      assertThat(to.mismatch(from)).isEqualTo(-1);
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(LINK.nanos(BYTES));
      // Two threads besides this one; however little of the machine they get, they use it.
      assertThat(cpuNanos("braid-busy") - before).isGreaterThan(LINK.nanos(BYTES) / 5);
    }
  }

  @Test
  void c2ACopyEngineLeavesTheProcessorToOthers() {
    try (var arena = Arena.ofShared()) {
      var from = arena.allocate(BYTES);
      var engine = new CopyEngine(LINK, waits);
      var threads = ManagementFactory.getThreadMXBean();
      engine.copy(() -> "a copy", from, arena.allocate(BYTES), System.nanoTime());
      long before = threads.getCurrentThreadCpuTime();
      engine.copy(() -> "a copy", from, arena.allocate(BYTES), System.nanoTime());
      assertThat(threads.getCurrentThreadCpuTime() - before).isLessThan(LINK.nanos(BYTES) / 5);
    }
  }

  @Test
  void aReleaseEndsACopyThatTheLinkIsSlowWith() {
    try (var arena = Arena.ofShared();
        var workers =
            new CopyWorkers(
                2, "slow", new CopyEngine(Link.parse("1B/s"), waits), waits, anywhere)) {
      waits.release("rank 2 failed");
      assertThatThrownBy(
              () ->
                  workers.copy(
                      () -> "a copy", arena.allocate(64), arena.allocate(64), System.nanoTime()))
          .isInstanceOf(GroupAborted.class)
          .hasMessageContaining("rank 2 failed");
    }
  }
}
