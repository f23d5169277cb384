package braid.launcher.cell;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// Interrupts of a [RunningCell] at each moment of its life, without a session.
class InterruptedCellTest {
  private static final Outcome ENDED =
      new Outcome(Optional.empty(), Optional.empty(), Duration.ZERO);

  private final RunningCell running = new RunningCell(new Cell("cell 1", "1"));
  private final AtomicInteger stops = new AtomicInteger();

  private boolean begin() {
    return running.begin(stops::incrementAndGet, () -> List.of(0, 2));
  }

  @Test
  void anInterruptBeforeTheBeginEndsTheCell() {
    running.interrupt();
    assertThat(running.await().failure().orElseThrow().message())
        .isEqualTo("cell 1 was interrupted before it began");
    assertThat(begin()).isFalse();
    assertThat(running.isRunning()).isFalse();
    assertThat(stops).hasValue(0);
  }

  @Test
  void onlyTheFirstInterruptStopsTheCellAndCounts() {
    assertThat(begin()).isTrue();
    running.interrupt();
    long first = running.interruptedNanos();
    running.interrupt();
    running.interrupt();
    assertThat(stops).hasValue(1);
    assertThat(running.interruptedNanos()).isEqualTo(first);
    assertThat(running.isRunning()).isTrue();
    assertThat(running.pending()).containsExactly(0, 2);
  }

  @Test
  void anInterruptAfterTheEndDoesNothing() {
    assertThat(begin()).isTrue();
    running.end(ENDED);
    running.interrupt();
    running.kill();
    running.stopAgain();
    assertThat(running.isInterrupted()).isFalse();
    assertThat(running.isKilled()).isFalse();
    assertThat(stops).hasValue(0);
    assertThat(running.pending()).isEmpty();
  }

  @Test
  void aKillInterruptsAndStopsOnceMore() {
    assertThat(begin()).isTrue();
    running.kill();
    assertThat(running.isInterrupted()).isTrue();
    assertThat(running.isKilled()).isTrue();
    assertThat(stops).hasValue(2);
    long killed = running.killedNanos();
    running.kill();
    assertThat(stops).hasValue(2);
    assertThat(running.killedNanos()).isEqualTo(killed);
  }

  @Test
  void anInterruptedCellIsStoppedAgainOnlyWhileItRuns() {
    assertThat(begin()).isTrue();
    running.stopAgain();
    assertThat(stops).hasValue(0);
    running.interrupt();
    running.stopAgain();
    assertThat(stops).hasValue(2);
    running.end(ENDED);
    running.stopAgain();
    assertThat(stops).hasValue(2);
  }

  @Test
  void aSessionThatFailsEndsTheCell() {
    assertThat(begin()).isTrue();
    running.fail(new IllegalStateException("lost"));
    assertThatThrownBy(running::await)
        .isInstanceOf(CompletionException.class)
        .hasRootCauseMessage("lost");
    running.interrupt();
    assertThat(stops).hasValue(0);
  }
}
