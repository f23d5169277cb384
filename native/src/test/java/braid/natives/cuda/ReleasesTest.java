package braid.natives.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ReleasesTest {
  private final Releases releases = new Releases();
  private final List<String> freed = new ArrayList<>();

  @Test
  void memoryIsFreedAtOnceWithoutACapture() {
    releases.run(() -> freed.add("x"));
    assertThat(freed).containsExactly("x");
  }

  @Test
  void memoryIsKeptUntilTheLastCaptureEnds() throws Exception {
    releases.beginCapture();
    releases.run(() -> freed.add("x"));
    CompletableFuture.runAsync(() -> releases.run(() -> freed.add("y of another thread")))
        .get(60, TimeUnit.SECONDS);
    releases.beginCapture();
    releases.endCapture();
    assertThat(freed).isEmpty();
    releases.endCapture();
    assertThat(freed).containsExactly("x", "y of another thread");
    releases.run(() -> freed.add("z"));
    assertThat(freed).last().isEqualTo("z");
  }

  @Test
  void aCaptureBeginsAfterReleasesInProgress() throws Exception {
    var releasing = new CountDownLatch(1);
    var finish = new CountDownLatch(1);
    var release =
        CompletableFuture.runAsync(
            () ->
                releases.run(
                    () -> {
                      releasing.countDown();
                      await(finish);
                      freed.add("x");
                    }));
    await(releasing);
    var freedBefore = new CompletableFuture<List<String>>();
    var capture =
        Thread.ofPlatform()
            .daemon()
            .start(
                () -> {
                  releases.beginCapture();
                  freedBefore.complete(List.copyOf(freed));
                });
    while (capture.getState() != Thread.State.WAITING && capture.isAlive()) {
      Thread.onSpinWait();
    }
    finish.countDown();
    assertThat(freedBefore.get(60, TimeUnit.SECONDS)).containsExactly("x");
    release.get(60, TimeUnit.SECONDS);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void everyKeptReleaseRunsEvenIfOthersFail() {
    releases.beginCapture();
    releases.run(
        () -> {
          throw new IllegalStateException("first");
        });
    releases.run(
        () -> {
          throw new IllegalStateException("second");
        });
    releases.run(() -> freed.add("x"));
    assertThatThrownBy(releases::endCapture)
        .hasMessage("first")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    assertThat(freed).containsExactly("x");
    releases.beginCapture();
    releases.endCapture();
  }
}
