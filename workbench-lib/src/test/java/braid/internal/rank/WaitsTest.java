package braid.internal.rank;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.GroupAborted;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

class WaitsTest {
  private final Waits waits = new Waits(Duration.ofMinutes(5));
  private final CountDownLatch begun = new CountDownLatch(1);

  private CompletableFuture<Boolean> waiting() throws InterruptedException {
    var never = new CompletableFuture<Boolean>();
    var outcome =
        CompletableFuture.supplyAsync(
            () ->
                waits.until(
                    () -> "chunk 3",
                    nanos -> {
                      begun.countDown();
                      return waits.poll(never, nanos);
                    }));
    begun.await();
    return outcome;
  }

  @Test
  void aReleaseEndsPresentAndFutureWaits() throws Exception {
    var outcome = waiting();
    assertThat(waits.current()).containsExactly("chunk 3");
    waits.release("rank 1 failed");
    assertThatThrownBy(() -> outcome.get())
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOf(GroupAborted.class)
        .hasMessage("waited for chunk 3 and was released: rank 1 failed");
    assertThat(waits.current()).isEmpty();
    assertThatThrownBy(
            () -> waits.sleepUntil(() -> "a copy", Long.MAX_VALUE / 2 + System.nanoTime()))
        .isInstanceOfSatisfying(
            GroupAborted.class, e -> assertThat(e.waitedFor()).isEqualTo("a copy"));
  }

  @Test
  void aWatchEndsPendingWaitsUntilItIsRemoved() {
    Runnable watch =
        () -> {
          throw new BraidException("the ranks disagree");
        };
    waits.watch(watch);
    assertThatThrownBy(() -> waits.until(() -> "chunk 3", nanos -> null))
        .hasMessage("the ranks disagree");
    assertThat(waits.current()).isEmpty();
    // A wait that succeeds at once runs no watch.
    assertThat(waits.<String>until(() -> "chunk 3", nanos -> "value")).isEqualTo("value");
    waits.unwatch(watch);
    assertThat(waits.<Boolean>within(Duration.ZERO, () -> "chunk 3", nanos -> null)).isNull();
  }

  @Test
  void theFirstReasonIsKept() {
    waits.release("rank 1 failed");
    waits.release("the session goes on");
    assertThatThrownBy(() -> waits.check(() -> "x")).hasMessageContaining("rank 1 failed");
  }

  @Test
  void afterAResumeWaitsWaitAgain() {
    waits.release("rank 1 failed");
    waits.resume(2);
    assertThat(waits.epoch()).isEqualTo(2);
    assertThat(waits.<String>until(() -> "x", nanos -> "value")).isEqualTo("value");
    assertThatThrownBy(() -> waits.resume(2))
        .hasMessage("the epoch must be later than 2 but was 2; count up with every resume");
  }

  @Test
  void aWaitFailsAfterItsTimeLimit() {
    var brief = new Waits(Duration.ofMillis(20));
    assertThatThrownBy(
            () ->
                brief.until(
                    () -> "chunk 3", nanos -> brief.poll(new CompletableFuture<Boolean>(), nanos)))
        .isInstanceOf(BraidException.class)
        .isNotInstanceOf(GroupAborted.class)
        .hasMessageStartingWith("waited 0 s for chunk 3 in vain");
  }

  @Test
  void anInterruptEndsAWaitAndIsKept() throws Exception {
    var outcome = new CompletableFuture<Boolean>();
    var thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    var never = new CompletableFuture<Boolean>();
                    var result =
                        waits.until(
                            () -> "chunk 3",
                            nanos -> {
                              begun.countDown();
                              return waits.poll(never, nanos);
                            });
                    outcome.complete(!result);
                  } catch (GroupAborted e) {
                    outcome.complete(Thread.currentThread().isInterrupted());
                  }
                });
    begun.await();
    thread.interrupt();
    assertThat(outcome.get()).isTrue();
  }
}
