package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.rank.Waits;
import braid.model.BraidException;
import braid.model.GroupAborted;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class WorkQueueTest {
  private final Waits waits = new Waits(Duration.ofMinutes(5));
  private final WorkQueue queue = new WorkQueue("test", waits, new Cores(List.of(), false));

  @AfterEach
  void close() {
    queue.close();
  }

  @Test
  void tasksRunInOrder() {
    var done = new ArrayList<Integer>();
    for (int i = 0; i < 100; i++) {
      int task = i;
      queue.add(() -> "task " + task, () -> done.add(task));
    }
    queue.synchronize(() -> "the end");
    assertThat(done).hasSize(100).isSorted();
  }

  @Test
  void aFailureIsThrownByTheNextSynchronizeWithItsCauseAndOnce() {
    var done = new ArrayList<String>();
    queue.add(
        () -> "gemm 3",
        () -> {
          throw new ArithmeticException("too large");
        });
    queue.add(() -> "gemm 4", () -> done.add("gemm 4"));
    assertThatThrownBy(() -> queue.synchronize(() -> "the end"))
        .isInstanceOf(BraidException.class)
        .hasMessage("stream test failed in gemm 3: java.lang.ArithmeticException: too large")
        .hasCauseInstanceOf(ArithmeticException.class);
    assertThat(done).isEmpty();
    queue.add(() -> "gemm 5", () -> done.add("gemm 5"));
    queue.synchronize(() -> "the end");
    assertThat(done).containsExactly("gemm 5");
  }

  @Test
  void marksOfAFailedQueueFail() {
    queue.add(
        () -> "copy 0",
        () -> {
          throw new BraidException("no such memory");
        });
    var mark = new CompletableFuture<Long>();
    queue.mark(mark);
    assertThatThrownBy(() -> mark.get())
        .isInstanceOf(ExecutionException.class)
        .hasRootCauseMessage("no such memory");
  }

  @Test
  void synchronizeNamesTheRunningTask() throws Exception {
    var begun = new CountDownLatch(1);
    var never = new CompletableFuture<Boolean>();
    queue.add(
        () -> "all-gather, chunk 3",
        () -> {
          begun.countDown();
          waits.until(() -> "all-gather, chunk 3", nanos -> waits.poll(never, nanos));
        });
    begun.await();
    var outcome =
        CompletableFuture.runAsync(() -> queue.synchronize(() -> "the end of the iteration"));
    waits.release("rank 2 died");
    assertThatThrownBy(() -> outcome.get())
        .cause()
        .isInstanceOf(GroupAborted.class)
        .hasMessage("waited for all-gather, chunk 3 and was released: rank 2 died");
  }

  @Test
  void quiesceDropsTasksThatHaveNotBegun() throws Exception {
    var begun = new CountDownLatch(1);
    var go = new CountDownLatch(1);
    var done = new ArrayList<String>();
    queue.add(
        () -> "first",
        () -> {
          begun.countDown();
          awaitQuietly(go);
        });
    queue.add(() -> "second", () -> done.add("second"));
    begun.await();
    var quiesced = CompletableFuture.runAsync(queue::quiesce);
    go.countDown();
    quiesced.get();
    queue.add(() -> "third", () -> done.add("third"));
    queue.synchronize(() -> "the end");
    assertThat(done).isIn(List.of("third"), List.of("second", "third"));
  }

  @Test
  void aClosedQueueRefusesTasksAndClosesTwice() {
    queue.close();
    queue.close();
    assertThatThrownBy(() -> queue.add(() -> "late", () -> {}))
        .hasMessage("stream test is closed; make a new one");
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
