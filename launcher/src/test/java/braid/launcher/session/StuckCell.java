package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// A cell that prints and then cannot end.
final class StuckCell {
  private StuckCell() {}

  interface Action {
    void run() throws Exception;
  }

  /// Runs the cell, and the action as soon as it has printed. Returns the failure that ends it.
  static CellFailure failure(Session session, String code, Action action) throws Exception {
    var begun = new CountDownLatch(1);
    var output = new Recorded();
    output.onStdout = begun::countDown;
    var outcome =
        CompletableFuture.supplyAsync(() -> session.run(new Cell("the cell", code), output));
    assertThat(begun.await(60, TimeUnit.SECONDS)).isTrue();
    action.run();
    return outcome.get(60, TimeUnit.SECONDS).failure().orElseThrow();
  }
}
