package braid.launcher.rank;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.wire.RankFailure.Cause;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class StoppableRunTest {
  private final StoppableRun run = new StoppableRun();

  @AfterEach
  void end() {
    run.end();
  }

  private Cause causeOf(Throwable thrown) {
    return run.failure(thrown).cause();
  }

  @Test
  void aStopInterruptsTheRunAndExplainsItsFailure() {
    run.begin();
    run.stop();
    assertThat(Thread.currentThread().isInterrupted()).isTrue();
    assertThat(causeOf(new IllegalStateException("wrapped", new InterruptedException())))
        .isEqualTo(Cause.STOPPED);
  }

  @Test
  void anInterruptionOfTheCellsOwnIsAFailure() {
    run.begin();
    assertThat(causeOf(new InterruptedException("by the cell"))).isEqualTo(Cause.THROWN);
  }

  @Test
  void aStopDoesNotReachTheNextRun() {
    run.begin();
    run.stop();
    run.end();
    run.begin();
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
    assertThat(causeOf(new InterruptedException("by the cell"))).isEqualTo(Cause.THROWN);
  }

  @Test
  void aStopWithoutARunIsForgotten() {
    run.stop();
    run.begin();
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
    assertThat(causeOf(new InterruptedException("by the cell"))).isEqualTo(Cause.THROWN);
  }
}
